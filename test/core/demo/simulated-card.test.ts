import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  SimulatedCard,
  type SimulatedCardOptions,
  wholeModelsOver,
} from '../../../electron/core/demo/simulated-card.ts';
import { until } from '../../support/router.ts';

const GB = 1e9;
let folder = '';
let children: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-card-'));
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children = [];
  rmSync(folder, { recursive: true });
});

/** A process of ours that looks like a router's child; this test's process is its router. */
function child(alias: string): ChildProcess {
  const made = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)', '--', '--alias', alias]);
  children.push(made);
  return made;
}

function card(options: Partial<SimulatedCardOptions>): SimulatedCard {
  const made = new SimulatedCard({
    path: join(folder, 'card.json'),
    name: 'Card',
    totalBytes: 10 * GB,
    footprints: { one: { bytes: 6 * GB, rampMs: 50 }, two: { bytes: 3 * GB, rampMs: 50 } },
    routerPid: () => process.pid,
    tickMs: 10,
    ...options,
  });
  made.start();
  return made;
}

describe('a simulated card', () => {
  it('holds a model’s bytes as long as its process lives, and tells of a child once', async () => {
    const seen: string[] = [];
    using one = card({ onChild: (alias) => void seen.push(alias) });
    const process = child('one');
    await until(() => one.reading().usedBytes === 6 * GB, 5_000, 'six gigabytes');
    process.kill('SIGKILL');
    await until(() => one.reading().usedBytes === 0, 5_000, 'none');
    expect(seen).toEqual(['one']);
  });

  it('full, the driver moves a whole model, which counts in both places until it is out', async () => {
    using one = card({ moves: 'whole models' });
    child('one');
    child('two');
    await until(() => one.reading().usedBytes === 9 * GB, 5_000, 'both');
    one.set({ name: 'player', bytes: 2 * GB, type: 'G' });
    await until(() => one.reading().gttUsedBytes > 1.2 * GB, 5_000, 'more than was missing');
    expect(one.reading().usedBytes).toBe(10 * GB);
    await until(() => one.reading().gttUsedBytes === 6 * GB, 10_000, 'all of the larger');
    expect(one.reading().usedBytes).toBe(5 * GB);
    one.set({ name: 'player', bytes: 0, type: 'G' });
    expect(one.reading().gttUsedBytes).toBe(0);
    expect(JSON.parse(readFileSync(join(folder, 'card.json'), 'utf8'))).toMatchObject({ usedBytes: 9 * GB });
  });

  it('without that, only what is missing goes out', async () => {
    using one = card({});
    child('one');
    await until(() => one.reading().usedBytes === 6 * GB, 5_000, 'six gigabytes');
    one.set({ name: 'player', bytes: 5 * GB, type: 'G' });
    await until(() => one.reading().gttUsedBytes === 1 * GB, 5_000, 'one gigabyte');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(one.reading().gttUsedBytes).toBe(1 * GB);
  });

  it('lists no process that has asked for nothing yet', async () => {
    using one = card({ footprints: { one: { bytes: 6 * GB, rampMs: 600, bufferAtMs: 600 } } });
    const rows = (): unknown[] => JSON.parse(readFileSync(join(folder, 'card.json'), 'utf8')).processes;
    child('one');
    await until(() => 'one' in one.reading().models, 5_000, 'the child to be seen');
    expect(rows()).toEqual([]);
    await until(() => rows().length === 1, 5_000, 'its bytes');
  });

  it('refuses a buffer it has no room for, once, and the model then holds nothing', async () => {
    const refused: [string, number][] = [];
    using one = card({
      footprints: { one: { bytes: 6 * GB, rampMs: 50, bufferAtMs: 50 } },
      onAllocationFailed: (alias, _pid, missing) => void refused.push([alias, missing]),
    });
    one.set({ name: 'browser', bytes: 5 * GB, type: 'G' });
    child('one');
    await until(() => refused.length > 0, 5_000, 'a refusal');
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(refused).toEqual([['one', 1 * GB]]);
    expect(one.reading().usedBytes).toBe(5 * GB);
  });
});

describe('which models the driver moves', () => {
  it('the largest first, as many as cover what is missing, none where nothing is', () => {
    expect(wholeModelsOver([1, 6, 3], 0)).toBe(0);
    expect(wholeModelsOver([1, 6, 3], 2)).toBe(6);
    expect(wholeModelsOver([1, 6, 3], 7)).toBe(9);
    expect(wholeModelsOver([1, 6, 3], 99)).toBe(10);
  });
});
