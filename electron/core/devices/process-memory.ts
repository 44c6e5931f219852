import { plausibleBytes } from './quantity.ts';
import type { ProcessMemory } from './sample.ts';

/**
 * One process on one card as two sources see it. fdinfo may miss ROCm's allocations and kfd misses
 * graphics ones, but what both see is the same bytes: the larger is taken, never the sum.
 */
export function largerOf(a: ProcessMemory, b: ProcessMemory): ProcessMemory {
  return (b.bytes ?? -1) > (a.bytes ?? -1)
    ? { ...b, gttBytes: b.gttBytes ?? a.gttBytes, startTimeTicks: b.startTimeTicks ?? a.startTimeTicks }
    : a;
}

/** One row a (process, card): rows that several sources bring are merged by `largerOf`. */
export function mergeProcesses(rows: readonly ProcessMemory[]): readonly ProcessMemory[] {
  const merged = new Map<string, ProcessMemory>();
  for (const row of rows) {
    const key = `${row.pid} ${row.deviceId}`;
    const before = merged.get(key);
    merged.set(key, before === undefined ? row : largerOf(before, row));
  }
  return [...merged.values()];
}

/** A process can't hold more than its card has in use; a figure that says so was no figure. */
export function plausibleRows(
  rows: readonly ProcessMemory[],
  deviceId: string,
  totalBytes: number | null,
): readonly ProcessMemory[] {
  return rows.map((row) =>
    row.deviceId === deviceId ? { ...row, bytes: plausibleBytes(row.bytes, totalBytes) } : row,
  );
}
