import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ensureStateDir } from '../../../electron/core/state-dir/ensure-state-dir.ts';
import { acquireRuntimeLock } from '../../../electron/core/state-dir/runtime-lock.ts';
import { StateWatch } from '../../../electron/core/state-dir/state-watch.ts';

const SELF = { pid: process.pid, startedAt: '2026-11-30T00:00:00Z', version: '1' };
const ADDRESS = 'http://127.0.0.1:7781';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-state-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it('a folder that was taken away is made anew, and one that lacks something is gone on with', async () => {
  const stateDir = join(folder, 'state');
  const paths = {
    stateDir,
    lockFile: join(stateDir, 'runtime.lock'),
    runtimeFile: join(stateDir, 'runtime.json'),
    // Can not be written before its own folder is there.
    tokenFile: join(stateDir, 'keys', 'token'),
  };
  expect((await ensureStateDir(stateDir, null)).ok).toBe(true);
  const lock = await acquireRuntimeLock(paths, SELF);
  if (!lock.ok) throw new Error(lock.error.message);
  const told: string[] = [];
  let restored = 0;
  const watch = new StateWatch(lock.value, {
    paths,
    uid: null,
    self: SELF,
    token: 'secret',
    url: ADDRESS,
    tell: (event) => told.push(event.reason),
    restored: async () => {
      restored += 1;
    },
  });
  try {
    await watch.look();
    expect(told).toEqual([]);

    await rm(stateDir, { recursive: true });
    await watch.look();
    await watch.look();
    // What stands in the way is told once.
    expect(told).toEqual([expect.stringMatching(/no command finds it\. .*ENOENT/)]);
    expect(restored).toBe(0);

    await mkdir(join(stateDir, 'keys'));
    await watch.look();
    await watch.look();
    expect(told.slice(1)).toEqual([expect.stringContaining('It was made anew')]);
    expect(restored).toBe(1);
    expect(await readFile(paths.tokenFile, 'utf8')).toBe('secret\n');
    expect(JSON.parse(await readFile(paths.runtimeFile, 'utf8'))).toMatchObject({ url: ADDRESS });
    expect((await acquireRuntimeLock(paths, SELF)).ok).toBe(false);
  } finally {
    await watch.stop();
    await watch.release();
  }
});
