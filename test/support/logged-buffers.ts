import { startLlamaServer } from './llama-server.ts';

/** What a real llama-server logged of one load, MiB; null: it has no such part. */
export interface LoggedBuffers {
  readonly weightsMib: number;
  readonly kvMib: number;
  readonly stateMib: number;
  readonly computeMib: number;
  /** Of its version line. */
  readonly build: number | null;
}

/** Loads the model, reads the log and ends the server. Nothing is computed. */
export async function loggedBuffers(path: string, args: readonly string[]): Promise<LoggedBuffers> {
  const quiet = ['-lv', '4', '--no-warmup', '-fit', 'off', '--cache-ram', '0'];
  await using server = await startLlamaServer(['-m', path, ...quiet, ...args]);
  // /health answers while it loads; the buffers are all there when it listens to requests.
  for (let tries = 0; tries < 600 && !/model loaded/.test(server.log()); tries += 1)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const log = server.log();
  const sum = (pattern: RegExp): number =>
    [...log.matchAll(pattern)].reduce((total, match) => total + Number(match[1]), 0);
  const build = /\bbuild (\d{4,6})\b/.exec(log);
  return {
    weightsMib: sum(/model buffer size = +([\d.]+) MiB/g),
    kvMib: sum(/llama_kv_cache: size = +([\d.]+) MiB/g),
    stateMib: sum(/llama_memory_recurrent: size = +([\d.]+) MiB/g),
    computeMib: sum(/compute buffer size = +([\d.]+) MiB/g),
    build: build === null ? null : Number(build[1]),
  };
}
