import { expect, it } from 'vitest';
import type { StoredSample } from '../../../electron/core/events/event-store.ts';
import { LearnedFloors } from '../../../electron/core/loop/learned-floors.ts';
import { ok } from '../../../shared/errors.ts';

const GB = 1_000_000_000;
const HOUR_MS = 3_600_000;
const NOW = Date.UTC(2026, 2, 4);

/** Six hours of a desktop that grows by so much within each ten minutes. */
function hours(fromMs: number, growthBytes: number): readonly StoredSample[] {
  return Array.from({ length: 6 * 360 }, (_, at) => ({
    atMs: fromMs + at * 10_000,
    deviceId: 'sim:0',
    totalBytes: 24 * GB,
    usedBytes: null,
    freeBytes: null,
    gttUsedBytes: null,
    tenants: { 'desktop@sim:0': GB + (at % 60 < 30 ? 0 : growthBytes) },
  }));
}

it('a floor is learnt from the last two days, and not from a time that a clock set ahead has made up', async () => {
  const rows = [...hours(NOW - 6 * HOUR_MS, GB), ...hours(NOW + 10_000 * HOUR_MS, 8 * GB)];
  const floors = new LearnedFloors({
    samples: async ({ sinceMs, untilMs = Number.MAX_VALUE }) =>
      ok(rows.filter(({ atMs }) => atMs >= sinceMs && atMs <= untilMs)),
  });
  await floors.learn([{ id: 'sim:0' }], NOW);
  expect(floors.learned('sim:0')).toBe(GB);
  expect(floors.levels('sim:0')?.busyBytes).toBe(2 * GB);
});
