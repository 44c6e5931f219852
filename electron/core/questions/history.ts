import type { DeviceHistory } from '../../../shared/questions.ts';
import type { StoredSample } from '../events/event-store.ts';
import { keptStepMs } from '../events/sample-steps.ts';

/** Rows are at least this long apart (downsample.ts). */
const ROW_MS = 10_000;
/** As many as can be told apart by colour; the rest is one band. */
const MOST_TENANTS = 9;
export const REST = 'rest';

/** How long a point of the answer stands for: whole rows, and at most `points` of them. */
export function stepFor(fromMs: number, toMs: number, points: number): number {
  const spanMs = Math.max(ROW_MS, toMs - fromMs);
  return Math.max(1, Math.ceil(spanMs / Math.max(1, points) / ROW_MS)) * ROW_MS;
}

/**
 * Samples (oldest first, of any devices) as columns for a chart. Where nothing was recorded for three
 * steps a column of nulls stands, so that no line is drawn over a night the machine was off. Pure.
 */
export function historyColumns(
  samples: readonly StoredSample[],
  stepMs: number,
  nowMs: number,
): readonly DeviceHistory[] {
  const byDevice = Map.groupBy(samples, (sample) => sample.deviceId);
  return [...byDevice].map(([deviceId, rows]) =>
    deviceColumns(deviceId, thinned(rows, stepMs), stepMs, nowMs),
  );
}

/** The last, not yet written rows may share a step with the last written one: the fullest stands. */
function thinned(rows: readonly StoredSample[], stepMs: number): readonly StoredSample[] {
  const kept: StoredSample[] = [];
  for (const row of rows) {
    const last = kept.at(-1);
    if (last === undefined || Math.floor(last.atMs / stepMs) !== Math.floor(row.atMs / stepMs))
      kept.push(row);
    else if ((row.usedBytes ?? -1) > (last.usedBytes ?? -1)) kept[kept.length - 1] = row;
  }
  return kept;
}

function deviceColumns(
  deviceId: string,
  rows: readonly StoredSample[],
  stepMs: number,
  nowMs: number,
): DeviceHistory {
  const points: { readonly atMs: number; readonly row: StoredSample | null }[] = [];
  let before: number | null = null;
  for (const row of rows) {
    const gapMs = 3 * Math.max(stepMs, keptStepMs(nowMs - row.atMs));
    if (before !== null && row.atMs - before > gapMs) points.push({ atMs: before + stepMs, row: null });
    points.push({ atMs: row.atMs, row });
    before = row.atMs;
  }
  const shown = largest(rows);
  const named = new Set(shown);
  const rest = points.map(({ row }) => (row === null ? null : restBytes(row, named)));
  return {
    deviceId,
    atMs: points.map((point) => point.atMs),
    totalBytes: points.map(({ row }) => row?.totalBytes ?? null),
    usedBytes: points.map(({ row }) => row?.usedBytes ?? null),
    freeBytes: points.map(({ row }) => row?.freeBytes ?? null),
    gttUsedBytes: points.map(({ row }) => row?.gttUsedBytes ?? null),
    tenants: [
      ...shown.map((id) => ({
        id,
        // Who is not in a row held nothing then; who is in it without a figure is unknown.
        bytes: points.map(({ row }) =>
          row === null ? null : Object.hasOwn(row.tenants, id) ? (row.tenants[id] ?? null) : 0,
        ),
      })),
      ...(rest.some((bytes) => (bytes ?? 0) > 0) ? [{ id: REST, bytes: rest }] : []),
    ],
  };
}

function largest(rows: readonly StoredSample[]): readonly string[] {
  const peaks = new Map<string, number>();
  for (const row of rows)
    for (const [id, bytes] of Object.entries(row.tenants))
      peaks.set(id, Math.max(peaks.get(id) ?? 0, bytes ?? 0));
  return [...peaks]
    .filter(([, peak]) => peak > 0)
    .sort(([one, a], [other, b]) => rank(one) - rank(other) || b - a || (one < other ? -1 : 1))
    .slice(0, MOST_TENANTS)
    .map(([id]) => id);
}

/** The desktop is always shown, and at the bottom. */
function rank(id: string): number {
  return id.startsWith('desktop@') ? 0 : 1;
}

function restBytes(row: StoredSample, named: ReadonlySet<string>): number {
  return Object.entries(row.tenants).reduce(
    (sum, [id, bytes]) => (named.has(id) ? sum : sum + (bytes ?? 0)),
    0,
  );
}
