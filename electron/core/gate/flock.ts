import { constants } from 'node:fs';
import { createRequire } from 'node:module';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import type { FileLocker, LockOutcome } from './locker.ts';

/** The calls of libc that the gate needs; each gives what the C function gives. */
export interface LockCalls {
  readonly flock: (fd: number, operation: number) => number;
  /** fcntl with F_SETFD. */
  readonly setDescriptorFlags: (fd: number, flags: number) => number;
  /** fcntl with F_GETFL and F_SETFL. */
  readonly statusFlags: (fd: number) => number;
  readonly setStatusFlags: (fd: number, flags: number) => number;
  readonly restoreSignal: (signal: number) => void;
  readonly errno: () => number;
  /** `EAGAIN` → its number on this system. */
  readonly codes: Readonly<Record<string, number>>;
}

// sys/file.h, the same on Linux and macOS.
const LOCK_EX = 2;
const LOCK_NB = 4;
const LOCK_UN = 8;
const F_SETFD = 2;
const F_GETFL = 3;
const F_SETFL = 4;
// signal.h, the same on Linux and macOS.
const SIGPIPE = 13;
const SIGXFSZ = 25;

/** flock(2): bound to the open file description, so the kernel frees it however its holder ends. */
export function flockLocker(calls: LockCalls): FileLocker {
  const busy = new Set([calls.codes.EAGAIN, calls.codes.EWOULDBLOCK]);
  const block = (fd: number): void => {
    const flags = calls.statusFlags(fd);
    if (flags >= 0 && (flags & constants.O_NONBLOCK) !== 0) {
      calls.setStatusFlags(fd, flags & ~constants.O_NONBLOCK);
    }
  };
  const blockStreams = (): void => {
    for (const fd of [0, 1, 2]) block(fd);
  };
  return {
    tryLock(fd): LockOutcome {
      // LOCK_NB always: a blocking call would hold one of Node's few threads, and its exit.
      if (calls.flock(fd, LOCK_EX | LOCK_NB) === 0) return { kind: 'taken' };
      const errno = calls.errno();
      return busy.has(errno) ? { kind: 'busy' } : { kind: 'failed', errno: nameOf(errno, calls.codes) };
    },
    unlock(fd): void {
      calls.flock(fd, LOCK_UN);
    },
    makeInheritable: (fd) => calls.setDescriptorFlags(fd, 0) === 0,
    // A lock file is opened with O_NONBLOCK, which means nothing to it: so its absence can be the mark.
    handOn: block,
    blockStreams,
    prepareExec(): void {
      calls.restoreSignal(SIGPIPE);
      calls.restoreSignal(SIGXFSZ);
      blockStreams();
    },
  };
}

function nameOf(errno: number, codes: Readonly<Record<string, number>>): string {
  return Object.entries(codes).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`;
}

/** Errors: `not_supported` when koffi or libc can't be loaded. */
export function loadFlock(platform: NodeJS.Platform): Result<FileLocker> {
  try {
    const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi');
    // The program itself has libc's functions, whichever libc that is.
    const library = koffi.load(platform === 'darwin' ? '/usr/lib/libSystem.B.dylib' : null);
    const flock = library.func('int flock(int fd, int operation)');
    // Declared with its real `...`: some machines pass such arguments in another place.
    const fcntl = library.func('int fcntl(int fd, int command, ...)');
    const signal = library.func('void *signal(int number, void *handler)');
    return ok(
      flockLocker({
        flock: (fd, operation) => Number(flock(fd, operation)),
        setDescriptorFlags: (fd, flags) => Number(fcntl(fd, F_SETFD, 'int', flags)),
        statusFlags: (fd) => Number(fcntl(fd, F_GETFL, 'int', 0)),
        setStatusFlags: (fd, flags) => Number(fcntl(fd, F_SETFL, 'int', flags)),
        restoreSignal: (number) => {
          signal(number, null);
        },
        errno: () => koffi.errno(),
        codes: koffi.os.errno,
      }),
    );
  } catch (thrown) {
    // Node goes on with who wanted it, line by line.
    const [why] = messageOf(thrown).split('\n');
    return fail(
      'not_supported',
      `koffi could not be loaded (${why}), so no lane can be taken; run npm ci again.`,
    );
  }
}
