import { createRequire } from 'node:module';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import type { FileLocker, LockOutcome } from './locker.ts';

/**
 * Windows' counterpart of flock: LockFileEx on byte 0 of the lock file, which may lie beyond the end
 * of an empty file. It too is bound to one opening of the file and freed by the kernel. Python joins
 * with `msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)` at position 0, which is the same lock.
 */
export interface WindowsCalls {
  /** The HANDLE of a C descriptor, as a number or a bigint. */
  readonly handleOf: (fd: number) => number | bigint;
  /** Win32 BOOL: 0 is failure. */
  readonly lockFirstByte: (handle: number | bigint, flags: number) => number;
  readonly unlockFirstByte: (handle: number | bigint) => number;
  readonly lastError: () => number;
}

// fileapi.h, minwinbase.h
const LOCKFILE_FAIL_IMMEDIATELY = 1;
const LOCKFILE_EXCLUSIVE_LOCK = 2;
// winerror.h: somebody else has it; or it would have to wait.
const ERROR_LOCK_VIOLATION = 33;
const ERROR_IO_PENDING = 997;

export function lockFileExLocker(calls: WindowsCalls): FileLocker {
  return {
    tryLock(fd): LockOutcome {
      const flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
      if (calls.lockFirstByte(calls.handleOf(fd), flags) !== 0) return { kind: 'taken' };
      const error = calls.lastError();
      return error === ERROR_LOCK_VIOLATION || error === ERROR_IO_PENDING
        ? { kind: 'busy' }
        : { kind: 'failed', errno: `Win32 error ${error}` };
    },
    unlock(fd): void {
      calls.unlockFirstByte(calls.handleOf(fd));
    },
    // There is no exec: `landlord turn` keeps the lock itself and supervises the command.
    makeInheritable: () => false,
    handOn: () => undefined,
    blockStreams: () => undefined,
    prepareExec: () => undefined,
  };
}

/** Errors: `not_supported`. */
export function loadLockFileEx(): Result<FileLocker> {
  try {
    const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi');
    const kernel = koffi.load('kernel32.dll');
    const overlapped = koffi.struct({
      Internal: 'uintptr_t',
      InternalHigh: 'uintptr_t',
      Offset: 'uint32_t',
      OffsetHigh: 'uint32_t',
      hEvent: 'uintptr_t',
    });
    const pointer = koffi.inout(koffi.pointer(overlapped));
    const lock = kernel.func('__stdcall', 'LockFileEx', 'int', [
      'intptr_t',
      'uint32_t',
      'uint32_t',
      'uint32_t',
      'uint32_t',
      pointer,
    ]);
    const unlock = kernel.func('__stdcall', 'UnlockFileEx', 'int', [
      'intptr_t',
      'uint32_t',
      'uint32_t',
      'uint32_t',
      pointer,
    ]);
    const lastError = kernel.func('uint32_t __stdcall GetLastError()');
    // Node has its own C runtime, whose descriptors only its own exported function knows.
    const handleOf = koffi.load(process.execPath).func('intptr_t uv_get_osfhandle(int fd)');
    const start = { Internal: 0, InternalHigh: 0, Offset: 0, OffsetHigh: 0, hEvent: 0 };
    return ok(
      lockFileExLocker({
        handleOf: (fd) => handleOf(fd),
        lockFirstByte: (handle, flags) => Number(lock(handle, flags, 0, 1, 0, { ...start })),
        unlockFirstByte: (handle) => Number(unlock(handle, 0, 1, 0, { ...start })),
        lastError: () => Number(lastError()),
      }),
    );
  } catch (thrown) {
    return fail(
      'not_supported',
      `LockFileEx could not be reached (${messageOf(thrown)}), so no lane can be taken; run npm ci again.`,
    );
  }
}
