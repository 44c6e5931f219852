import { spawn } from 'node:child_process';
import { ensureLlamaServer } from '../fetch-llama-server.mjs';
import { freePort } from './rig-parts.ts';

/** What a real llama-server logs that it takes for one load, bytes. */
export interface LoggedLoad {
  readonly weightsBytes: number;
  readonly cacheBytes: number;
  readonly computeBytes: number;
  readonly build: number | null;
}

const MIB = 1_048_576;
const LIMIT_MS = 60_000;
const LOADED = /model loaded/;

/** Loads the model, reads the log and ends the server. Nothing is computed. */
export async function loggedLoad(path: string, args: readonly string[]): Promise<LoggedLoad> {
  const { command, env } = await ensureLlamaServer();
  const quiet = ['-lv', '4', '--no-warmup', '-fit', 'off', '--cache-ram', '0', '--no-ui'];
  const where = ['--host', '127.0.0.1', '--port', String(await freePort())];
  const server = spawn(command, ['-m', path, ...quiet, ...where, ...args], {
    env: { ...process.env, ...env, LLAMA_ARG_THREADS: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  const ended = new Promise((resolve) => server.once('close', resolve));
  let log = '';
  await new Promise<void>((resolve) => {
    const keep = (chunk: Buffer): void => {
      log += chunk.toString('utf8');
      if (LOADED.test(log)) resolve();
    };
    server.stdout.on('data', keep);
    server.stderr.on('data', keep);
    void ended.then(() => resolve());
  });
  server.kill('SIGKILL');
  await ended;
  if (!LOADED.test(log)) throw new Error(`llama-server did not load ${path}: ${log.slice(-300)}`);
  const sum = (pattern: RegExp): number =>
    [...log.matchAll(pattern)].reduce((total, match) => total + Number(match[1]) * MIB, 0);
  const build = /\bbuild (\d{4,6})\b/.exec(log);
  return {
    weightsBytes: sum(/model buffer size = +([\d.]+) MiB/g),
    cacheBytes: sum(/llama_(?:kv_cache|memory_recurrent): size = +([\d.]+) MiB/g),
    computeBytes: sum(/compute buffer size = +([\d.]+) MiB/g),
    build: build === null ? null : Number(build[1]),
  };
}
