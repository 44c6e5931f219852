import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';

const APPENDER = fileURLToPath(new URL('./append-forever.ts', import.meta.url));
const ROUNDS = 20;

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'landlord-kill-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Ids the child said were committed, before it was killed `afterLines` lines and a little later. */
async function appendAndKill(file: string, afterLines: number, thenMs: number): Promise<readonly number[]> {
  const child = spawn(process.execPath, [APPENDER, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_COMPILE_CACHE: join(dir, 'compile-cache') },
  });
  let output = '';
  let killing = false;
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
    if (killing || output.split('\n').length <= afterLines) return;
    killing = true;
    setTimeout(() => child.kill('SIGKILL'), thenMs);
  });
  await once(child, 'close');
  expect(output).not.toContain('trouble');
  return output.split('\n').slice(0, -1).map(Number);
}

it('loses no committed event to SIGKILL at any instant, and never gives an id twice (rule 22)', async () => {
  const file = join(dir, 'landlord.db');
  const acknowledged: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    acknowledged.push(...(await appendAndKill(file, 1 + Math.random() * 60, Math.random() * 20)));
    const database = new DatabaseSync(file);
    expect(database.prepare('PRAGMA integrity_check').get()).toMatchObject({ integrity_check: 'ok' });
    const stored = new Set(
      database
        .prepare('SELECT id FROM events')
        .all()
        .map((row) => row.id),
    );
    database.close();
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
  }
  expect(acknowledged.length).toBeGreaterThan(ROUNDS);
  expect(acknowledged).toEqual([...new Set(acknowledged)].sort((a, b) => a - b));
}, 120_000);
