import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, readFile, readlink, stat } from 'node:fs/promises';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { isErrno } from './atomic-file.ts';

/**
 * One exclusive flock(2), taken without waiting, that the kernel alone cleans up.
 *
 * A flock belongs to the open file description, so a child that inherits the descriptor can take it
 * for us and exit: util-linux' `flock -n 3` costs 4 ms once and no memory, where loading koffi for the
 * one call costs 10 MB for the life of the process (measured, Node 24). koffi is asked only where there
 * is no such program. Both take the very same kernel lock. An abstract socket was weighed too: it is
 * bound to a network namespace, and any user could squat on its name.
 *
 * Node opens files close-on-exec, so no other child carries the lock on.
 */
export type TakeResult = { readonly taken: true; readonly file: FileHandle } | { readonly taken: false };

const ATTEMPTS = 5;
const LOCK_EX = 2;
const LOCK_NB = 4;

/** Errors: `storage_failed` (can't be opened), `not_supported` (no way to lock here). */
export async function takeLockFile(path: string): Promise<Result<TakeResult>> {
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
      const locked = await tryFlock(file.fd);
      if (!locked.ok || !locked.value) {
        await file.close();
        return locked.ok ? ok({ taken: false }) : locked;
      }
      // Rule 19: somebody may have replaced the file between our opening and our locking it.
      if (await isSameFile(file, path)) return ok({ taken: true, file });
      await file.close();
    }
    return fail(
      'storage_failed',
      `${path} is replaced again and again by another program; find and stop it.`,
    );
  } catch (error) {
    return fail('storage_failed', `The lock ${path} can't be opened (${messageOf(error)}).`);
  }
}

/**
 * Whether that process holds a flock on that file, read from /proc/<pid>/fdinfo without touching the
 * lock. null: can't be told (no /proc, another user's process).
 */
export async function holdsLock(pid: number, path: string): Promise<boolean | null> {
  try {
    const target = await stat(path);
    for (const fd of await readdir(`/proc/${pid}/fd`)) {
      const points = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => null);
      if (points === null || !points.startsWith('/')) continue;
      const opened = await stat(`/proc/${pid}/fd/${fd}`).catch(() => null);
      if (opened === null || opened.ino !== target.ino || opened.dev !== target.dev) continue;
      const info = await readFile(`/proc/${pid}/fdinfo/${fd}`, 'utf8').catch(() => '');
      if (/^lock:.*\bFLOCK\b/m.test(info)) return true;
    }
    return false;
  } catch {
    return null;
  }
}

/** Whether that path still leads to that file. Throws where that can't be told. */
export async function isSameFile(file: FileHandle, path: string): Promise<boolean> {
  const mine = await file.stat();
  try {
    const there = await stat(path);
    return there.ino === mine.ino && there.dev === mine.dev;
  } catch (error) {
    if (isErrno(error, 'ENOENT') || isErrno(error, 'ENOTDIR')) return false;
    throw error;
  }
}

async function tryFlock(fd: number): Promise<Result<boolean>> {
  const code = await runFlockProgram(fd);
  if (code === 0) return ok(true);
  // util-linux and BusyBox both answer 1 for a lock that is held, and other codes for their own trouble.
  if (code === 1) return ok(false);
  return flockThroughKoffi(fd);
}

/** The program's exit status; null when it can't be run. */
function runFlockProgram(fd: number): Promise<number | null> {
  return new Promise((resolve) => {
    try {
      const child = spawn('flock', ['-x', '-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
      child.once('error', () => resolve(null));
      child.once('exit', (code) => resolve(code));
    } catch {
      resolve(null);
    }
  });
}

async function flockThroughKoffi(fd: number): Promise<Result<boolean>> {
  try {
    const { default: koffi } = await import('koffi');
    const library = koffi.load(process.platform === 'darwin' ? 'libSystem.dylib' : 'libc.so.6');
    const flock: (fd: number, operation: number) => unknown = library.func('int flock(int, int)');
    return ok(flock(fd, LOCK_EX | LOCK_NB) === 0);
  } catch (error) {
    return fail(
      'not_supported',
      `Nothing here can take a file lock (${messageOf(error)}); install util-linux for its flock program.`,
    );
  }
}
