import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { HttpServer } from '../../electron/core/http/server.ts';
import { resolvePaths } from '../../electron/core/state-dir/paths.ts';
import { acquireRuntimeLock } from '../../electron/core/state-dir/runtime-lock.ts';
import type { FakeRuntime } from './fake-runtime.ts';
import { serveFake, TOKEN } from './serve-fake.ts';

export const LAUNCHER = resolve(import.meta.dirname, '..', '..', 'build', 'landlord');

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly child: ChildProcess;
  out(): string;
  err(): string;
  readonly ended: Promise<Ran>;
}

/** A state folder as a runtime leaves it, a real server in it, and a fake runtime behind that. */
export interface TestRuntime {
  readonly stateDir: string;
  readonly runtime: FakeRuntime;
  readonly server: HttpServer;
  /** The server goes away and comes back on a new port, over the same runtime. */
  restart(): Promise<void>;
  stopServer(): Promise<void>;
  dispose(): Promise<void>;
}

export async function startTestRuntime(): Promise<TestRuntime> {
  const stateDir = await mkdtemp(join(tmpdir(), 'landlord-cli-'));
  const paths = resolvePaths({ env: {}, home: stateDir, cwd: stateDir, stateDir });
  await writeFile(paths.tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  const self = { pid: process.pid, startedAt: '2026-03-04T09:00:00.000Z', version: '0.1.0' };
  const lock = await acquireRuntimeLock(paths, self);
  if (!lock.ok) throw new Error(lock.error.message);
  let { server, runtime } = await serveFake();
  await lock.value.publish(server.url);
  return {
    stateDir,
    runtime,
    get server() {
      return server;
    },
    async restart() {
      await server.stop();
      ({ server, runtime } = await serveFake({ runtime }));
      await lock.value.publish(server.url);
    },
    stopServer: () => server.stop(),
    async dispose() {
      await server.stop();
      await lock.value.release();
      await rm(stateDir, { recursive: true });
    },
  };
}

/** Starts the real launcher with a bare environment. */
export function startLandlord(args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  const child = spawn(LAUNCHER, [...args], {
    env: { PATH: process.env.PATH ?? '', HOME: tmpdir(), TZ: 'UTC', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const ended = new Promise<Ran>((done, reject) => {
    child.on('error', reject);
    child.on('close', (code) => done({ code, out, err }));
  });
  return { child, out: () => out, err: () => err, ended };
}

export function landlord(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ran> {
  return startLandlord(args, env).ended;
}
