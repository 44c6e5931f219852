import {
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileLocker } from '../../../electron/core/gate/locker.ts';
import {
  type OpenLock,
  PRIVATE_MODES,
  releaseSlot,
  SHARED_MODES,
  takeSlot,
} from '../../../electron/core/gate/take-slot.ts';
import { pythonHolder, runToEnd, tempFolder } from '../../support/gate.ts';

const loaded = fileLocker();
if (!loaded.ok) throw new Error(loaded.error.message);
const locker = loaded.value;

function taken(path: string): OpenLock {
  const take = takeSlot(path, PRIVATE_MODES, locker);
  if (take.kind !== 'taken') throw new Error(take.kind);
  return take.slot;
}

const foreign = (path: string): number | null => runToEnd(['flock', '-n', path, 'true']).status;

describe('one lock file', () => {
  it('is created once, 0600 and empty, with its folder, and never deleted', () => {
    using folder = tempFolder();
    const path = join(folder.path, 'deep', 'gates', 'a.lock');
    const mask = process.umask(0o777);
    let slot: OpenLock;
    try {
      // A umask that takes every right away from new files must not shut us out of the next turn.
      process.umask(0o022);
      slot = taken(path);
    } finally {
      process.umask(mask);
    }
    const { ino, mode, size } = statSync(path);
    expect([mode & 0o777, size]).toEqual([0o600, 0]);
    releaseSlot(slot, locker);
    releaseSlot(taken(path), locker);
    expect(statSync(path).ino).toBe(ino);
  });

  it('is open to all users where its root is, whatever the umask', () => {
    using folder = tempFolder();
    const path = join(folder.path, 'a.lock');
    const mask = process.umask(0o077);
    try {
      const take = takeSlot(path, SHARED_MODES, locker);
      if (take.kind === 'taken') releaseSlot(take.slot, locker);
    } finally {
      process.umask(mask);
    }
    expect(statSync(path).mode & 0o777).toBe(0o666);
  });

  it('excludes a second taker of this process, and one that knows nothing of us', async () => {
    using folder = tempFolder();
    const path = join(folder.path, 'a.lock');
    const slot = taken(path);
    expect(takeSlot(path, PRIVATE_MODES, locker).kind).toBe('busy');
    expect(foreign(path)).toBe(1);
    releaseSlot(slot, locker);
    await using holder = await pythonHolder(path);
    expect(takeSlot(path, PRIVATE_MODES, locker).kind).toBe('busy');
    await holder.end();
    releaseSlot(taken(path), locker);
  });

  it('is locked at its path: an opening of a file that was replaced since is given up (rule 19)', () => {
    using folder = tempFolder();
    const path = join(folder.path, 'a.lock');
    releaseSlot(taken(path), locker);
    for (const replace of [
      () => unlinkSync(path),
      () => {
        writeFileSync(`${path}.new`, '');
        renameSync(`${path}.new`, path);
      },
    ]) {
      replace();
      const slot = taken(path);
      expect(slot.ino).toBe(statSync(path).ino);
      expect(foreign(path)).toBe(1);
      releaseSlot(slot, locker);
    }
  });

  it('is opened for no second taker while a turn of this process has it', () => {
    using folder = tempFolder();
    const path = join(folder.path, 'a.lock');
    // From its first turn on the file stays open.
    releaseSlot(taken(path), locker);
    const slot = taken(path);
    const asked: number[] = [];
    const tryLock = (fd: number) => {
      asked.push(fd);
      return locker.tryLock(fd);
    };
    const watched = { ...locker, tryLock };
    expect(takeSlot(path, PRIVATE_MODES, watched)).toEqual({ kind: 'busy' });
    releaseSlot(slot, locker);
    expect(takeSlot(path, PRIVATE_MODES, watched).kind).toBe('taken');
    expect(asked).toEqual([slot.fd]);
  });

  it('is not called busy by the holder of a file that lies there no more', async () => {
    using folder = tempFolder();
    const path = join(folder.path, 'a.lock');
    releaseSlot(taken(path), locker);
    await using _holder = await pythonHolder(path);
    unlinkSync(path);
    releaseSlot(taken(path), locker);
  });

  it('gives up on one that is replaced at every try', () => {
    using folder = tempFolder();
    const path = join(folder.path, 'a.lock');
    const replacing = {
      ...locker,
      tryLock: (fd: number) => {
        rmSync(path, { force: true });
        return locker.tryLock(fd);
      },
    };
    expect(takeSlot(path, PRIVATE_MODES, replacing)).toMatchObject({
      kind: 'unusable',
      reason: 'lock_replaced',
    });
  });

  it('is a plain file: no folder, link or pipe in its place is locked or waited for', () => {
    using folder = tempFolder();
    const at = (name: string): string => join(folder.path, name);
    mkdirSync(at('dir.lock'));
    symlinkSync('/etc/passwd', at('link.lock'));
    expect(runToEnd(['mkfifo', at('pipe.lock')]).status).toBe(0);
    for (const name of ['dir.lock', 'link.lock', 'pipe.lock'])
      expect(takeSlot(at(name), PRIVATE_MODES, locker), name).toMatchObject({
        kind: 'unusable',
        reason: 'lock_not_a_file',
      });
  });

  it('says that its root is no folder', () => {
    using folder = tempFolder();
    writeFileSync(join(folder.path, 'root'), '');
    expect(takeSlot(join(folder.path, 'root', 'a.lock'), PRIVATE_MODES, locker)).toMatchObject({
      kind: 'unusable',
      reason: 'root_not_a_folder',
    });
    expect(existsSync(join(folder.path, 'root', 'a.lock'))).toBe(false);
  });
});
