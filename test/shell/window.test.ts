import { describe, expect, it } from 'vitest';
import { startShell } from '../../electron/shell/app.ts';
import { PAGE_URL } from '../../electron/shell/protocol.ts';
import { addressOf } from '../../electron/shell/window.ts';
import { ok } from '../../shared/errors.ts';
import type { Place } from '../../shared/tray-entry.ts';
import { createFakeElectron, type FakeElectron } from '../fakes/electron.ts';
import { createFakeSource } from '../support/fake-source.ts';

interface Shell {
  readonly electron: FakeElectron;
  readonly calls: string[];
  open(place: Place): void;
  isInFront(): boolean;
}

async function shell(onClose: 'hide' | 'quit' | 'minimize', hidden = false): Promise<Shell> {
  const electron = createFakeElectron();
  const calls: string[] = [];
  let open: Shell['open'] = () => {};
  let isInFront: Shell['isInFront'] = () => false;
  const done = startShell({
    electron,
    connect: async () => ok(createFakeSource()),
    pageDir: '/build/renderer',
    preloadPath: '/build/preload.cjs',
    hidden,
    makeDesk: async ({ window }) => {
      open = window.open;
      isInFront = window.isInFront;
      return {
        start: async () => ({ kind: 'shown' }),
        onClose: () => onClose,
        hidden: () => void calls.push('hidden'),
        windowShown: () => void calls.push('in front'),
        stop: () => void calls.push('stop'),
      };
    },
  });
  electron.ready();
  await done;
  return { electron, calls, open: (place) => open(place), isInFront: () => isInFront() };
}

describe('window: closing it', () => {
  it('leaves the app in the tray, without a hidden window', async () => {
    const { electron, calls } = await shell('hide');
    electron.closeWindow();
    expect(calls).toEqual(['hidden']);
    expect(electron.calls).not.toContain('quit');
    electron.emit('second-instance', {}, []);
    expect(electron.windows).toHaveLength(2);
  });

  it('quits, or minimizes, where no tray shows the app', async () => {
    const quitting = await shell('quit');
    quitting.electron.closeWindow();
    expect(quitting.electron.calls.at(-1)).toBe('quit');
    const small = await shell('minimize');
    small.electron.closeWindow();
    expect(small.electron.windows[0]?.calls).toContain('minimize');
    expect(small.electron.calls).not.toContain('quit');
    expect([...small.calls, ...quitting.calls]).toEqual([]);
  });

  it('does not hold up a quit, nor say then that the app goes on', async () => {
    for (const onClose of ['minimize', 'hide'] as const) {
      const { electron, calls } = await shell(onClose);
      expect(electron.quits()).toBe(false);
      expect(electron.windows[0]?.calls).not.toContain('minimize');
      // Only the runtime holds it up, and that ends.
      expect(calls).toEqual(['stop']);
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(electron.calls.at(-1)).toBe('exit 0');
    }
  });
});

describe('window: where it opens', () => {
  it('has an address for each place, all of them the page', () => {
    expect(addressOf({ kind: 'home' })).toBe(PAGE_URL);
    expect(addressOf({ kind: 'event', id: 12 })).toBe(`${PAGE_URL}#event-12`);
    expect(addressOf({ kind: 'log' })).toBe(`${PAGE_URL}#log`);
  });

  it('goes to a place in the window there is, or in a new one', async () => {
    const { electron, open } = await shell('hide', true);
    expect(electron.windows).toHaveLength(0);
    open({ kind: 'event', id: 12 });
    open({ kind: 'settings' });
    open({ kind: 'home' });
    expect(electron.windows.map((window) => window.loaded)).toEqual([
      [`${PAGE_URL}#event-12`, `${PAGE_URL}#settings`],
    ]);
  });

  it('stays away at login, and when the session starts the app twice', async () => {
    const { electron } = await shell('hide', true);
    electron.emit('second-instance', {}, ['/opt/landlord', '--hidden']);
    expect(electron.windows).toHaveLength(0);
  });

  it('knows when a person has it before them', async () => {
    const { electron, calls, isInFront } = await shell('hide');
    const [window] = electron.windows;
    if (window === undefined) throw new Error('a window is open');
    expect(isInFront()).toBe(false);
    window.focused = true;
    window.emit('focus');
    expect(isInFront()).toBe(true);
    expect(calls).toEqual(['in front']);
    window.minimized = true;
    expect(isInFront()).toBe(false);
  });
});
