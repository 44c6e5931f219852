import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { bucketOf } from './downsample.ts';
import type { StoredSample } from './event-store.ts';
import { SAMPLE_STEPS, stepsToRead, tellsUse } from './sample-steps.ts';
import type { SampleQuery } from './store-protocol.ts';

/** A row for each step; the fullest reading of a bucket stays. The caller holds the transaction. */
export function writeSamples(db: DatabaseSync, samples: readonly StoredSample[]): void {
  const put = db.prepare(
    `INSERT INTO samples
       (step_ms, bucket_ms, device_id, at_ms, total_bytes, used_bytes, free_bytes, gtt_used_bytes, tenants, used)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET
       at_ms = excluded.at_ms, total_bytes = excluded.total_bytes, used_bytes = excluded.used_bytes,
       free_bytes = excluded.free_bytes, gtt_used_bytes = excluded.gtt_used_bytes, tenants = excluded.tenants
     WHERE excluded.used_bytes > coalesce(used_bytes, -1)`,
  );
  // Who was used counts whichever reading is the fullest.
  const use = db.prepare(
    'UPDATE samples SET used = json_patch(used, ?) WHERE step_ms = ? AND bucket_ms = ? AND device_id = ?',
  );
  for (const sample of samples) {
    if (!Number.isSafeInteger(Math.trunc(sample.atMs))) continue;
    for (const step of SAMPLE_STEPS) {
      const { stepMs } = step;
      put.run(
        stepMs,
        bucketOf(sample.atMs, stepMs),
        sample.deviceId,
        Math.trunc(sample.atMs),
        whole(sample.totalBytes),
        whole(sample.usedBytes),
        whole(sample.freeBytes),
        whole(sample.gttUsedBytes),
        JSON.stringify(sample.tenants),
        '{}',
      );
      if (tellsUse(step) && (sample.used?.length ?? 0) > 0) {
        const used = Object.fromEntries((sample.used ?? []).map((id) => [id, true]));
        use.run(JSON.stringify(used), stepMs, bucketOf(sample.atMs, stepMs), sample.deviceId);
      }
    }
  }
}

/**
 * The rows of the coarsest step that is fine enough, and coarser ones for the time before that step was
 * kept or began; oldest first. Each part is a range of the primary key, so that as many rows are read
 * as the step has in the time; what a row says of tenants is parsed only where it is given out.
 */
export function readSamples(db: DatabaseSync, query: SampleQuery): readonly StoredSample[] {
  const { sinceMs, deviceId, stepMs } = query;
  const untilMs = query.untilMs ?? Number.MAX_SAFE_INTEGER;
  const device = deviceId === undefined ? '' : 'AND device_id = ?';
  const deviceValues: readonly SQLInputValue[] = deviceId === undefined ? [] : [deviceId];
  // Of any device, since that is one look into the index: rows of all devices are kept as long.
  const oldest = db.prepare('SELECT min(bucket_ms) AS at FROM samples WHERE step_ms = ?');
  const read = db.prepare(
    `SELECT * FROM samples WHERE step_ms = ? AND bucket_ms >= ? AND bucket_ms < ? ${device}
       AND at_ms >= ? AND at_ms <= ? ORDER BY bucket_ms, device_id`,
  );
  const parts: Row[][] = [];
  let before = Number.MAX_SAFE_INTEGER;
  for (const step of stepsToRead(stepMs)) {
    // A bucket that a finer step covers in part is left out.
    const end = Math.min(bucketOf(before, step.stepMs), untilMs + 1);
    const from = bucketOf(Math.max(0, sinceMs), step.stepMs);
    if (from >= end) break;
    parts.unshift(read.all(step.stepMs, from, end, ...deviceValues, sinceMs, untilMs));
    const begins = oldest.get(step.stepMs)?.at;
    if (typeof begins !== 'number') continue;
    if (begins <= from) break;
    before = Math.min(before, begins);
  }
  const rows = parts.flat();
  return (stepMs === undefined ? rows : fullestOfEach(rows, Math.max(1, Math.trunc(stepMs)))).map(toSample);
}

type Row = Readonly<Record<string, unknown>>;

/** One row for each step and device. `rows` by time. */
function fullestOfEach(rows: readonly Row[], stepMs: number): readonly Row[] {
  const kept: Row[] = [];
  const places = new Map<unknown, { readonly bucket: number; readonly place: number }>();
  for (const row of rows) {
    const bucket = Math.floor(Number(row.at_ms) / stepMs);
    const last = places.get(row.device_id);
    if (last === undefined || last.bucket !== bucket)
      places.set(row.device_id, { bucket, place: kept.push(row) - 1 });
    else if (usedBytesOf(row) > usedBytesOf(kept[last.place])) kept[last.place] = row;
  }
  return kept;
}

function usedBytesOf(row: Row | undefined): number {
  return typeof row?.used_bytes === 'number' ? row.used_bytes : -1;
}

function toSample(row: Row): StoredSample {
  const bytes = (value: unknown) => (typeof value === 'number' ? value : null);
  return {
    atMs: Number(row.at_ms),
    deviceId: String(row.device_id),
    totalBytes: bytes(row.total_bytes),
    usedBytes: bytes(row.used_bytes),
    freeBytes: bytes(row.free_bytes),
    gttUsedBytes: bytes(row.gtt_used_bytes),
    tenants: JSON.parse(String(row.tenants)),
    ...usedOf(row.used),
  };
}

/** `{"router/a":true}`; nothing where nobody was used. */
function usedOf(value: unknown): Pick<StoredSample, 'used'> {
  const used = Object.keys(JSON.parse(String(value)));
  return used.length === 0 ? {} : { used };
}

function whole(bytes: number | null): number | null {
  if (bytes === null) return null;
  const rounded = Math.round(bytes);
  return Number.isSafeInteger(rounded) ? rounded : null;
}
