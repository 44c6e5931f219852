import type { DatabaseSync } from 'node:sqlite';
import { pruneRequests } from './request-rows.ts';
import { SAMPLE_STEPS } from './sample-steps.ts';
import type { Retention } from './store-protocol.ts';

export const DEFAULT_RETENTION: Retention = {
  eventMaxAgeMs: 365 * 86_400_000,
  eventMaxRows: 200_000,
};

/** Rows a step deletes of a kind: a few milliseconds, in which an eviction's event may be waiting. */
const BATCH_ROWS = 500;

/** Deletes one batch of what is past its time, and gives pages back; true when there is more. */
export function pruneStep(db: DatabaseSync, retention: Retention, nowMs: number): boolean {
  let deleted = run(
    db,
    'DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at_ms < ? ORDER BY at_ms LIMIT ?)',
    nowMs - retention.eventMaxAgeMs,
  );
  const surplus =
    Number(db.prepare('SELECT count(*) AS count FROM events').get()?.count ?? 0) - retention.eventMaxRows;
  let more = deleted === BATCH_ROWS;
  if (surplus > 0) {
    deleted = Number(
      db
        .prepare('DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT ?)')
        .run(Math.min(surplus, BATCH_ROWS)).changes,
    );
    more ||= surplus > BATCH_ROWS;
  }
  for (const { stepMs, keepMs } of SAMPLE_STEPS) {
    deleted = run(
      db,
      `DELETE FROM samples WHERE (step_ms, bucket_ms, device_id) IN
         (SELECT step_ms, bucket_ms, device_id FROM samples WHERE step_ms = ${stepMs} AND bucket_ms < ? LIMIT ?)`,
      nowMs - keepMs,
    );
    more ||= deleted === BATCH_ROWS;
  }
  more = pruneRequests(db, nowMs, BATCH_ROWS) || more;
  db.exec('PRAGMA incremental_vacuum(64)');
  return more;
}

function run(db: DatabaseSync, sql: string, before: number): number {
  return Number(db.prepare(sql).run(before, BATCH_ROWS).changes);
}
