import { describe, expect, it } from 'vitest';
import { item, type MenuEntry } from '../../shared/tray-entry.ts';
import type { TrayView } from '../../shared/tray-menu.ts';
import { type ShownTray, trayStep } from '../../shared/tray-pace.ts';

const check = (checked: boolean): MenuEntry => ({
  kind: 'check',
  id: 'keep',
  label: 'Keep',
  checked,
  action: { type: 'quit' },
});

function view(free: string, change: Partial<TrayView> = {}): TrayView {
  return { icon: 'fine', tooltip: free, menu: [item('free', free), check(false)], ...change };
}

const shown: ShownTray = {
  view: view('6 GB'),
  menuAtMs: 10_000,
  tooltipAtMs: 10_000,
  menuIcon: 'fine',
  tooltipIcon: 'fine',
};

describe('tray pace: an open menu does not rebuild under the pointer', () => {
  it('shows all of it the first time', () => {
    expect(trayStep(null, view('6 GB'), 0)).toEqual({ icon: true, tooltip: true, menu: true, dueAtMs: null });
  });

  it('touches nothing that does not differ', () => {
    expect(trayStep(shown, view('6 GB'), 60_000)).toEqual({
      icon: false,
      tooltip: false,
      menu: false,
      dueAtMs: null,
    });
  });

  it('changes figures at most every five seconds', () => {
    expect(trayStep(shown, view('5 GB'), 14_999)).toEqual({
      icon: false,
      tooltip: false,
      menu: false,
      dueAtMs: 15_000,
    });
    expect(trayStep(shown, view('5 GB'), 15_000)).toMatchObject({ tooltip: true, menu: true, dueAtMs: null });
  });

  it('changes the picture at once, and with it what it says', () => {
    const step = trayStep(shown, view('3 GB', { icon: 'threatened' }), 11_000);
    expect(step).toMatchObject({ icon: true, tooltip: true, menu: true });
    // Even where they had been changed a moment before: they wait, and not for long.
    const early = trayStep(shown, view('3 GB', { icon: 'threatened' }), 10_100);
    expect(early).toMatchObject({ icon: true, tooltip: false, menu: false, dueAtMs: 10_500 });
    const then = { ...shown, view: { ...shown.view, icon: 'threatened' as const } };
    expect(trayStep(then, view('3 GB', { icon: 'threatened' }), 10_500)).toMatchObject({
      tooltip: true,
      menu: true,
    });
  });

  it('changes what can be done soon, but not in a burst', () => {
    const marked = { menu: [item('free', '6 GB'), check(true)] };
    expect(trayStep(shown, view('6 GB', marked), 10_500).menu).toBe(true);
    expect(trayStep(shown, view('6 GB', marked), 10_100)).toMatchObject({ menu: false, dueAtMs: 10_500 });
    const more = { menu: [item('free', '6 GB'), check(false), item('new', 'New', { type: 'quit' })] };
    expect(trayStep(shown, view('6 GB', more), 10_500).menu).toBe(true);
  });

  it('lets a line that comes and goes wait like a figure: an agent’s requests are many', () => {
    const busy = { menu: [item('free', '6 GB'), item('status 1', '27B: busy'), check(false)] };
    expect(trayStep(shown, view('6 GB', busy), 12_000)).toMatchObject({ menu: false, dueAtMs: 15_000 });
    expect(trayStep(shown, view('6 GB', busy), 15_000).menu).toBe(true);
  });
});
