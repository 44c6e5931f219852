import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TrayPresence } from '../../electron/shell/tray.ts';
import { item, type MenuEntry, submenu, type TrayAction } from '../../shared/tray-entry.ts';
import type { TrayView } from '../../shared/tray-menu.ts';
import { createFakeDesk } from '../fakes/desk.ts';

function view(free: string, change: Partial<TrayView> = {}): TrayView {
  return {
    icon: 'fine',
    tooltip: free,
    menu: [item('free', free), item('quit', 'Quit', { type: 'quit' })],
    ...change,
  };
}

function make() {
  const electron = createFakeDesk();
  const acted: TrayAction[] = [];
  const tray = new TrayPresence({
    electron,
    picture: (icon) => `/icons/${icon}.png`,
    act: (action) => acted.push(action),
    monotonicMs: () => Date.now(),
  });
  const shown = () => {
    const [one] = electron.trays;
    if (one === undefined) throw new Error('there is a tray');
    return one;
  };
  return { electron, acted, tray, shown };
}

describe('tray: changed only where it differs', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is made once, and sets a menu for each change and for no other', () => {
    const { electron, tray, shown } = make();
    tray.show(view('6 GB'));
    tray.show(view('6 GB'));
    vi.advanceTimersByTime(60_000);
    tray.show(view('6 GB'));
    expect(electron.trays).toHaveLength(1);
    expect(shown().menus).toBe(1);
    tray.show(view('5 GB'));
    expect(shown().menus).toBe(2);
    expect(shown().tooltip).toBe('5 GB');
  });

  it('shows the newest figures, at most every five seconds, without being asked again', () => {
    const { tray, shown } = make();
    tray.show(view('6 GB'));
    for (const free of ['5.5 GB', '5 GB', '4.5 GB']) {
      vi.advanceTimersByTime(1000);
      tray.show(view(free));
    }
    expect(shown().menus).toBe(1);
    vi.advanceTimersByTime(2000);
    expect(shown().menus).toBe(2);
    expect(shown().tooltip).toBe('4.5 GB');
    expect(shown().menu[0]?.label).toBe('4.5 GB');
  });

  it('does not flicker when a figure returns in time', () => {
    const { tray, shown } = make();
    tray.show(view('6 GB'));
    vi.advanceTimersByTime(1000);
    tray.show(view('5 GB'));
    tray.show(view('6 GB'));
    vi.advanceTimersByTime(10_000);
    expect(shown().menus).toBe(1);
  });

  it('changes its picture at once', () => {
    const { tray, shown } = make();
    tray.show(view('6 GB'));
    vi.advanceTimersByTime(100);
    tray.show(view('1 GB', { icon: 'critical' }));
    expect(shown().image).toBe('/icons/critical.png');
    vi.advanceTimersByTime(500);
    expect(shown().tooltip).toBe('1 GB');
  });

  it('shows nothing more once it has stopped', () => {
    const { tray, shown } = make();
    tray.show(view('6 GB'));
    tray.show(view('5 GB'));
    tray.stop();
    vi.advanceTimersByTime(10_000);
    expect(shown().menus).toBe(1);
  });
});

describe('tray: its menu', () => {
  it('does what is chosen, and only lets be read what does nothing', () => {
    const { electron, acted, tray } = make();
    tray.show(
      view('6 GB', {
        menu: [item('free', 'R & D'), submenu('more', 'More', [item('quit', 'Quit', { type: 'quit' })])],
      }),
    );
    electron.choose('More', 'Quit');
    expect(acted).toEqual([{ type: 'quit' }]);
    expect(electron.menuText()).toBe('R & D  ·\nMore ▸\n    Quit');
    expect(() => electron.choose('R')).toThrow();
    expect(electron.trays[0]?.menu[0]?.label).toBe('R && D');
  });

  it('sets its marks again after a choice: the panel has moved them by itself', () => {
    const { electron, tray, shown } = make();
    const keep: MenuEntry = {
      kind: 'check',
      id: 'k',
      label: 'Keep',
      checked: false,
      action: { type: 'host' },
    };
    tray.show(view('6 GB', { menu: [keep] }));
    const before = shown().menus;
    vi.useFakeTimers();
    electron.choose('Keep');
    vi.advanceTimersByTime(600);
    vi.useRealTimers();
    expect(shown().menus).toBe(before + 1);
  });
});
