import { describe, expect, it } from 'vitest';
import { setSince, wallOffset } from '../../../electron/core/loop/wall-offset.ts';
import { movedBy, WallWatch } from '../../../electron/core/loop/wall-watch.ts';
import { NO_WISHES, readWishes, WishKeeper } from '../../../electron/core/loop/wishes.ts';
import { ok } from '../../../shared/errors.ts';

const HOUR_MS = 3_600_000;
const asleep = { ...NO_WISHES, sleep: { sinceMs: 1_000, untilMs: 1_000 + 2 * HOUR_MS } };

describe('what is asked for "for two hours" takes two hours of the machine’s own time', () => {
  it('sees a clock that is set forth and back, once each, and no suspend for one', () => {
    const now = { bootMs: 50_000, epochMs: 1_000_000, monotonicMs: 50_000 };
    const watch = new WallWatch(() => now.bootMs, {
      epochMs: () => now.epochMs,
      monotonicMs: () => now.monotonicMs,
    });
    const pass = (ms: number): void => {
      now.bootMs += ms;
      now.epochMs += ms;
    };
    pass(500);
    expect(watch.look()).toBe(0);
    // Suspended: boot time and the wall go on together, monotonic time does not.
    pass(9 * HOUR_MS);
    expect(watch.look()).toBe(0);
    now.epochMs += 24 * HOUR_MS;
    pass(500);
    expect(watch.look()).toBe(24 * HOUR_MS);
    expect(watch.look()).toBe(0);
    now.epochMs -= 48 * HOUR_MS;
    expect(watch.look()).toBe(-48 * HOUR_MS);
    // Slewed by 500 millionths: nothing, until it has come together.
    for (let hour = 0; hour < 2; hour += 1) now.epochMs += 900;
    expect(watch.look()).toBe(0);
    now.epochMs += 900;
    expect(watch.look()).toBe(2_700);
  });

  it('moves the end of a sleep and of a pause with the clock, and nothing where there is none', () => {
    expect(movedBy(HOUR_MS, NO_WISHES)).toBeNull();
    expect(movedBy(0, asleep)).toBeNull();
    expect(movedBy(-HOUR_MS, asleep)).toEqual({
      sleep: { sinceMs: 1_000 - HOUR_MS, untilMs: 1_000 + HOUR_MS },
    });
    const guards = { mode: null, pausedUntilMs: 5_000, perBackend: {} };
    expect(movedBy(1_000, { ...NO_WISHES, guards, sleep: { sinceMs: 1, untilMs: null } })).toEqual({
      guards: { ...guards, pausedUntilMs: 6_000 },
      sleep: { sinceMs: 1_001, untilMs: null },
    });
  });

  it('also where the clock was set between two runs of one boot; after another boot the date stands', async () => {
    let kept: unknown = null;
    const store = {
      async set(_key: string, value: unknown) {
        kept = value;
        return ok(undefined);
      },
      get: async () => kept,
    };
    const before = { bootId: 'one', offsetMs: 1_000_000, monotonicMs: 1_000_000 };
    new WishKeeper(store, () => before).write(asleep);
    const read = async (bootId: string, offsetMs: number, monotonicMs = offsetMs) =>
      (await readWishes(store, { bootId, offsetMs, monotonicMs })).sleep;
    expect(await read('one', 1_000_400)).toEqual(asleep.sleep);
    expect(await read('one', 1_000_000 + HOUR_MS)).toEqual({
      sinceMs: 1_000 + HOUR_MS,
      untilMs: 1_000 + 3 * HOUR_MS,
    });
    // Suspended for as long besides.
    expect((await read('one', 1_000_000 + HOUR_MS, 1_000_000 + 2 * HOUR_MS))?.sinceMs).toBe(1_000 + HOUR_MS);
    // A container that was started anew, and is told its own uptime.
    expect(await read('one', 1_000_000 + HOUR_MS, 1_000_000)).toEqual(asleep.sleep);
    expect(await read('two', 1_000_000 + HOUR_MS)).toEqual(asleep.sleep);
    kept = asleep;
    expect(await read('one', 1_000_000 + HOUR_MS)).toEqual(asleep.sleep);
  });

  it('compares with this machine’s own boot', () => {
    expect(setSince(wallOffset(), wallOffset())).toBe(0);
    for (const odd of [null, 5, {}, { bootId: null }, { bootId: 'one', offsetMs: 'x', monotonicMs: 0 }])
      expect(setSince(odd, { bootId: 'one', offsetMs: 0, monotonicMs: 0 })).toBe(0);
  });
});
