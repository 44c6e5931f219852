import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { unloadsBeforeSuspend } from '../../electron/shell/power.ts';
import { ok } from '../../shared/errors.ts';
import {
  createFakeBus,
  createFakeDeskSet,
  type FakeDeskChange,
  type FakeDeskSet,
} from '../support/fake-desk.ts';
import { sampleAgent, sampleModel, sampleState } from '../support/fake-runtime.ts';

const NOON = Date.UTC(2026, 2, 4, 12);

beforeEach(() => {
  vi.useFakeTimers({ now: NOON });
});
afterEach(() => {
  vi.useRealTimers();
});

async function started(change: FakeDeskChange = {}): Promise<FakeDeskSet> {
  const set = createFakeDeskSet(change);
  const begun = set.desk.start();
  await vi.advanceTimersByTimeAsync(10_000);
  await begun;
  return set;
}

/** As the runtime does after a change. */
async function publish(
  set: FakeDeskSet,
  change: Parameters<FakeDeskSet['source']['runtime']['publish']>[0],
): Promise<void> {
  set.source.runtime.publish(change);
  await vi.advanceTimersByTimeAsync(6_000);
}

const tooltip = (set: FakeDeskSet): string => set.electron.trays[0]?.tooltip ?? '';
const idle = { models: sampleState().models.map((model) => ({ ...model, busy: false })) };

describe('desk: never the only way back', () => {
  it('opens no window where the tray shows the app', async () => {
    const set = await started();
    expect(set.opened).toEqual([]);
    expect(set.desk.onClose()).toBe('hide');
    set.desk.stop();
  });

  it('opens the window where nobody shows it, and does as set when that is closed', async () => {
    for (const [change, onClose] of [
      [{ hasWatcher: false }, 'quit'],
      [{ hasWatcher: null }, 'quit'],
      [{ items: {} }, 'minimize'],
    ] as const) {
      const set = await started({
        bus: Object.assign(createFakeBus(), change),
        settings: { closeWithoutTray: onClose },
      });
      expect(set.opened, JSON.stringify(change)).toEqual([{ kind: 'home' }]);
      expect(set.desk.onClose()).toBe(onClose);
      set.desk.stop();
    }
  });

  it('opens it when the panel goes away later', async () => {
    const set = await started();
    set.bus.hasWatcher = false;
    set.bus.say();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(set.opened).toEqual([{ kind: 'home' }]);
    set.desk.stop();
  });

  it('asks no bus where the system has a tray of its own', async () => {
    const set = await started({ bus: null });
    expect(set.desk.onClose()).toBe('hide');
    expect(set.opened).toEqual([]);
    set.desk.stop();
  });

  it('says once that closing the window only hides it', async () => {
    const set = await started();
    set.desk.hidden();
    set.desk.hidden();
    await vi.advanceTimersByTimeAsync(10);
    expect(set.electron.notifications).toHaveLength(1);
    expect(set.electron.notifications[0]?.options.title).toBe('VRAM Landlord goes on guarding');
    expect(set.settings.get().closeNoticeShown).toBe(true);
    set.desk.stop();
  });

  it('says it the next time, where nobody could see it', async () => {
    const set = await started();
    set.bus.hasNotifications = false;
    set.desk.hidden();
    await vi.advanceTimersByTimeAsync(10);
    expect(set.settings.get().closeNoticeShown).toBe(false);
    set.bus.hasNotifications = true;
    set.desk.hidden();
    await vi.advanceTimersByTimeAsync(10);
    expect(set.electron.notifications).toHaveLength(1);
    set.desk.stop();
  });
});

describe('desk: what happens is told', () => {
  const evicted = {
    kind: 'evicted',
    model: 'router/vision-27b',
    reason: 'Unloaded vision-27b: it was idle.',
  } as const;

  it('leads a click to the window at that event', async () => {
    const set = await started();
    const { id } = set.source.runtime.append(evicted);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(set.electron.notifications).toHaveLength(1);
    set.electron.notifications[0]?.click();
    expect(set.opened).toEqual([{ kind: 'event', id }]);
    set.desk.stop();
  });

  it('does not speak to a desktop that has nobody to show it: that would block the app', async () => {
    for (const hasNotifications of [false, null]) {
      const set = await started({ bus: Object.assign(createFakeBus(), { hasNotifications }) });
      set.source.runtime.append(evicted);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(set.electron.notifications).toEqual([]);
      set.desk.stop();
    }
  });

  it('is silent while the window is in front, and after it has come there', async () => {
    const set = await started();
    set.look.inFront = true;
    set.source.runtime.append(evicted);
    await vi.advanceTimersByTimeAsync(60_000);
    set.look.inFront = false;
    set.source.runtime.append(evicted);
    await vi.advanceTimersByTimeAsync(500);
    set.look.inFront = true;
    set.desk.windowShown();
    set.look.inFront = false;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(set.electron.notifications).toEqual([]);
    set.desk.stop();
  });

  it('offers the last eviction in the menu, from before the start too', async () => {
    const set = createFakeDeskSet();
    set.source.runtime.append({ ...evicted, kind: 'killed' });
    const begun = set.desk.start();
    await vi.advanceTimersByTimeAsync(1_000);
    await begun;
    set.electron.choose('Last eviction: vision-27b', 'Load again');
    await vi.advanceTimersByTimeAsync(10);
    expect(set.source.runtime.commands).toEqual([{ type: 'load', model: 'router/vision-27b', force: false }]);
    set.desk.stop();
  });
});

describe('desk: agents of the embedded engine', () => {
  it('whose contexts move out are not the last eviction: they come back by themselves', async () => {
    const set = createFakeDeskSet();
    const context = { kind: 'evicted', model: 'embedded/tiny', session: 'smol', reason: 'It left.' } as const;
    set.source.runtime.append({ kind: 'evicted', model: 'router/vision-27b', reason: 'Unloaded.' });
    set.source.runtime.append(context);
    const begun = set.desk.start();
    await vi.advanceTimersByTimeAsync(1_000);
    await begun;
    set.source.runtime.append(context);
    await publish(set, {});
    expect(set.electron.menuText()).toContain('Last eviction: vision-27b');
    set.desk.stop();
  });

  it('keep the machine awake while they generate', async () => {
    const set = await started();
    await publish(set, {
      ...idle,
      agents: [sampleAgent({ agent: 'smol', model: 'embedded/tiny', state: 'generating' })],
    });
    expect(set.electron.menuText()).toContain('Keeps the machine awake: tiny for smol');
    expect(set.electron.menuText()).toContain('Agents: smol generating');
    set.desk.stop();
  });
});

describe('desk: a turn keeps the machine awake', () => {
  it('while it lasts and a moment longer, and the menu says so', async () => {
    const set = await started();
    await publish(set, {});
    expect(set.inhibitors.block).toMatchObject({ state: 'held', why: 'A model is answering: coder-9b' });
    expect(set.electron.menuText()).toContain('Keeps the machine awake: coder-9b');
    await publish(set, idle);
    expect(set.inhibitors.block.state).toBe('held');
    await vi.advanceTimersByTimeAsync(30_000);
    expect(set.inhibitors.block.state).toBe('free');
    expect(set.electron.menuText()).not.toContain('awake');
    set.desk.stop();
  });

  it('says where that is not granted', async () => {
    const set = await started({ lock: 'refused' });
    await publish(set, {});
    expect(set.electron.menuText()).toContain('In a turn: coder-9b (the machine may sleep all the same)');
    set.desk.stop();
  });

  it('not for a runtime that is lost', async () => {
    const set = await started();
    await publish(set, {});
    set.source.changeLink('lost');
    await vi.advanceTimersByTimeAsync(40_000);
    expect(set.inhibitors.block.state).toBe('free');
    expect(tooltip(set)).toBe('VRAM Landlord\nIt is lost.');
    set.desk.stop();
  });
});

describe('desk: suspend, resume, shutdown', () => {
  it('unloads big idle models first where that is set, while logind waits', async () => {
    const set = await started({ settings: { unloadBeforeSuspend: true } });
    await publish(set, idle);
    expect(set.inhibitors.delay.state).toBe('held');
    const { promise, resolve } = Promise.withResolvers<void>();
    set.source.runtime.answer = async () => {
      await promise;
      return ok({ message: 'Gone.' });
    };
    set.electron.power('suspend');
    await vi.advanceTimersByTimeAsync(100);
    expect(set.source.runtime.commands).toEqual([{ type: 'unload', model: 'router/coder-9b', force: false }]);
    expect(set.inhibitors.delay.state).toBe('held');
    resolve();
    await vi.advanceTimersByTimeAsync(100);
    expect(set.inhibitors.delay.state).toBe('free');
    set.electron.power('resume');
    expect(set.inhibitors.delay.state).toBe('held');
    set.desk.stop();
    expect(set.inhibitors.delay.state).toBe('free');
  });

  it('does not hold the machine up for a model that does not leave', async () => {
    const set = await started({ settings: { unloadBeforeSuspend: true } });
    await publish(set, idle);
    set.source.runtime.answer = () => new Promise(() => {});
    set.electron.power('suspend');
    await vi.advanceTimersByTimeAsync(4_500);
    expect(set.inhibitors.delay.state).toBe('free');
    set.desk.stop();
  });

  it('cuts nothing off, and leaves kept and small ones', () => {
    const model = (id: string, change: object) =>
      sampleModel({ id, status: 'loaded', big: true, busy: false, ...change });
    const models = [
      model('r/idle', {}),
      model('r/busy', { busy: true }),
      model('r/unknown', { busy: null }),
      model('r/kept', { pinned: true }),
      model('r/small', { big: false }),
      model('r/away', { status: 'unloaded' }),
    ];
    expect(unloadsBeforeSuspend({ models })).toEqual([{ type: 'unload', model: 'r/idle', force: false }]);
  });

  it('holds the suspend up from when that is set until it is no more', async () => {
    const set = await started();
    const choose = async (): Promise<void> => {
      set.electron.choose('Settings', 'Unload big models before the machine sleeps');
      await vi.advanceTimersByTimeAsync(1_000);
    };
    await choose();
    expect(set.inhibitors.delay.state).toBe('held');
    await choose();
    expect(set.inhibitors.delay.state).toBe('free');
    set.desk.stop();
  });

  it('unloads nothing where that is not set', async () => {
    const set = await started();
    await publish(set, idle);
    expect(set.inhibitors.delay.state).toBe('free');
    set.electron.power('suspend');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(set.source.runtime.commands).toEqual([]);
    set.desk.stop();
  });

  it('trusts no reading from before the resume', async () => {
    const set = await started();
    await publish(set, {});
    expect(set.electron.trays[0]?.image).toBe('/icons/fine.png');
    set.electron.power('suspend');
    set.electron.power('resume');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(set.electron.trays[0]?.image).toBe('/icons/stale.png');
    const devices = sampleState().devices.map((one) => ({ ...one, sampledAt: new Date().toISOString() }));
    await publish(set, { devices });
    expect(set.electron.trays[0]?.image).toBe('/icons/fine.png');
    set.desk.stop();
  });

  it('quits in order at a shutdown', async () => {
    const set = await started();
    const preventDefault = vi.fn();
    set.electron.power('shutdown', { preventDefault });
    expect(preventDefault).toHaveBeenCalled();
    expect(set.quits()).toBe(1);
    set.desk.stop();
  });
});

describe('desk: what left for a game', () => {
  const game = (gigabytes: number | null) => ({
    restorable: ['router/vision-27b'],
    tenants:
      gigabytes === null
        ? []
        : [
            {
              id: 'game',
              kind: 'foreign' as const,
              name: 'game',
              deviceId: 'pci:0000:03:00.0',
              predictedBytes: null,
              measuredBytes: gigabytes * 1e9,
              pids: [9],
            },
          ],
  });

  it('comes back by itself, unless that is turned off', async () => {
    for (const bringBack of [true, false]) {
      const set = await started({ settings: { bringBack } });
      await publish(set, { restorable: [] });
      for (let round = 0; round < 3; round += 1) await publish(set, game(8));
      for (let round = 0; round < 6; round += 1) await publish(set, game(null));
      const restores = set.source.runtime.commands.filter((command) => command.type === 'restore');
      expect(restores).toHaveLength(bringBack ? 1 : 0);
      expect(set.electron.notifications.map(({ options }) => [options.title, options.body])).toEqual(
        bringBack ? [['The memory is free again', 'Did restore.']] : [],
      );
      set.desk.stop();
    }
  });
});

describe('desk: what comes back by itself', () => {
  it('is not told where only what is needed is, or in quiet hours', async () => {
    for (const settings of [
      { notifications: 'needed' },
      { quietHours: { fromMinute: 0, toMinute: 24 * 60 - 1 } },
    ] as const) {
      const set = await started({ settings });
      await publish(set, { restorable: [] });
      const [card] = sampleState().devices;
      const tenant = {
        kind: 'foreign',
        name: 'game',
        deviceId: card?.id ?? '',
        predictedBytes: null,
      } as const;
      const restorable = ['router/vision-27b'];
      const tenants = [{ ...tenant, id: 'game', measuredBytes: 8e9, pids: [9] }];
      for (let round = 0; round < 3; round += 1) await publish(set, { restorable, tenants });
      for (let round = 0; round < 6; round += 1) await publish(set, { restorable, tenants: [] });
      expect(set.source.runtime.commands).toContainEqual({ type: 'restore' });
      expect(set.electron.notifications).toEqual([]);
      set.desk.stop();
    }
  });
});

describe('desk: its end', () => {
  it('leaves nothing behind', async () => {
    const set = await started();
    await publish(set, {});
    set.source.runtime.append({ kind: 'driver_eviction', reason: 'x' });
    await vi.advanceTimersByTimeAsync(100);
    const [shown] = set.electron.notifications;
    set.desk.stop();
    expect(shown?.closed).toBe(true);
    expect(set.bus.watching).toBe(0);
    expect(set.inhibitors.block.state).toBe('free');
    expect(set.source.runtime.stateListeners() + set.source.runtime.eventListeners()).toBe(0);
    const { menus } = set.electron.trays[0] ?? { menus: -1 };
    await publish(set, { restorable: [] });
    expect(set.electron.trays[0]?.menus).toBe(menus);
  });
});
