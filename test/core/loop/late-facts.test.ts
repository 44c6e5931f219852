import { describe, expect, it } from 'vitest';
import { NO_WISHES, withLateWishes } from '../../../electron/core/loop/wishes.ts';

describe('what a log had kept that opened only after the start', () => {
  const kept = {
    pins: { 'router/a': true, 'router/b': true },
    sleep: { sinceMs: 1_000, untilMs: null },
    guards: { mode: 'observe', pausedUntilMs: null, perBackend: {} },
    restorable: ['router/a'],
    loadAnyway: [],
  };

  it('is in force again, and what was wished since goes before it', () => {
    expect(withLateWishes(NO_WISHES, kept, null)).toEqual(kept);
    const since = { ...NO_WISHES, pins: { 'router/b': false, 'router/c': true }, restorable: ['router/c'] };
    expect(withLateWishes(since, kept, null)).toEqual({
      ...kept,
      pins: { 'router/a': true, 'router/b': false, 'router/c': true },
      restorable: ['router/a', 'router/c'],
    });
    const pause = { mode: null, pausedUntilMs: 9_000, perBackend: {} };
    expect(withLateWishes({ ...NO_WISHES, guards: pause }, kept, null).guards).toEqual(pause);
    expect(withLateWishes(since, 'garbage', null)).toEqual(since);
  });
});
