import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { holdsLock } from '../../../electron/core/state-dir/lock-file.ts';
import { acquireRuntimeLock } from '../../../electron/core/state-dir/runtime-lock.ts';
import { readRuntimeRecord } from '../../../electron/core/state-dir/runtime-record.ts';

const CONTENDER = fileURLToPath(new URL('./lock-contender.ts', import.meta.url));
const SELF = { pid: process.pid, startedAt: '2026-01-02T03:04:05.000Z', version: '1.0.0' };

let dir = '';
let paths = { lockFile: '', runtimeFile: '' };
const children: ChildProcess[] = [];
const strays: number[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'landlord-lock-'));
  paths = { lockFile: join(dir, 'runtime.lock'), runtimeFile: join(dir, 'runtime.json') };
});

afterEach(async () => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  for (const pid of strays.splice(0)) process.kill(pid, 'SIGKILL');
  await rm(dir, { recursive: true, force: true });
});

/** Starts a contender and brings its lines up to the one that decides. */
async function contend(extra: readonly string[] = []): Promise<{
  readonly child: ChildProcess;
  readonly pid: number;
  readonly lines: readonly string[];
}> {
  const child = spawn(process.execPath, [CONTENDER, paths.lockFile, paths.runtimeFile, ...extra], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const lines: string[] = [];
  if (child.stdout === null) throw new Error('no stdout');
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (!line.startsWith('child ')) break;
  }
  return { child, pid: child.pid ?? -1, lines };
}

describe('one runtime per user', () => {
  it('lets exactly one of eight racing processes win, and tells the others its pid and URL', async () => {
    const results = await Promise.all(Array.from({ length: 8 }, () => contend()));
    const winners = results.filter((result) => result.lines.at(-1) === 'won');
    expect(winners).toHaveLength(1);
    const winner = winners[0]?.pid;
    for (const loser of results.filter((result) => result.lines.at(-1) !== 'won')) {
      const error: unknown = JSON.parse(loser.lines.at(-1) ?? '');
      expect(error).toMatchObject({ code: 'already_running', numbers: { pid: winner } });
      expect(error).toHaveProperty('message', expect.stringContaining('http://127.0.0.1:7999'));
    }
  });

  it('leaves no lock behind a holder that was killed, though its own child lives on', async () => {
    const first = await contend(['with-offspring']);
    const stray = Number(first.lines[0]?.split(' ')[1]);
    strays.push(stray);
    expect(first.lines.at(-1)).toBe('won');
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    expect(() => process.kill(stray, 0)).not.toThrow();

    const second = await acquireRuntimeLock(paths, SELF);
    expect(second.ok).toBe(true);
    if (second.ok) await second.value.release();
  });

  it('names no pid of a dead runtime while the living one has not written its own', async () => {
    const first = await acquireRuntimeLock(paths, SELF);
    expect(first.ok).toBe(true);
    await writeFile(
      paths.runtimeFile,
      JSON.stringify({
        schema: 'vram-landlord/runtime/1',
        pid: process.pid,
        startTimeTicks: 1,
        url: 'http://127.0.0.1:1',
        startedAt: '2020-01-01T00:00:00.000Z',
        version: '0',
      }),
    );
    const second = await acquireRuntimeLock(paths, SELF);
    expect(second).toMatchObject({ ok: false, error: { code: 'already_running', numbers: { pid: null } } });
    if (first.ok) await first.value.release();
  });

  it('refuses a second one in the same process, and gives the lock back on release', async () => {
    const first = await acquireRuntimeLock(paths, SELF);
    if (!first.ok) throw new Error(first.error.message);
    await first.value.publish('http://127.0.0.1:7781');
    expect(await readRuntimeRecord(paths.runtimeFile)).toMatchObject({
      pid: process.pid,
      url: 'http://127.0.0.1:7781',
    });
    expect(await holdsLock(process.pid, paths.lockFile)).toBe(true);
    expect(await acquireRuntimeLock(paths, SELF)).toMatchObject({
      ok: false,
      error: { code: 'already_running' },
    });
    await first.value.release();
    expect(await holdsLock(process.pid, paths.lockFile)).toBe(false);
    const third = await acquireRuntimeLock(paths, SELF);
    expect(third.ok).toBe(true);
    if (third.ok) await third.value.release();
  });

  it('takes the same kernel lock through koffi where there is no flock program', async () => {
    const path = process.env.PATH;
    process.env.PATH = dir;
    try {
      const first = await acquireRuntimeLock(paths, SELF);
      if (!first.ok) throw new Error(first.error.message);
      process.env.PATH = path;
      expect(await acquireRuntimeLock(paths, SELF)).toMatchObject({
        ok: false,
        error: { code: 'already_running' },
      });
      await first.value.release();
    } finally {
      process.env.PATH = path;
    }
  });

  it('follows no link in the place of its file, which may lead to a lock of somebody else', async () => {
    await writeFile(join(dir, 'other.lock'), '');
    await symlink(join(dir, 'other.lock'), paths.lockFile);
    expect(await acquireRuntimeLock(paths, SELF)).toMatchObject({
      ok: false,
      error: { code: 'storage_failed' },
    });
  });

  it('holds the file that others find there, also where it was replaced just before (rule 19)', async () => {
    const path = process.env.PATH;
    await writeFile(
      join(dir, 'flock'),
      `#!/bin/sh\n[ -e '${dir}/done' ] || { : > '${dir}/done'; rm '${paths.lockFile}'; : > '${paths.lockFile}'; }\nPATH='${path}' exec flock "$@"\n`,
      { mode: 0o755 },
    );
    process.env.PATH = `${dir}:${path}`;
    try {
      const lock = await acquireRuntimeLock(paths, SELF);
      if (!lock.ok) throw new Error(lock.error.message);
      expect(await readdir(dir)).toContain('done');
      expect(await holdsLock(process.pid, paths.lockFile)).toBe(true);
      await lock.value.release();
    } finally {
      process.env.PATH = path;
    }
  });

  it('says in a sentence that the lock can not be opened', async () => {
    const broken = { ...paths, lockFile: join(dir, 'missing', 'runtime.lock') };
    expect(await acquireRuntimeLock(broken, SELF)).toMatchObject({
      ok: false,
      error: { code: 'storage_failed' },
    });
  });
});
