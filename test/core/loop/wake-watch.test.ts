import { expect, it } from 'vitest';
import { WakeWatch } from '../../../electron/core/loop/wake-watch.ts';

it('sees a resume by boot time running ahead of monotonic time, once (rule 6)', () => {
  const clock = { bootMs: 100_000, monotonicMs: 90_000 };
  const watch = new WakeWatch(() => clock.bootMs, { monotonicMs: () => clock.monotonicMs, epochMs: () => 0 });
  expect(watch.look()).toBe(false);
  expect(watch.resumedAtMs).toBeNull();
  clock.bootMs += 500;
  clock.monotonicMs += 500;
  expect(watch.look()).toBe(false);
  // Boot time is read in steps of 10 ms: that is no sleep.
  clock.bootMs += 510;
  clock.monotonicMs += 500;
  expect(watch.look()).toBe(false);
  clock.bootMs += 3_600_500;
  clock.monotonicMs += 500;
  expect(watch.look()).toBe(true);
  expect(watch.resumedAtMs).toBe(91_500);
  expect(watch.suspendedMs).toBe(3_600_010);
  expect(watch.look()).toBe(false);
});
