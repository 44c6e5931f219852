import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { procfs } from '../../electron/core/process/procfs.ts';
import { childrenOf, figure, milliseconds } from '../support/figures.ts';
import { until } from '../support/router.ts';

const root = resolve(import.meta.dirname, '../..');

let folder = '';
let child: ChildProcess | null = null;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-shutdown-'));
  await writeFile(join(folder, 'config.yaml'), 'devices:\n  - { kind: system }\nbackends: []\n');
});

afterEach(async () => {
  if (child?.exitCode === null) child.kill('SIGKILL');
  child = null;
  await rm(folder, { recursive: true, force: true });
});

interface Served {
  readonly out: () => string;
  /** The runtime's own process. */
  readonly pid: number;
  /** It and every process it has started. */
  readonly pids: readonly number[];
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

const serveArgs = (): readonly string[] => [
  '--config',
  join(folder, 'config.yaml'),
  '--state-dir',
  join(folder, 'state'),
  '--port',
  '0',
];

/** Starts it and waits until it has read a device, so that all its processes are there. */
async function start(command: string, args: readonly string[]): Promise<Served> {
  const started = spawn(command, [...args], {
    cwd: root,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      SHELL: '/bin/sh',
      npm_config_update_notifier: 'false',
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child = started;
  let out = '';
  for (const stream of [started.stdout, started.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
  const ended = new Promise<Awaited<Served['ended']>>((done) =>
    started.on('exit', (code, signal) => done({ code, signal })),
  );
  await until(() => /System memory|unified|GB ·/.test(out), 30_000, `a first reading; it wrote:\n${out}`);
  const top = started.pid;
  if (top === undefined) throw new Error(`${command} did not start`);
  const family = (pid: number): readonly number[] => [pid, ...childrenOf(pid).flatMap(family)];
  const pid = family(top).find((one) =>
    procfs()
      .command(one)
      // As `serve` was compiled by the set-up, or from the sources.
      ?.some((word) => /\/(out\/node\/start\.cjs|electron\/cli\.ts)$/.test(word)),
  );
  if (pid === undefined) throw new Error('no runtime process was found');
  return { out: () => out, pid, pids: family(pid), ended };
}

function alive(pids: readonly number[]): readonly number[] {
  return pids.filter((pid) => {
    const stat = procfs().stat(pid);
    return stat !== null && stat.state !== 'Z';
  });
}

/** Ends in order: code 0, quietly, and with no process left behind. Tells how long it took. */
async function endsInOrder(served: Served, what: string, stop: () => void): Promise<void> {
  expect(served.pids.length).toBeGreaterThan(1);
  const saidBefore = served.out();
  const beganAtMs = performance.now();
  stop();
  const { code, signal } = await served.ended;
  figure(`${what}, until it has ended`, milliseconds(performance.now() - beganAtMs));
  expect([code, signal]).toEqual([0, null]);
  await until(() => alive(served.pids).length === 0, 2_000, 'no process to be left');
  expect(served.out().slice(saidBefore.length)).not.toMatch(/error|warning|unhandled|at .*\.ts/i);
}

describe('the runtime ends in order and leaves no process behind', () => {
  it('on SIGTERM to `landlord serve`', async () => {
    const served = await start(join(root, 'build/landlord'), ['serve', ...serveArgs()]);
    await endsInOrder(served, 'SIGTERM to landlord serve', () => process.kill(served.pid, 'SIGTERM'));
  });

  it('on SIGTERM to `npm start`, with no shell in between that would leave it behind', async () => {
    // Its set-up has been done; npm runs the script alone.
    const served = await start('npm', ['start', '--silent', '--ignore-scripts', '--', ...serveArgs()]);
    await endsInOrder(served, 'SIGTERM to npm start', () => child?.kill('SIGTERM'));
  });

  it('on Ctrl-C in a terminal, which reaches every process of it', async () => {
    // script(1) of util-linux gives it a terminal of its own; the key is what the line discipline turns into SIGINT.
    const line = [join(root, 'build/landlord'), 'serve', ...serveArgs()].map((word) => `'${word}'`).join(' ');
    const served = await start('script', ['-q', '-e', '-c', `exec ${line}`, '/dev/null']);
    await endsInOrder(served, 'Ctrl-C', () => child?.stdin?.write('\u0003'));
  });

  it('and when it is killed outright, its children end by themselves', async () => {
    const served = await start(join(root, 'build/landlord'), ['serve', ...serveArgs()]);
    process.kill(served.pid, 'SIGKILL');
    await until(() => alive(served.pids).length === 0, 5_000, 'no process to be left');
    expect((await served.ended).signal).toBe('SIGKILL');
  });
});
