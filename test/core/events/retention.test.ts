import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LandlordDatabase } from '../../../electron/core/events/database.ts';
import type { StoredSample } from '../../../electron/core/events/event-store.ts';
import { MIGRATIONS } from '../../../electron/core/events/migrations.ts';
import { writeRequests } from '../../../electron/core/events/request-rows.ts';
import { DEFAULT_RETENTION, pruneStep } from '../../../electron/core/events/retention.ts';
import { writeSamples } from '../../../electron/core/events/sample-rows.ts';
import { SAMPLE_STEPS } from '../../../electron/core/events/sample-steps.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
const NOW = Date.UTC(2026, 2, 4);

let db: DatabaseSync;
beforeEach(() => {
  db = new DatabaseSync(':memory:');
  for (const step of MIGRATIONS) db.exec(step);
});
afterEach(() => db.close());

const sample = (atMs: number): StoredSample => ({
  atMs,
  deviceId: 'sim:0',
  totalBytes: 100,
  usedBytes: 50,
  freeBytes: 50,
  gttUsedBytes: 0,
  tenants: {},
});

/** One event, request and reading, as they are written at that time. */
function live(atMs: number): void {
  db.prepare("INSERT INTO events (at_ms, kind, reason, numbers) VALUES (?, 'woke', '', '{}')").run(atMs);
  writeRequests(db, [
    {
      atMs,
      model: null,
      backend: null,
      agent: null,
      class: 'batch',
      route: 'local',
      reason: null,
      status: 200,
      promptTokens: null,
      generatedTokens: null,
      waitedMs: 0,
      firstByteMs: null,
      totalMs: 1,
    },
  ]);
  writeSamples(db, [sample(atMs)]);
}

function prune(nowMs: number): void {
  for (let steps = 0; pruneStep(db, DEFAULT_RETENTION, nowMs); steps += 1) expect(steps).toBeLessThan(1000);
}

/** The times of all rows of each kind, by the kind's name. */
function kept(): Readonly<Record<string, readonly number[]>> {
  const times = (sql: string): readonly number[] =>
    db
      .prepare(sql)
      .all()
      .map((row) => Number(row.at_ms));
  return {
    events: times('SELECT at_ms FROM events ORDER BY id'),
    requests: times('SELECT at_ms FROM requests ORDER BY id'),
    ...Object.fromEntries(
      SAMPLE_STEPS.map(({ stepMs }) => [
        `step ${stepMs}`,
        times(`SELECT at_ms FROM samples WHERE step_ms = ${stepMs} ORDER BY bucket_ms`),
      ]),
    ),
  };
}

describe('what is kept', () => {
  it('outlives a clock that is set years ahead, written by for an hour, and set back', () => {
    for (let atMs = NOW - 36 * HOUR; atMs <= NOW; atMs += HOUR) live(atMs);
    const before = kept();
    for (let minute = 0; minute < 60; minute += 10) {
      live(NOW + 20 * YEAR + minute * 60_000);
      prune(NOW + 20 * YEAR + minute * 60_000);
    }
    prune(NOW + 1000);
    for (const [kind, times] of Object.entries(kept()))
      expect(
        times.filter((atMs) => atMs <= NOW),
        kind,
      ).toEqual(before[kind]);
  });

  it('outlives months in which the machine was off', () => {
    for (let atMs = NOW - 36 * HOUR; atMs <= NOW; atMs += HOUR) live(atMs);
    const before = kept();
    prune(NOW + 0.9 * YEAR);
    expect(kept()).toEqual(before);
  });

  it('goes by its age where newer rows have taken its place', () => {
    for (let atMs = NOW - 2 * YEAR; atMs <= NOW; atMs += 8 * HOUR) live(atMs);
    prune(NOW);
    const { events = [], requests = [], ...steps } = kept();
    expect(events[0]).toBe(NOW - YEAR);
    expect(requests[0]).toBe(NOW - 30 * DAY);
    for (const { stepMs, keepMs } of SAMPLE_STEPS)
      expect(steps[`step ${stepMs}`]?.[0], `step ${stepMs}`).toBeGreaterThanOrEqual(NOW - keepMs);
  });

  it('makes room for events where the file is as large as it may be: the finest and oldest readings go', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'landlord-retention-'));
    const options = {
      file: join(folder, 'landlord.db'),
      maxFileBytes: 4 * 2 ** 20,
      retention: DEFAULT_RETENTION,
    };
    const open = (): LandlordDatabase => LandlordDatabase.open(options, NOW, false).database;
    const fat = Object.fromEntries(
      Array.from({ length: 50 }, (_, at) => [`router/${'m'.repeat(40)}${at}`, 1]),
    );
    try {
      {
        using full = open();
        expect(() => {
          for (let atMs = NOW - 30 * HOUR; ; atMs += 60_000)
            full.addSamples([{ ...sample(atMs), tenants: fat }]);
        }).toThrow(/full/);
      }
      using database = open();
      const event = { atMs: NOW, kind: 'evicted', model: null, backend: null, session: null, deviceId: null };
      const rows = Array.from({ length: 300 }, (_, at) => ({
        ...event,
        id: at + 1,
        reason: 'r'.repeat(900),
        numbers: '{}',
      }));
      expect(database.append(rows)).toHaveLength(300);
      while (database.prune(NOW));
      const left = database.querySamples({ sinceMs: 0 });
      expect(left.length).toBeGreaterThan(0);
      // Hours stand where seconds had to go.
      const coarse = database.querySamples({ sinceMs: 0, stepMs: 20 * 60_000 });
      expect(coarse[0]?.atMs).toBeLessThan(NOW - 29 * HOUR);
      expect(database.query({ limit: 5000 })).toHaveLength(300);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('has what was logged while the clock stood at 1970, until those before it go', () => {
    for (let atMs = NOW - 0.9 * YEAR; atMs <= NOW; atMs += 10 * DAY) live(atMs);
    live(5000);
    live(NOW);
    prune(NOW);
    expect(kept().events).toContain(5000);
    // Among readings, which have no other order, it would look like the oldest that are kept.
    expect(kept()['step 10000']).not.toContain(5000);
    for (let atMs = NOW; atMs <= NOW + 2 * YEAR; atMs += 10 * DAY) live(atMs);
    prune(NOW + 2 * YEAR);
    expect(kept().events).not.toContain(5000);
  });
});
