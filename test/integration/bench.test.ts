import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { BenchReport } from '../../build/bench/report.ts';
import { findChromium } from '../../build/setup/chromium.mjs';

/**
 * Each part of `npm run bench` in its short form, so that none rots. No figure is judged: a busy machine
 * may not fail a test. `soak` has a test of its own. Without `switch`, whose short form still reads long texts anew on the CPU for
 * minutes: too long for this place.
 */
const root = resolve(import.meta.dirname, '../..');
/** Of a hang: each takes from seconds to a minute on a machine that does nothing else. */
const LIMIT_MS = 900_000;

async function bench(parts: readonly string[]): Promise<readonly BenchReport[]> {
  const args = [...parts.flatMap((part) => ['--only', part]), '--short', '--json'];
  const child = spawn(
    join(root, 'node_modules/.bin/node'),
    ['--disable-warning=ExperimentalWarning', join(root, 'build/bench.ts'), ...args],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  onTestFinished(() => void child.kill());
  let said = '';
  let complaint = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  const code = await new Promise<number | null>((done) => child.once('close', done));
  expect(code, complaint).toBe(0);
  const answer: { readonly reports: readonly BenchReport[]; readonly machine: { readonly cores: number } } =
    JSON.parse(said);
  expect(answer.machine.cores).toBeGreaterThan(0);
  return answer.reports;
}

/** Parts that measure nothing where something is not there, and say so. */
function mayBeEmpty(part: string): boolean {
  return part === 'page' && findChromium(process.env) === null;
}

describe('every part of the bench, in its short form, gives figures', () => {
  it.each([
    [['lane', 'watch', 'ledger', 'store', 'start']],
    [['page', 'estimate']],
    [['guard']],
    [['idle']],
    [['gateway']],
    [['showdown']],
  ])(
    '%s',
    async (parts) => {
      const reports = await bench(parts);
      expect(reports.map(({ part }) => part).toSorted()).toEqual(parts.toSorted());
      for (const { part, sides, notes } of reports) {
        if (mayBeEmpty(part)) {
          expect(notes.join(' ')).not.toBe('');
          continue;
        }
        expect(sides.length, part).toBeGreaterThan(0);
        for (const side of sides) {
          expect(side.count, `${part}: ${side.name}`).toBeGreaterThan(0);
          expect(Number.isFinite(side.medianUs) && side.medianUs >= 0, `${part}: ${side.name}`).toBe(true);
        }
      }
    },
    LIMIT_MS,
  );

  it('and a part that is not there is told, with those that are', async () => {
    const child = spawn(
      join(root, 'node_modules/.bin/node'),
      [join(root, 'build/bench.ts'), '--only', 'no-such'],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    let complaint = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint += text;
    });
    expect(await new Promise<number | null>((done) => child.once('close', done))).toBe(64);
    const parts = /there are (.*)\./.exec(complaint)?.[1]?.split(', ') ?? [];
    // A part that is added must be added above.
    expect(parts.toSorted()).toEqual(
      [
        'lane',
        'page',
        'watch',
        'guard',
        'idle',
        'gateway',
        'showdown',
        'soak',
        'switch',
        'ledger',
        'start',
        'store',
        'estimate',
      ].toSorted(),
    );
  });
});
