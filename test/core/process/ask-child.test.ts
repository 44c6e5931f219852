import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { askChild } from '../../../electron/core/process/ask-child.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-ask-child-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function ask(source: string, change: { readonly nodePath?: string; readonly limitMs?: number } = {}) {
  const path = join(folder, 'child.mjs');
  await writeFile(path, source);
  return await askChild<unknown>({
    nodePath: process.execPath,
    entry: pathToFileURL(path),
    request: { question: 'Ünï\n$()' },
    limitMs: 20_000,
    ...change,
  });
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const ECHO = `let all = ''; for await (const one of process.stdin.setEncoding('utf8')) all += one;`;

it('asks in JSON and takes the answer as JSON', async () => {
  expect(await ask(`${ECHO} process.stdout.write(all);`)).toEqual({ question: 'Ünï\n$()' });
});

it('has no answer of a child that fails, says no JSON, never reads, or is not there', async () => {
  expect(await ask(`${ECHO} process.stdout.write(all); process.exitCode = 1;`)).toBeNull();
  expect(await ask(`process.stdout.write('{"cut":');`)).toBeNull();
  expect(await ask('process.exit(0);')).toBeNull();
  expect(await ask('', { nodePath: join(folder, 'no-node') })).toBeNull();
  // `spawn` throws where the path goes through a file, as where there is no memory for a process.
  expect(await ask('', { nodePath: join(folder, 'child.mjs', 'node') })).toBeNull();
});

it('ends one that takes too long', async () => {
  const noted = join(folder, 'pid');
  const source = `(await import('node:fs')).writeFileSync(${JSON.stringify(noted)}, String(process.pid)); setInterval(() => {}, 1000);`;
  expect(await ask(source, { limitMs: 1_000 })).toBeNull();
  const pid = Number(await readFile(noted, 'utf8'));
  await expect.poll(() => isRunning(pid)).toBe(false);
});
