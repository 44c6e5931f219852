import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { bucketOf } from './downsample.ts';
import type { StoredSample } from './event-store.ts';
import { SAMPLE_STEPS } from './retention.ts';
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
    for (const { stepMs } of SAMPLE_STEPS) {
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
      if ((sample.used?.length ?? 0) > 0) {
        const used = Object.fromEntries((sample.used ?? []).map((id) => [id, true]));
        use.run(JSON.stringify(used), stepMs, bucketOf(sample.atMs, stepMs), sample.deviceId);
      }
    }
  }
}

/** Fine rows where they still are, coarse ones before them; oldest first. */
export function readSamples(db: DatabaseSync, query: SampleQuery): readonly StoredSample[] {
  const [fine, coarse] = SAMPLE_STEPS;
  if (fine === undefined || coarse === undefined) return [];
  const device = query.deviceId === undefined ? '' : 'AND device_id = ?';
  const deviceValues: readonly SQLInputValue[] = query.deviceId === undefined ? [] : [query.deviceId];
  const until = query.untilMs ?? Number.MAX_SAFE_INTEGER;
  const oldestFine = db
    .prepare(`SELECT min(bucket_ms) AS at FROM samples WHERE step_ms = ? ${device}`)
    .get(fine.stepMs, ...deviceValues)?.at;
  // A coarse bucket that is partly covered by fine rows is left out.
  const fineFrom = typeof oldestFine === 'number' ? oldestFine : Number.MAX_SAFE_INTEGER;
  // With max() SQLite takes the other columns from the row that has it (https://sqlite.org/lang_select.html#bareagg).
  const every = query.stepMs === undefined ? null : Math.max(1, Math.trunc(query.stepMs));
  const read = db.prepare(
    `SELECT *${every === null ? '' : ', max(coalesce(used_bytes, -1))'} FROM samples WHERE step_ms = ? AND bucket_ms >= ? AND bucket_ms < ? ${device} AND at_ms >= ? AND at_ms <= ?
     ${every === null ? '' : `GROUP BY bucket_ms / ${every}, device_id`} ORDER BY bucket_ms, device_id`,
  );
  const rows = [
    ...read.all(coarse.stepMs, 0, bucketOf(fineFrom, coarse.stepMs), ...deviceValues, query.sinceMs, until),
    ...read.all(fine.stepMs, 0, Number.MAX_SAFE_INTEGER, ...deviceValues, query.sinceMs, until),
  ];
  const bytes = (value: unknown) => (typeof value === 'number' ? value : null);
  return rows.map((row) => ({
    atMs: Number(row.at_ms),
    deviceId: String(row.device_id),
    totalBytes: bytes(row.total_bytes),
    usedBytes: bytes(row.used_bytes),
    freeBytes: bytes(row.free_bytes),
    gttUsedBytes: bytes(row.gtt_used_bytes),
    tenants: JSON.parse(String(row.tenants)),
    ...usedOf(row.used),
  }));
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
