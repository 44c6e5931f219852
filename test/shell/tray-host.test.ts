import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { findTray, itemOf, TrayHost, type TrayShown } from '../../electron/shell/tray-host.ts';
import { createFakeBus, DESK_PID } from '../support/fake-desk.ts';

describe('tray host: whether anybody shows the icon', () => {
  it('knows an item by the process behind it, whatever it is called', async () => {
    const bus = createFakeBus();
    expect(await findTray(bus, DESK_PID)).toEqual({ kind: 'shown', retry: false });
    bus.items = { 'org.freedesktop.StatusNotifierItem-9-1': DESK_PID };
    expect((await findTray(bus, DESK_PID)).kind).toBe('shown');
    expect(itemOf(':1.9/org/x/Item/1')).toEqual({ name: ':1.9', path: '/org/x/Item/1' });
    expect(itemOf('org.x')).toEqual({ name: 'org.x', path: '/StatusNotifierItem' });
  });

  it('is hidden without a watcher, a host, an item of ours, or anything in it', async () => {
    for (const change of [
      { hasWatcher: false },
      { hasHost: false },
      { items: { ':1.5/StatusNotifierItem': 99 } },
      { items: {} },
      { itemIsWhole: false },
    ]) {
      const found = await findTray(Object.assign(createFakeBus(), change), DESK_PID);
      expect(found.kind, JSON.stringify(change)).toBe('hidden');
    }
  });

  it('is unknown, not hidden, where the desktop does not answer', async () => {
    for (const change of [{ hasWatcher: null }, { hasHost: null }, { items: { ':1.5/x': null } }]) {
      const found = await findTray(Object.assign(createFakeBus(), change), DESK_PID);
      expect(found.kind, JSON.stringify(change)).toBe('unknown');
    }
  });
});

describe('tray host: watched', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const watch = () => {
    const bus = createFakeBus();
    const changes: TrayShown['kind'][] = [];
    const host = new TrayHost({
      bus,
      pid: DESK_PID,
      onChange: (shown) => changes.push(shown.kind),
      settleMs: 100,
    });
    return { bus, host, changes };
  };

  it('gives an icon time to register', async () => {
    const { bus, host } = watch();
    const items = bus.items;
    bus.items = {};
    const started = host.start();
    await vi.advanceTimersByTimeAsync(150);
    bus.items = items;
    await vi.advanceTimersByTimeAsync(150);
    expect((await started).kind).toBe('shown');
    host.stop();
  });

  it('gives up on an icon that does not come', async () => {
    const { bus, host } = watch();
    bus.items = {};
    const started = host.start();
    await vi.advanceTimersByTimeAsync(1000);
    expect((await started).kind).toBe('hidden');
    host.stop();
  });

  it('tells when the panel goes and comes back, once each', async () => {
    const { bus, host, changes } = watch();
    await host.start();
    bus.hasWatcher = false;
    for (let said = 0; said < 5; said += 1) bus.say();
    await vi.advanceTimersByTimeAsync(500);
    bus.hasWatcher = true;
    bus.say();
    await vi.advanceTimersByTimeAsync(500);
    expect(changes).toEqual(['shown', 'hidden', 'shown']);
    host.stop();
    expect(bus.watching).toBe(0);
    bus.say();
    await vi.advanceTimersByTimeAsync(500);
    expect(changes).toHaveLength(3);
  });
});
