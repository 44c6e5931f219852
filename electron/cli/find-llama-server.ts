import { execFile } from 'node:child_process';
import type { LlamaServer } from '../core/demo/demo-router.ts';

/** The script that fetches llama-server knows where it puts it; it is no part of the program and runs by itself. */
const FINDER = new URL('../../build/fetch-llama-server.mjs', import.meta.url).href;
const LIMIT_MS = 15_000;

/** A llama-server of this machine, its own private copy or one on PATH; null: none. Downloads nothing. */
export function findLlamaServer(): Promise<LlamaServer | null> {
  const script = `import { findLlamaServer } from ${JSON.stringify(FINDER)}; console.log(JSON.stringify(findLlamaServer()));`;
  return new Promise((resolve) => {
    const args = ['--input-type=module', '--eval', script];
    execFile(process.execPath, args, { timeout: LIMIT_MS }, (error, stdout) =>
      resolve(error === null ? parseFound(stdout) : null),
    );
  });
}

/** null: none was found, or the answer is of another shape. */
export function parseFound(text: string): LlamaServer | null {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof found !== 'object' || found === null) return null;
  const command = 'command' in found ? found.command : null;
  const version = 'version' in found ? found.version : null;
  const env = 'env' in found ? found.env : null;
  if (typeof command !== 'string' || typeof env !== 'object' || env === null) return null;
  const variables = Object.entries(env).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return {
    command,
    env: Object.fromEntries(variables),
    version: typeof version === 'string' ? version : 'of unknown version',
  };
}
