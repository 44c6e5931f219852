import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { StoredSample } from '../../electron/core/events/event-store.ts';
import { SqliteStore } from '../../electron/core/events/sqlite-store.ts';
import { stepFor } from '../../electron/core/questions/history.ts';
import { type BenchReport, figures, quantile } from './report.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
/** What the page's chart asks for. */
const CHART_POINTS = 500;

/**
 * What an event costs until it is on the disk, one at a time and many at once, beside a plain insert of
 * node:sqlite on the same disk; what a reading costs; and the chart's questions over a long history.
 */
export async function benchStore(short = false): Promise<BenchReport> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-bench-'));
  const troubles: string[] = [];
  const store = new SqliteStore({
    file: join(folder, 'landlord.db'),
    now: Date.now,
    onTrouble: (event) => troubles.push(event.reason),
  });
  const plain = new DatabaseSync(join(folder, 'plain.db'));
  plain.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  plain.exec(
    'CREATE TABLE events (id INTEGER PRIMARY KEY, at INTEGER, kind TEXT, reason TEXT, numbers TEXT)',
  );
  const insert = plain.prepare('INSERT INTO events (at, kind, reason, numbers) VALUES (?, ?, ?, ?)');
  try {
    await store.ready();
    const one: number[] = [];
    const bare: number[] = [];
    const many: number[] = [];
    const rounds = short ? 30 : 300;
    const burst = 200;
    for (let round = 0; round < rounds; round += 1) {
      one.push(await timedUs(() => store.append(event(round), Date.now())));
      bare.push(
        await timedUs(async () => {
          insert.run(Date.now(), 'evicted', event(round).reason, JSON.stringify(event(round).numbers));
        }),
      );
      if (round % 10 === 0) {
        const all = await timedUs(() =>
          Promise.all(Array.from({ length: burst }, (_, i) => store.append(event(i), Date.now()))),
        );
        many.push(all / burst);
      }
    }
    const nowMs = Date.now();
    const written = await writeHistory(store, nowMs, short ? 2 : 365);
    const charts: { name: string; samplesUs: number[] }[] = [];
    for (const [name, spanMs] of [
      ['10 minutes', 10 * MINUTE_MS],
      ['an hour', 60 * MINUTE_MS],
      ['24 hours', DAY_MS],
      ['7 days', 7 * DAY_MS],
      ['a year', 365 * DAY_MS],
    ] as const) {
      const samplesUs: number[] = [];
      for (let i = 0; i < (short ? 3 : 20); i += 1)
        samplesUs.push(
          await timedUs(() =>
            store.samples({
              sinceMs: nowMs - spanMs,
              untilMs: nowMs,
              stepMs: stepFor(nowMs - spanMs, nowMs, CHART_POINTS),
            }),
          ),
        );
      charts.push({ name: `the chart of ${name}`, samplesUs });
    }
    const sides = figures([
      { name: 'an insert of node:sqlite, synced', samplesUs: bare },
      { name: 'our event, until it is on the disk', samplesUs: one },
      { name: `one of ${burst} events at once`, samplesUs: many },
      { name: 'a reading, on its way to the disk', samplesUs: [written.perSampleUs] },
      ...charts,
    ]);
    const yearMs = quantile(charts.at(-1)?.samplesUs ?? [], 0.5) / 1000;
    return {
      part: 'store',
      sides,
      notes: [
        `Events: ${Math.round(1e6 / quantile(many, 0.5))} a second. Readings: ${Math.round(1e6 / written.perSampleUs)} a second.`,
        `The chart over the whole history of ${written.days} days: ${yearMs.toFixed(1)} ms (aim: under 20).`,
        ...troubles,
      ],
    };
  } finally {
    await store.close();
    plain.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A reading each minute for as long as the history goes; what is past its keeping is pruned as ever. */
async function writeHistory(
  store: SqliteStore,
  nowMs: number,
  days: number,
): Promise<{ readonly perSampleUs: number; readonly days: number }> {
  const count = days * 1440;
  const beganAtMs = performance.now();
  for (let minute = count; minute > 0; minute -= 1440) {
    const batch = Array.from({ length: Math.min(1440, minute) }, (_, i) =>
      reading(nowMs - (minute - i) * MINUTE_MS, i),
    );
    store.addSamples(batch);
    // A question is answered in its order, so this waits until the batch is written.
    await store.samples({ sinceMs: nowMs, untilMs: nowMs });
  }
  return { perSampleUs: ((performance.now() - beganAtMs) * 1000) / count, days };
}

const TOTAL_BYTES = 34_200_000_000;

function reading(atMs: number, i: number): StoredSample {
  const usedBytes = 6e9 + Math.round(20e9 * Math.abs(Math.sin(i / 200)));
  return {
    atMs,
    deviceId: 'pci:0000:03:00.0',
    totalBytes: TOTAL_BYTES,
    usedBytes,
    freeBytes: TOTAL_BYTES - usedBytes,
    gttUsedBytes: 1e8,
    tenants: {
      desktop: 2e9,
      'model:router/pipeline-9b': 6e9,
      'model:router/qwen-27b': usedBytes - 8e9,
      foreign: 1e8,
    },
  };
}

function event(i: number) {
  return {
    kind: 'evicted',
    model: 'router/qwen-27b',
    backend: 'router',
    reason: `qwen-27b was unloaded: the desktop's floor of 4 GB was broken for 5 s (${i}).`,
    numbers: { freedBytes: 18_600_000_000, freeBytes: 2_100_000_000 + i },
  } as const;
}

async function timedUs(work: () => Promise<unknown>): Promise<number> {
  const beganAtMs = performance.now();
  await work();
  return (performance.now() - beganAtMs) * 1000;
}
