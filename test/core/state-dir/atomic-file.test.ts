import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createFile, replaceFile } from '../../../electron/core/state-dir/atomic-file.ts';
import { tempFolder } from '../../support/gate.ts';

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

describe('a file that is replaced as one step', () => {
  it.each([0o000, 0o022, 0o777])('has the mode that is asked for, whatever the umask (%o)', async (mask) => {
    using folder = tempFolder('atomic');
    const before = process.umask(mask);
    try {
      await replaceFile(join(folder.path, 'token'), 'a', 0o600);
      await createFile(join(folder.path, 'schema'), 'b', 0o644);
    } finally {
      process.umask(before);
    }
    expect(await modeOf(join(folder.path, 'token'))).toBe(0o600);
    expect(await modeOf(join(folder.path, 'schema'))).toBe(0o644);
  });

  it('takes the place of a link, and what it leads to stays as it is', async () => {
    using folder = tempFolder('atomic');
    const [path, victim] = [join(folder.path, 'token'), join(folder.path, 'victim')];
    await writeFile(victim, 'precious');
    await symlink(victim, path);
    expect(await createFile(path, 'ours', 0o600)).toBe(false);
    await replaceFile(path, 'ours', 0o600);
    expect([await readFile(victim, 'utf8'), await readFile(path, 'utf8')]).toEqual(['precious', 'ours']);
  });

  it('leaves nothing of itself where it can not be put in place', async () => {
    using folder = tempFolder('atomic');
    await mkdir(join(folder.path, 'token', 'inside'), { recursive: true });
    await expect(replaceFile(join(folder.path, 'token'), 'a', 0o600)).rejects.toThrow();
    expect(await readdir(folder.path)).toEqual(['token']);
  });
});
