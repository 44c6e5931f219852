import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StoredSample } from '../../../electron/core/events/event-store.ts';
import { MIGRATIONS } from '../../../electron/core/events/migrations.ts';
import { readSamples, writeSamples } from '../../../electron/core/events/sample-rows.ts';
import { keptStepMs, SAMPLE_STEPS } from '../../../electron/core/events/sample-steps.ts';
import { historyColumns, stepFor } from '../../../electron/core/questions/history.ts';

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 2, 4);
const POINTS = 500;

let db: DatabaseSync;

beforeEach(() => {
  db = new DatabaseSync(':memory:');
});
afterEach(() => db.close());

function migrate(from: number, to: number = MIGRATIONS.length): void {
  for (const step of MIGRATIONS.slice(from, to)) db.exec(step);
}

function sample(atMs: number, usedBytes: number, deviceId = 'sim:0'): StoredSample {
  return {
    atMs,
    deviceId,
    totalBytes: 1e10,
    usedBytes,
    freeBytes: 1e10 - usedBytes,
    gttUsedBytes: 0,
    tenants: { 'desktop@sim:0': usedBytes },
  };
}

/** A year with a reading each ten minutes, the last two days each ten seconds; what is past its keeping is gone. */
function fillYear(): void {
  db.exec('BEGIN');
  for (let atMs = NOW - 365 * DAY; atMs < NOW - 2 * DAY; atMs += 600_000)
    writeSamples(db, [sample(atMs, 5e9)]);
  for (let atMs = NOW - 2 * DAY; atMs < NOW; atMs += 10_000) writeSamples(db, [sample(atMs, 5e9)]);
  for (const { stepMs, keepMs } of SAMPLE_STEPS)
    db.prepare('DELETE FROM samples WHERE step_ms = ? AND bucket_ms < ?').run(stepMs, NOW - keepMs);
  db.exec('COMMIT');
}

describe('readings of a chart', () => {
  it('are read in the step that its span needs, and reach all the way back', () => {
    migrate(0);
    fillYear();
    for (const spanMs of [600_000, 3_600_000, DAY, 7 * DAY, 365 * DAY]) {
      const sinceMs = NOW - spanMs;
      const stepMs = stepFor(sinceMs, NOW, POINTS);
      const rows = readSamples(db, { sinceMs, untilMs: NOW, stepMs });
      const days = spanMs / DAY;
      expect(rows.length, `${days} days`).toBeLessThanOrEqual(POINTS + 1);
      expect(rows.length, `${days} days`).toBeGreaterThan(Math.min(POINTS / 2, spanMs / 10_000) * 0.9);
      expect(rows.map((row) => row.atMs)).toEqual(rows.map((row) => row.atMs).sort((a, b) => a - b));
      expect((rows[0]?.atMs ?? NOW) - sinceMs, `${days} days`).toBeLessThanOrEqual(stepMs + 600_000);
      // No part of it looks like a time in which nothing was recorded.
      expect(historyColumns(rows, stepMs, NOW)[0]?.usedBytes.includes(null)).toBe(false);
    }
  });

  it('half a year back, with a fine step asked, come as fine as they are kept, and without holes', () => {
    migrate(0);
    fillYear();
    const untilMs = NOW - 180 * DAY;
    const rows = readSamples(db, { sinceMs: untilMs - DAY, untilMs: untilMs - 1, stepMs: 10_000 });
    expect(rows).toHaveLength(72);
    expect(historyColumns(rows, 10_000, NOW)[0]?.usedBytes.includes(null)).toBe(false);
  });

  it('take no more rows from the index than about what is drawn', () => {
    migrate(0);
    fillYear();
    for (const spanMs of [3_600_000, DAY, 7 * DAY, 365 * DAY]) {
      let taken = 0;
      const counting = new Proxy(db, {
        get: (target, name) =>
          name !== 'prepare'
            ? Reflect.get(target, name)
            : (sql: string) => {
                const plan = target.prepare(`EXPLAIN QUERY PLAN ${sql}`);
                const statement = target.prepare(sql);
                return {
                  get: (...values: number[]) => statement.get(...values),
                  all: (...values: number[]) => {
                    const how = plan.all(...values).map((row) => String(row.detail));
                    expect(how).toEqual([
                      expect.stringMatching(/^SEARCH samples USING PRIMARY KEY .*bucket_ms/),
                    ]);
                    const rows = statement.all(...values);
                    taken += rows.length;
                    return rows;
                  },
                };
              },
      });
      const sinceMs = NOW - spanMs;
      readSamples(counting, { sinceMs, untilMs: NOW, stepMs: stepFor(sinceMs, NOW, POINTS) });
      expect(taken).toBeGreaterThan(0);
      expect(taken, `${spanMs / DAY} days`).toBeLessThanOrEqual(2 * POINTS);
    }
  });

  it('keep the fullest of each step, each device for itself', () => {
    migrate(0);
    const start = NOW - DAY;
    for (let row = 0; row < 60; row += 1)
      writeSamples(db, [
        sample(start + row * 10_000, row === 7 ? 9e9 : row),
        sample(start + row * 10_000, row === 41 ? 8e9 : row, 'sim:1'),
      ]);
    const found = readSamples(db, { sinceMs: start, untilMs: NOW, stepMs: 360_000 });
    expect(found.map((row) => [row.deviceId, row.usedBytes])).toEqual([
      ['sim:0', 9e9],
      ['sim:1', 35],
      ['sim:0', 59],
      ['sim:1', 8e9],
    ]);
    const one = readSamples(db, { sinceMs: start, untilMs: NOW, stepMs: 360_000, deviceId: 'sim:1' });
    expect(one.map((row) => row.usedBytes)).toEqual([35, 8e9]);
  });

  it('of a file from before the coarse steps are there too', () => {
    migrate(0, 4);
    const put = db.prepare(
      `INSERT INTO samples (step_ms, bucket_ms, device_id, at_ms, total_bytes, used_bytes, free_bytes, gtt_used_bytes, tenants)
       VALUES (60000, ?, 'sim:0', ?, 10, ?, 0, 0, '{}')`,
    );
    for (let minute = 0; minute < 1440 * 20; minute += 1) {
      const bucket = NOW - (minute + 1) * 60_000;
      put.run(bucket, bucket + 7000, minute === 5000 ? 99 : 1);
    }
    migrate(4);
    const rows = readSamples(db, { sinceMs: NOW - 365 * DAY, untilMs: NOW, stepMs: 12 * 3_600_000 });
    expect(rows).toHaveLength(40);
    const fullest = NOW - 5001 * 60_000 + 7000;
    expect(rows.filter((row) => row.usedBytes === 99).map((row) => row.atMs)).toEqual([fullest]);
  });

  it('know how far apart they lie at each age', () => {
    expect([0, 3 * DAY, 40 * DAY, 100 * DAY, 800 * DAY].map(keptStepMs)).toEqual([
      10_000, 60_000, 180_000, 1_200_000, 7_200_000,
    ]);
  });
});
