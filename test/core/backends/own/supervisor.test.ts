import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type Supervisor,
  type SupervisorOptions,
  supervisor,
} from '../../../../electron/core/backends/own/supervisor.ts';
import { systemClock } from '../../../../electron/core/clock.ts';
import { procfs } from '../../../../electron/core/process/procfs.ts';
import { freePort } from '../../../support/llama-server.ts';
import { until } from '../../../support/router.ts';

/** Real processes: what is ours to run is started, kept, ended with all that it started, and nothing else is. */
const SERVER = fileURLToPath(new URL('../../../fixtures/own/server.ts', import.meta.url));
const LANDLORD = fileURLToPath(new URL('../../../fixtures/own/landlord.ts', import.meta.url));
const LIMIT_MS = 20_000;
const proc = procfs();
const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface Own {
  readonly it: Supervisor;
  readonly port: number;
  readonly folder: string;
  log(): Promise<string>;
  /** The pid that its log tells under a word. */
  told(word: string): Promise<number>;
}

async function own(traits: readonly string[], change: Partial<SupervisorOptions> = {}): Promise<Own> {
  const folder = await mkdtemp(join(tmpdir(), 'landlord-own-'));
  open.push(() => rm(folder, { recursive: true, force: true }));
  const port = change.port ?? (await freePort());
  const logFile = join(folder, 'own.log');
  const it = supervisor({
    name: 'own',
    command: [process.execPath, SERVER, String(port), ...traits],
    host: '127.0.0.1',
    port,
    cwd: folder,
    logFile,
    clock: systemClock,
    graceMs: 500,
    onChange: () => undefined,
    restart: { firstMs: 30, mostMs: 500 },
    ...change,
  });
  open.push(() => it.stop());
  const log = () => readFile(logFile, 'utf8').catch(() => '');
  return {
    it,
    port,
    folder,
    log,
    async told(word) {
      const pattern = new RegExp(`^${word} (\\d+)$`, 'm');
      await until(async () => pattern.test(await log()), LIMIT_MS, `its log to tell ${word}`);
      return Number(pattern.exec(await log())?.[1]);
    },
  };
}

const lives = (pid: number): boolean => {
  const state = proc.stat(pid)?.state;
  return state !== undefined && state !== 'Z';
};
const isGone = (pid: number): Promise<void> =>
  until(() => !lives(pid), LIMIT_MS, `process ${pid} to be gone`);

describe('one that rests', () => {
  it('is ended, is no crash, and starts again with its next use', async () => {
    const one = await own([]);
    one.it.start();
    await until(() => one.it.look().status === 'running', LIMIT_MS, 'it to run');
    const pid = one.it.look().pid ?? 0;
    await one.it.rest();
    expect(one.it.look()).toMatchObject({ status: 'idle', pid: null, restarts: 0, note: null });
    expect(proc.stat(pid)).toBeNull();
    one.it.start();
    await until(() => one.it.look().status === 'running', LIMIT_MS, 'it to run again');
    expect(one.it.look().pid).not.toBe(pid);
    await one.it.stop();
    await one.it.rest();
    expect(one.it.look().status).toBe('stopped');
  });
});

describe('a server that is ours', () => {
  it('runs in its folder under its own pid, its output is kept and shown', async () => {
    const server = await own([]);
    expect(server.it.look()).toMatchObject({ status: 'idle', pid: null });
    server.it.start();
    const pid = await server.told('serving');
    await until(() => server.it.look().pid === pid, LIMIT_MS, 'its pid');
    expect(server.it.look()).toMatchObject({ status: 'running', restarts: 0, note: null });
    await until(
      () => server.it.look().lastLines.includes(`serving ${pid}`),
      LIMIT_MS,
      'its output in the state',
    );
    // What it is started through is nothing but itself by now.
    expect(proc.command(pid)?.slice(0, 2)).toEqual([process.execPath, SERVER]);
  });

  it('is asked first, and what it started goes with it, also what runs away and will not hear', async () => {
    const server = await own(['deaf', 'child', 'runaway']);
    server.it.start();
    const pids = [await server.told('serving'), await server.told('child'), await server.told('runaway')];
    expect(pids.map(lives)).toEqual([true, true, true]);
    await server.it.stop();
    expect(pids.map(lives)).toEqual([false, false, false]);
    expect(await server.log()).toMatch(/asked to stop/);
    expect(server.it.look()).toMatchObject({ status: 'stopped', pid: null });
  });

  it('leaves nothing behind when it ends by itself', async () => {
    const server = await own(['child'], { restart: { firstMs: 60_000, mostMs: 60_000 } });
    server.it.start();
    const pid = await server.told('serving');
    const child = await server.told('child');
    process.kill(pid, 'SIGKILL');
    await isGone(child);
    await until(() => server.it.look().status === 'waiting', LIMIT_MS, 'it to wait');
    expect(server.it.look().note).toMatch(/own was ended by SIGKILL; it is started again in 60 s/);
  });

  it('that ends by itself is started again, later each time, and its last words are told', async () => {
    const server = await own(['crash']);
    server.it.start();
    await until(() => server.it.look().restarts >= 4, LIMIT_MS, 'four restarts');
    const { note } = server.it.look();
    expect(note === null || /no such model: x\.gguf/.test(note)).toBe(true);
    const starts = [...(await server.log()).matchAll(/\[landlord (\S+)\] starting/g)].map((match) =>
      Date.parse(match[1] ?? ''),
    );
    const [first = 0, second = 0, third = 0, fourth = 0] = starts;
    expect(fourth - third).toBeGreaterThan(100);
    expect(second - first).toBeGreaterThan(25);
  });

  it('that can’t be started says why, and is tried again', async () => {
    const server = await own([], { command: ['/nowhere/llama-server', '--port', '1'] });
    server.it.start();
    await until(() => server.it.look().restarts >= 2, LIMIT_MS, 'a second try');
    await until(() => server.it.look().status === 'waiting', LIMIT_MS, 'it to wait');
    expect(server.it.look().note).toMatch(/could not be started|exit code 127/);
  });
});

describe('what is not ours', () => {
  it('is never taken over, stopped or joined: its port is left to it, and taken when it is free', async () => {
    const foreign = createServer();
    const port = await freePort();
    await new Promise<void>((resolve) => foreign.listen(port, '127.0.0.1', resolve));
    const server = await own([], { port, takenMs: 50 });
    server.it.start();
    await until(() => server.it.look().status === 'taken', LIMIT_MS, 'it to see the port taken');
    expect(server.it.look().note).toMatch(
      new RegExp(`Port ${port} is in use by something that own did not start`),
    );
    expect(await server.log()).toBe('');
    await new Promise((resolve) => foreign.close(resolve));
    await until(() => server.it.look().status === 'running', LIMIT_MS, 'it to run');
  });

  it('lives on when a server of ours is stopped', async () => {
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    open.push(async () => void stranger.kill('SIGKILL'));
    const server = await own(['child']);
    server.it.start();
    await server.told('child');
    await server.it.stop();
    expect(lives(stranger.pid ?? 0)).toBe(true);
    expect(lives(process.pid)).toBe(true);
  });
});

describe('rule 22: no child of ours outlives us', () => {
  async function landlord(traits: readonly string[]) {
    const server = await own(traits);
    const runtime = spawn(
      process.execPath,
      [LANDLORD, server.folder, String(server.port), SERVER, ...traits],
      {
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    open.push(async () => void runtime.kill('SIGKILL'));
    const pid = await server.told('serving');
    return { runtime, pid, server };
  }

  it('a runtime that is killed takes its server and all that it started with it', async () => {
    const { runtime, pid, server } = await landlord(['deaf', 'child', 'runaway']);
    const [child, runaway] = [await server.told('child'), await server.told('runaway')];
    runtime.kill('SIGKILL');
    for (const one of [pid, child, runaway]) await isGone(one);
  });

  it('a keeper that is killed takes the server with it', async () => {
    const { pid } = await landlord(['deaf']);
    const keeper = proc.stat(pid)?.parentPid ?? 0;
    expect(proc.command(keeper)?.some((word) => word.endsWith('keeper-child.ts'))).toBe(true);
    process.kill(keeper, 'SIGKILL');
    await isGone(pid);
  });
});

it('a log grows to two files and no further', async () => {
  const { boundedLog, lastLines } = await import('../../../../electron/core/backends/own/bounded-log.ts');
  const folder = await mkdtemp(join(tmpdir(), 'landlord-log-'));
  open.push(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'logs', 'a.log');
  const log = boundedLog(file, 1_000);
  for (let index = 0; index < 200; index += 1) log.write(`line ${index}\n`);
  const sizes = [(await readFile(file)).length, (await readFile(`${file}.1`)).length];
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
  // Over the seam of the two.
  const lines = lastLines(file, 100);
  expect(lines).toHaveLength(100);
  expect(lines[0]).toBe('line 100');
  expect(lines.at(-1)).toBe('line 199');
  // A new run goes on where the last one ended.
  boundedLog(file, 1_000).write('again\n');
  expect(lastLines(file, 1)).toEqual(['again']);
  expect(lastLines(join(folder, 'none.log'), 3)).toEqual([]);
  await writeFile(file, 'half');
  expect(lastLines(file, 1)).toEqual(['half']);
});
