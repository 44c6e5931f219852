import { describe, expect, it } from 'vitest';
import {
  loadLockFileEx,
  lockFileExLocker,
  type WindowsCalls,
} from '../../../electron/core/gate/lock-file-ex.ts';

/** Windows as far as its documentation goes: one lock on byte 0 a file, by handle. */
function windows(): WindowsCalls & { readonly flags: number[]; error: number } {
  let owner: number | bigint | null = null;
  const self = {
    flags: [] as number[],
    error: 0,
    handleOf: (fd: number) => fd + 1000,
    lockFirstByte(handle: number | bigint, flags: number): number {
      self.flags.push(flags);
      if (self.error !== 0) return 0;
      if (owner !== null) {
        self.error = 33;
        return 0;
      }
      owner = handle;
      return 1;
    },
    unlockFirstByte(handle: number | bigint): number {
      if (owner !== handle) return 0;
      owner = null;
      self.error = 0;
      return 1;
    },
    lastError: () => self.error,
  };
  return self;
}

describe('LockFileEx behind the same interface', () => {
  it('asks for an exclusive lock and never waits', () => {
    const calls = windows();
    expect(lockFileExLocker(calls).tryLock(3)).toEqual({ kind: 'taken' });
    expect(calls.flags).toEqual([3]);
  });

  it('is busy while another opening has it, and free after', () => {
    const locker = lockFileExLocker(windows());
    locker.tryLock(3);
    expect(locker.tryLock(4)).toEqual({ kind: 'busy' });
    locker.unlock(3);
    expect(locker.tryLock(4)).toEqual({ kind: 'taken' });
  });

  it('counts a lock that would have to wait as busy, and any other error as failed', () => {
    const calls = windows();
    calls.error = 997;
    expect(lockFileExLocker(calls).tryLock(3)).toEqual({ kind: 'busy' });
    calls.error = 6;
    expect(lockFileExLocker(calls).tryLock(3)).toEqual({ kind: 'failed', errno: 'Win32 error 6' });
  });

  it('keeps no descriptor across exec, for there is none', () => {
    expect(lockFileExLocker(windows()).makeInheritable(3)).toBe(false);
  });

  it('is a value, not a crash, where there is no Windows', () => {
    const loaded = loadLockFileEx();
    expect(loaded.ok).toBe(process.platform === 'win32');
    if (!loaded.ok) expect(loaded.error.code).toBe('not_supported');
  });
});
