import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LandlordEvent } from '../../shared/events.ts';
import type { LandlordState } from '../../shared/state.ts';
import { childrenOf } from './figures.ts';
import { LAUNCHER } from './landlord.ts';
import { freePort } from './llama-server.ts';
import { until } from './router.ts';

export interface ServeProcessOptions {
  /** Holds the config, the state and, where none is named, the gates. It stays when the process ends. */
  readonly folder: string;
  /** The config as YAML; left out: what stands there. */
  readonly config?: string;
  readonly port?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Runs it by another program: `['prlimit', '--nofile=64']`. */
  readonly prefix?: readonly string[];
  /** false: it comes back at once, before the runtime is ready or has failed. */
  readonly wait?: boolean;
}

/** `landlord serve` as a process that may be killed at any moment. */
export interface ServeProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
  readonly stateDir: string;
  readonly configFile: string;
  readonly socketPath: string;
  readonly gateDir: string;
  out(): string;
  err(): string;
  token(): Promise<string>;
  /** With the token. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  post(path: string, body?: unknown): Promise<Response>;
  state(): Promise<LandlordState>;
  /** Oldest first, as the log has them. */
  events(query?: string): Promise<readonly LandlordEvent[]>;
  residentBytes(): Promise<number>;
  openFiles(): Promise<number>;
  /** It and all it has started. */
  family(): readonly number[];
  ready(limitMs?: number): Promise<void>;
  /** Resolves when it has ended: its exit code, or the signal. */
  end(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
}

export async function startServeProcess(options: ServeProcessOptions): Promise<ServeProcess> {
  const { folder } = options;
  const stateDir = join(folder, 'state');
  const configFile = join(folder, 'config.yaml');
  const gateDir = join(folder, 'gates');
  await mkdir(gateDir, { recursive: true, mode: 0o700 });
  if (options.config !== undefined) await writeFile(configFile, options.config);
  const port = options.port ?? (await freePort());
  const [command = LAUNCHER, ...args] = [
    ...(options.prefix ?? []),
    LAUNCHER,
    ...['serve', '--config', configFile, '--state-dir', stateDir, '--port', String(port)],
  ];
  const child = spawn(command, args, {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      VRAM_LANDLORD_GATE_DIR: gateDir,
      ...options.env,
    },
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
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} did not start`);
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const over = once(child, 'close').then(() => child.exitCode ?? child.signalCode);
  // As the process itself sees it, which may have mounts of its own.
  const token = async (): Promise<string> =>
    (await readFile(`/proc/${pid}/root${stateDir}/token`, 'utf8')).trim();
  const url = `http://127.0.0.1:${port}`;
  const ask = async (path: string, init: RequestInit = {}): Promise<Response> =>
    await fetch(`${url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${await token()}`, ...init.headers },
    });
  const json = async <T>(path: string): Promise<T> => {
    const answer = await ask(path);
    return JSON.parse(await answer.text());
  };
  const family = (of = pid): readonly number[] => {
    try {
      return [of, ...childrenOf(of).flatMap((child) => family(child))];
    } catch {
      // One that has ended while it was looked at.
      return [of];
    }
  };
  const ready = async (limitMs = 60_000): Promise<void> => {
    await until(() => isOver() || out.includes('its page opens'), limitMs, 'landlord serve to be ready');
    if (isOver()) throw new Error(`landlord serve ended:\n${out}${err}`);
  };
  const end = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | NodeJS.Signals | null> => {
    if (!isOver()) child.kill(signal);
    return await over;
  };
  const served: ServeProcess = {
    child,
    pid,
    port,
    stateDir,
    configFile,
    gateDir,
    socketPath: join(stateDir, 'landlord.sock'),
    out: () => out,
    err: () => err,
    token,
    ask,
    post: (path, body) =>
      ask(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body ?? {}),
      }),
    state: () => json('/api/state'),
    events: (query = 'limit=5000') => json(`/api/events?json=1&${query}`),
    async residentBytes() {
      const line = /^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'));
      return Number(line?.[1]) * 1024;
    },
    openFiles: async () => (await readdir(`/proc/${pid}/fd`)).length,
    family: () => family(),
    ready,
    end,
    async [Symbol.asyncDispose]() {
      const force = setTimeout(() => child.kill('SIGKILL'), 20_000);
      await end();
      clearTimeout(force);
    },
  };
  if (options.wait === false) return served;
  await ready().catch(async (late: unknown) => {
    await end('SIGKILL');
    throw late;
  });
  return served;
}
