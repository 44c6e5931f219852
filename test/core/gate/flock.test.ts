import { closeSync, constants, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { flockLocker, type LockCalls } from '../../../electron/core/gate/flock.ts';
import { fileLocker } from '../../../electron/core/gate/locker.ts';
import { runToEnd, tempFolder } from '../../support/gate.ts';

const CODES = { EAGAIN: 11, EWOULDBLOCK: 11, ENOLCK: 37, EBADF: 9, EINTR: 4 };

function calls(over: Partial<LockCalls>): { readonly calls: LockCalls; readonly made: string[] } {
  const made: string[] = [];
  return {
    made,
    calls: {
      flock: (fd, operation) => made.push(`flock ${fd} ${operation}`) * 0,
      setDescriptorFlags: (fd, flags) => made.push(`setfd ${fd} ${flags}`) * 0,
      statusFlags: () => 0,
      setStatusFlags: (fd, flags) => made.push(`setfl ${fd} ${flags}`) * 0,
      restoreSignal: (signal) => made.push(`signal ${signal}`),
      errno: () => 0,
      codes: CODES,
      ...over,
    },
  };
}

describe('flock(2)', () => {
  it('never asks for a lock that would wait', () => {
    const { calls: all, made } = calls({});
    flockLocker(all).tryLock(7);
    expect(made).toEqual(['flock 7 6']);
  });

  it('tells held by another from a file that can not be locked', () => {
    const failing = (errno: number) =>
      flockLocker(calls({ flock: () => -1, errno: () => errno }).calls).tryLock(1);
    expect(failing(11)).toEqual({ kind: 'busy' });
    expect(failing(37)).toEqual({ kind: 'failed', errno: 'ENOLCK' });
    expect(failing(999)).toEqual({ kind: 'failed', errno: 'errno 999' });
  });

  it('undoes Node’s ignored signals and non-blocking streams before exec, and no more', () => {
    const flags = [constants.O_WRONLY | constants.O_NONBLOCK, constants.O_RDWR, -1];
    const { calls: all, made } = calls({ statusFlags: (fd) => flags[fd] ?? 0 });
    flockLocker(all).prepareExec();
    expect(made).toEqual(['signal 13', 'signal 25', `setfl 0 ${constants.O_WRONLY}`]);
  });

  it('says that a descriptor could not be kept for exec', () => {
    expect(flockLocker(calls({ setDescriptorFlags: () => -1 }).calls).makeInheritable(3)).toBe(false);
  });

  it('is one lock with util-linux’ flock, in both directions', () => {
    using folder = tempFolder();
    const path = join(folder.path, 'x.lock');
    writeFileSync(path, '');
    const locker = fileLocker();
    if (!locker.ok) throw new Error(locker.error.message);
    const [mine, other] = [openSync(path, 'r+'), openSync(path, 'r')];
    expect(locker.value.tryLock(mine)).toEqual({ kind: 'taken' });
    expect(locker.value.tryLock(other)).toEqual({ kind: 'busy' });
    expect(runToEnd(['flock', '-n', path, 'true']).status).toBe(1);
    locker.value.unlock(mine);
    expect(runToEnd(['flock', '-n', path, 'true']).status).toBe(0);
    expect(locker.value.tryLock(other)).toEqual({ kind: 'taken' });
    closeSync(mine);
    closeSync(other);
    expect(locker.value.tryLock(other)).toEqual({ kind: 'failed', errno: 'EBADF' });
  });
});
