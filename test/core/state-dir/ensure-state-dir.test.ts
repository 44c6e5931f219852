import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ensureStateDir } from '../../../electron/core/state-dir/ensure-state-dir.ts';

const UID = process.geteuid?.() ?? null;
let dir = '';

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'landlord-state-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe('ensureStateDir', () => {
  it('makes the folder and its parents with mode 700, and is content with it afterwards', async () => {
    const path = join(dir, 'a', 'b');
    expect(await ensureStateDir(path, UID)).toEqual({ ok: true, value: { notes: [] } });
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect(await ensureStateDir(path, UID)).toEqual({ ok: true, value: { notes: [] } });
  });

  it('refuses a folder that every user can write, even a sticky one', async () => {
    const path = join(dir, 'open');
    await mkdir(path);
    await chmod(path, 0o1777);
    const refused = await ensureStateDir(path, UID);
    expect(refused).toMatchObject({ ok: false, error: { code: 'not_permitted' } });
    if (!refused.ok) expect(refused.error.message).toContain('chmod 700');
  });

  it('refuses a folder of another user', async () => {
    expect(await ensureStateDir(dir, (UID ?? 0) + 1)).toMatchObject({
      ok: false,
      error: { code: 'not_permitted' },
    });
  });

  it('takes away what the group may write, and says so', async () => {
    await chmod(dir, 0o775);
    const ready = await ensureStateDir(dir, UID);
    expect(ready.ok && ready.value.notes).toHaveLength(1);
    expect((await stat(dir)).mode & 0o777).toBe(0o755);
  });

  it('fails at once where no folder can be made, though its parent is there', async () => {
    for (const path of ['/proc/no-such-place', '/proc/no-such-place/deeper']) {
      const refused = await ensureStateDir(path, UID);
      expect(refused).toMatchObject({ ok: false, error: { code: 'storage_failed' } });
    }
  });

  it('says in a sentence that a file is in the way', async () => {
    const file = join(dir, 'file');
    await writeFile(file, '');
    for (const path of [file, join(file, 'below')]) {
      const refused = await ensureStateDir(path, UID);
      expect(refused).toMatchObject({ ok: false, error: { code: 'storage_failed' } });
      if (!refused.ok) expect(refused.error.message).toContain('--state-dir');
    }
  });
});
