import { spawn } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { field } from '../backends/http.ts';
import type { LlamaServer } from './demo-router.ts';

type Candidate = Omit<LlamaServer, 'version'>;

/** Where set-up puts a private copy, with a stamp that says how to start it. */
export const PRIVATE_COPY = join(
  import.meta.dirname,
  '..',
  '..',
  '..',
  'node_modules',
  '.cache',
  'llama-server',
);
const LIMIT_MS = 10_000;

/**
 * A llama-server of this machine that runs: the private copy, else the first on PATH; null: none.
 * Nothing is downloaded.
 */
export async function findLlamaServer(
  places: { readonly privateCopy: string; readonly path: string } = {
    privateCopy: PRIVATE_COPY,
    path: process.env.PATH ?? '',
  },
): Promise<LlamaServer | null> {
  const own = stampedCopy(places.privateCopy);
  const installed = places.path
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => ({ command: join(folder, 'llama-server'), env: {} }));
  for (const candidate of own === null ? installed : [own, ...installed]) {
    if (!isExecutable(candidate.command)) continue;
    const version = await versionOf(candidate);
    if (version !== null) return { ...candidate, version };
  }
  return null;
}

function stampedCopy(folder: string): Candidate | null {
  let stamp: unknown;
  try {
    stamp = JSON.parse(readFileSync(join(folder, 'stamp.json'), 'utf8'));
  } catch {
    return null;
  }
  const command = field(stamp, 'command');
  const env = field(stamp, 'env');
  if (typeof command !== 'string' || typeof env !== 'object' || env === null) return null;
  const variables = Object.entries(env).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return { command, env: Object.fromEntries(variables) };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What it says after `version:`; null: it does not run, as a copy that was moved. */
function versionOf({ command, env }: Candidate): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn(command, ['--version'], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL',
    });
    let said = '';
    const keep = (chunk: Buffer): void => {
      said += chunk.toString('utf8');
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', () => resolve(null));
    child.once('close', (code) =>
      resolve(code === 0 ? (/version:\s*(.+)/.exec(said)?.[1]?.trim() ?? 'of unknown version') : null),
    );
  });
}
