import { describe, expect, it } from 'vitest';
import {
  isDue,
  type MemoryWaiter,
  standsAs,
  staysUntilMs,
  TURNOVER_PACE,
} from '../../../electron/core/gateway/turnover.ts';

describe('a model that was loaded for a turn', () => {
  it('stays while its session is likely to go on, and no longer than its residency', () => {
    expect(staysUntilMs({ loadedAtMs: 0, usedAtMs: 10_000 }, 12_000)).toBe(15_000);
    expect(staysUntilMs({ loadedAtMs: 0, usedAtMs: 10_000 }, 15_000)).toBeNull();
    expect(staysUntilMs({ loadedAtMs: 0, usedAtMs: 29_000 }, 29_500)).toBe(30_000);
    expect(staysUntilMs({ loadedAtMs: 0, usedAtMs: 40_000 }, 40_001)).toBeNull();
  });
});

describe('one that waits for memory', () => {
  const waiter = (change: Partial<MemoryWaiter>): MemoryWaiter => ({
    modelId: 'r/a',
    deviceId: 'd',
    class: 'interactive',
    sinceMs: 0,
    ...change,
  });

  it('has others stand back after a while, batch later than interactive', () => {
    expect(isDue(waiter({}), 19_999)).toBe(false);
    expect(isDue(waiter({}), 20_000)).toBe(true);
    expect(isDue(waiter({ class: 'batch' }), 20_000)).toBe(false);
    expect(isDue(waiter({ class: 'batch' }), 60_000)).toBe(true);
  });

  it('has batch that has waited its time make way no more than a person does, or it would never come', () => {
    expect(standsAs('batch', 59_999)).toBe('batch');
    expect(standsAs('batch', 60_000)).toBe('interactive');
    expect(standsAs('interactive', 0)).toBe('interactive');
  });

  it('has batch stand back at once where it is interactive, and not for ever either', () => {
    const due = (nowMs: number, turnClass: 'interactive' | 'batch') =>
      isDue(waiter({}), nowMs, TURNOVER_PACE, turnClass);
    expect([due(0, 'interactive'), due(0, 'batch')]).toEqual([false, true]);
    expect([due(59_999, 'batch'), due(60_000, 'batch'), due(80_000, 'batch')]).toEqual([true, false, true]);
    expect(isDue(waiter({ class: 'batch' }), 0, TURNOVER_PACE, 'batch')).toBe(false);
  });

  it('does not hold them back for ever', () => {
    expect(isDue(waiter({}), 79_999)).toBe(true);
    expect(isDue(waiter({}), 80_000)).toBe(false);
    expect(isDue(waiter({}), 100_000)).toBe(true);
  });
});
