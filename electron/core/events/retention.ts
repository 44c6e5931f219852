import type { DatabaseSync } from 'node:sqlite';
import { SAMPLE_STEPS } from './sample-steps.ts';
import type { Retention } from './store-protocol.ts';

export const DEFAULT_RETENTION: Retention = {
  eventMaxAgeMs: 365 * 86_400_000,
  eventMaxRows: 200_000,
};

/** As long as the coarse samples they stand beside in the history. */
const REQUEST_KEEP_MS = 30 * 86_400_000;
const MOST_REQUESTS = 200_000;

/** Rows a step deletes of a kind: a few milliseconds, in which an eviction's event may be waiting. */
const BATCH_ROWS = 500;

/** The time that is kept is looked at in so many parts, and so many of them must have rows of their own. */
const PARTS = 16;
const LEAST_PARTS = 3;

/** No reading is older than this program; one that says so is of a clock that was not set yet, and hides others. */
const FIRST_READING_MS = Date.UTC(2025, 0);

/** Deletes one batch of what is past its time, and gives pages back; true when there is more. */
export function pruneStep(db: DatabaseSync, retention: Retention, nowMs: number): boolean {
  let more = pruneOldOf(db, 'events', nowMs, retention.eventMaxAgeMs);
  const surplus =
    Number(db.prepare('SELECT count(*) AS count FROM events').get()?.count ?? 0) - retention.eventMaxRows;
  if (surplus > 0) {
    db.prepare('DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT ?)').run(
      Math.min(surplus, BATCH_ROWS),
    );
    more ||= surplus > BATCH_ROWS;
  }
  for (const { stepMs, keepMs } of SAMPLE_STEPS) {
    const ofStep = `samples WHERE step_ms = ${stepMs} AND bucket_ms`;
    const oldMs = nowMs - keepMs;
    if (!isThere(db, ofStep, 0, oldMs)) continue;
    const before = isClockBorneOut(db, ofStep, nowMs, keepMs) ? oldMs : Math.min(oldMs, FIRST_READING_MS);
    const deleted = db
      .prepare(
        `DELETE FROM samples WHERE (step_ms, bucket_ms, device_id) IN
           (SELECT step_ms, bucket_ms, device_id FROM ${ofStep} < ? LIMIT ?)`,
      )
      .run(before, BATCH_ROWS).changes;
    more ||= Number(deleted) === BATCH_ROWS;
  }
  more = pruneOldOf(db, 'requests', nowMs, REQUEST_KEEP_MS) || more;
  const tooMany = db
    .prepare(
      `DELETE FROM requests WHERE id IN
         (SELECT id FROM requests WHERE id <= (SELECT max(id) FROM requests) - ? ORDER BY id LIMIT ?)`,
    )
    .run(MOST_REQUESTS, BATCH_ROWS).changes;
  more ||= Number(tooMany) === BATCH_ROWS;
  more = pruneForRoom(db) || more;
  db.exec('PRAGMA incremental_vacuum(64)');
  return more;
}

/** Of the pages that the file may have: above that readings make room for what has no other place. */
const FULL_SHARE = 0.9;

/**
 * Deletes a batch of the oldest readings where the file is nearly as large as it may be, the finest first, whose
 * time coarser ones tell too; true when that was not enough. A full file would take no event any more, for ever:
 * readings of fifty tenants on two cards get there within a year.
 */
export function pruneForRoom(db: DatabaseSync): boolean {
  if (!isNearlyFull(db)) return false;
  for (const { stepMs } of SAMPLE_STEPS) {
    const deleted = db
      .prepare(
        `DELETE FROM samples WHERE (step_ms, bucket_ms, device_id) IN
           (SELECT step_ms, bucket_ms, device_id FROM samples WHERE step_ms = ? ORDER BY bucket_ms LIMIT ?)`,
      )
      .run(stepMs, BATCH_ROWS).changes;
    if (Number(deleted) > 0) return isNearlyFull(db);
  }
  return false;
}

function isNearlyFull(db: DatabaseSync): boolean {
  const pages = (name: string): number =>
    Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);
  return pages('page_count') - pages('freelist_count') > FULL_SHARE * pages('max_page_count');
}

/**
 * Deletes a batch of the first rows of a log that are older than `keepMs`; true when there may be more. What was
 * written while the clock stood years back looks old among younger rows, and stays until those before it go.
 */
function pruneOldOf(db: DatabaseSync, table: 'events' | 'requests', nowMs: number, keepMs: number): boolean {
  const before = nowMs - keepMs;
  const byTime = `${table} WHERE at_ms`;
  if (!isThere(db, byTime, 0, before) || !isClockBorneOut(db, byTime, nowMs, keepMs)) return false;
  // By id, with no index on the time: the first young row is near the first of all.
  const firstYoung = db
    .prepare(`SELECT id FROM ${table} WHERE +at_ms >= ? ORDER BY id LIMIT 1`)
    .get(before)?.id;
  const deleted = db
    .prepare(`DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE id < ? ORDER BY id LIMIT ?)`)
    .run(firstYoung ?? 0, BATCH_ROWS).changes;
  return Number(deleted) === BATCH_ROWS;
}

/**
 * Whether what is stored bears the clock out: parts of the time kept before `nowMs` have rows. A clock that was
 * set years ahead makes all that is stored old at once, and what goes then does not come back with the right
 * time; so old rows go once newer ones have taken their place. `where` ends with the column of the time.
 */
function isClockBorneOut(db: DatabaseSync, where: string, nowMs: number, keepMs: number): boolean {
  let parts = 0;
  for (let part = 0; part < PARTS; part += 1) {
    const fromMs = nowMs - (keepMs * (part + 1)) / PARTS;
    if (isThere(db, where, fromMs, nowMs - (keepMs * part) / PARTS)) parts += 1;
    if (parts === LEAST_PARTS) return true;
  }
  return false;
}

/** One look into the index of the time. */
function isThere(db: DatabaseSync, where: string, fromMs: number, beforeMs: number): boolean {
  return db.prepare(`SELECT 1 FROM ${where} BETWEEN ? AND ? LIMIT 1`).get(fromMs, beforeMs - 1) !== undefined;
}
