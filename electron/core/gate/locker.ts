import type { Result } from '../../../shared/errors.ts';
import { loadFlock } from './flock.ts';
import { loadLockFileEx } from './lock-file-ex.ts';

/** taken: ours until unlocked, or until the last descriptor of this opening is closed, by whatever end. */
export type LockOutcome =
  | { readonly kind: 'taken' }
  | { readonly kind: 'busy' }
  /** ENOLCK and such: this file can't be locked at all. */
  | { readonly kind: 'failed'; readonly errno: string };

/** An exclusive lock on an open file that the kernel alone cleans up. No call ever waits. */
export interface FileLocker {
  tryLock(fd: number): LockOutcome;
  unlock(fd: number): void;
  /** Keeps a descriptor open across exec. False where that can't be had. */
  makeInheritable(fd: number): boolean;
  /**
   * Marks an opening, for whoever looks at it in /proc, as that of a program which is one turn as a
   * whole: a command, or what watches over one.
   */
  handOn(fd: number): void;
  /** Takes back that Node made pipes of its standard streams non-blocking, which whoever shares them would meet. */
  blockStreams(): void;
  /**
   * Undoes what Node did to this process that exec would hand on: SIGPIPE and SIGXFSZ stay ignored
   * across exec (`yes | head` would not end), and pipes of its standard streams stay non-blocking
   * (`cat` would fail with EAGAIN). Call it just before exec.
   */
  prepareExec(): void;
}

let loaded: Result<FileLocker> | null = null;

/** Loaded on the first turn, not on import: 12 ms for koffi (measured, Node 24). Errors: `not_supported`. */
export function fileLocker(): Result<FileLocker> {
  loaded ??= process.platform === 'win32' ? loadLockFileEx() : loadFlock(process.platform);
  return loaded;
}
