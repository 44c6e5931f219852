import { closeSync, constants, fchmodSync, fstatSync, lstatSync, openSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf } from '../errno.ts';
import { makeFolders } from '../make-folders.ts';
import type { FileLocker } from './locker.ts';
import type { OpenReason } from './reports.ts';

/**
 * One lock file: opened, locked, and proven to be the file that lies at its path.
 *
 *   open ──► locked by us ──► same inode at the path ──► taken
 *     ▲        │ another          │ another file there, or none
 *     │        ▼                  ▼
 *     │      busy            put back, opened anew (rule 19)
 *     └───────────────────────────┘
 */
export type SlotTake =
  | { readonly kind: 'taken'; readonly slot: OpenLock }
  | { readonly kind: 'busy' }
  | {
      readonly kind: 'unusable';
      readonly reason: OpenReason;
      readonly errno: string | null;
      readonly message: string;
    };

export interface OpenLock {
  readonly path: string;
  readonly fd: number;
  readonly dev: number;
  readonly ino: number;
}

/** Who may open what we create: one user's own root, or one for every user of the machine. */
export interface LockModes {
  readonly lock: number;
  readonly folder: number;
}
export const PRIVATE_MODES: LockModes = { lock: 0o600, folder: 0o700 };
export const SHARED_MODES: LockModes = { lock: 0o666, folder: 0o777 };

const ATTEMPTS = 5;
const MOST_KEPT = 16;

/**
 * Files that stay open from turn to turn, one for each path. Opening and closing costs more than
 * locking; the inode check that every taking needs anyway also finds out an opening that has grown old.
 */
const kept = new Map<string, Kept>();

interface Kept {
  readonly lock: OpenLock;
  /** A turn has it now; another one for the same path opens the file anew. */
  inUse: boolean;
}

/**
 * Descriptors of locks that this process opened for turns of its own: its sessions exclude one another.
 * One set for every copy of this library in the process.
 */
export const ownDescriptors: Set<number> = sharedSet(Symbol.for('vram-landlord/gate descriptors'));

function sharedSet(key: symbol): Set<number> {
  const found: unknown = Reflect.get(globalThis, key);
  if (found instanceof Set) return found;
  const made = new Set<number>();
  Reflect.set(globalThis, key, made);
  return made;
}

export function takeSlot(path: string, modes: LockModes, locker: FileLocker): SlotTake {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    let opened: OpenLock;
    const known = kept.get(path);
    // Locked by a turn of this process: another opening of that file could not be.
    if (known?.inUse === true && isAtPath(known.lock)) return { kind: 'busy' };
    try {
      opened = takeKept(known) ?? openLock(path, modes);
    } catch (thrown) {
      return cannotOpen(path, thrown);
    }
    const outcome = locker.tryLock(opened.fd);
    if (outcome.kind === 'failed') {
      closeLock(opened);
      return unusable('lock_failed', outcome.errno, `The lock ${path} can't be taken (${outcome.errno}).`);
    }
    if (isAtPath(opened)) {
      if (outcome.kind === 'taken') return { kind: 'taken', slot: opened };
      keep(opened);
      return { kind: 'busy' };
    }
    closeLock(opened);
  }
  return unusable('lock_replaced', null, `The lock ${path} is replaced again and again; find what does so.`);
}

/** A file that is still open from an earlier turn, locked; null: it is not, or is locked by another. Whether it lies at its path is not looked at. */
export function takeOpenSlot(opened: OpenLock, locker: FileLocker): OpenLock | null {
  const known = kept.get(opened.path);
  if (known === undefined || known.inUse || known.lock !== opened) return null;
  if (locker.tryLock(opened.fd).kind !== 'taken') return null;
  known.inUse = true;
  return opened;
}

export function releaseSlot(slot: OpenLock, locker: FileLocker): void {
  // Unlocked and not only closed: a child that was forked with the descriptor would keep the lane.
  locker.unlock(slot.fd);
  keep(slot);
}

/** Whether the file that is locked is the file at its path (rule 19). */
export function isAtPath(opened: OpenLock): boolean {
  try {
    const there = lstatSync(opened.path, { throwIfNoEntry: false });
    return there !== undefined && there.ino === opened.ino && there.dev === opened.dev;
  } catch {
    return false;
  }
}

function takeKept(found: Kept | undefined): OpenLock | undefined {
  if (found === undefined || found.inUse) return undefined;
  found.inUse = true;
  return found.lock;
}

/** Nobody locks it now. */
function keep(opened: OpenLock): void {
  const known = kept.get(opened.path);
  if (known?.lock === opened) known.inUse = false;
  else if (known !== undefined || kept.size >= MOST_KEPT) closeLock(opened);
  else kept.set(opened.path, { lock: opened, inUse: false });
}

function closeLock(opened: OpenLock): void {
  if (kept.get(opened.path)?.lock === opened) kept.delete(opened.path);
  ownDescriptors.delete(opened.fd);
  try {
    closeSync(opened.fd);
  } catch {
    // Closed by somebody who had no business with it: then its lock is gone as well.
  }
}

function openLock(path: string, modes: LockModes): OpenLock {
  const fd = openOrCreate(path, modes);
  let stat: Stats;
  try {
    stat = fstatSync(fd);
    if (!stat.isFile()) throw Object.assign(new Error('not a regular file'), { code: 'EISDIR' });
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
  ownDescriptors.add(fd);
  return { path, fd, dev: stat.dev, ino: stat.ino };
}

/** O_NONBLOCK: a FIFO in the lock's place must not make us wait. Node adds O_CLOEXEC itself. */
const OPEN = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

function openOrCreate(path: string, modes: LockModes): number {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return openExisting(path);
    } catch (thrown) {
      if (errnoOf(thrown) !== 'ENOENT' || attempt >= ATTEMPTS) throw thrown;
    }
    try {
      // O_EXCL: creating is one step, and O_CREAT on another user's file is refused in a folder like
      // /tmp (fs.protected_regular).
      const flags = OPEN | constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
      const fd = openSync(path, flags, modes.lock);
      // The mode given to open(2) passes through the umask.
      if (modes.lock !== 0o600) fchmodSync(fd, modes.lock);
      return fd;
    } catch (thrown) {
      const errno = errnoOf(thrown);
      if (errno === 'ENOENT') makeFolders(dirname(path), 0o700);
      else if (errno !== 'EEXIST') throw thrown;
    }
  }
}

function openExisting(path: string): number {
  try {
    return openSync(path, OPEN | constants.O_RDWR);
  } catch (thrown) {
    // flock needs no right to write; some network file systems do.
    if (errnoOf(thrown) !== 'EACCES' && errnoOf(thrown) !== 'EROFS') throw thrown;
    return openSync(path, OPEN | constants.O_RDONLY);
  }
}

function cannotOpen(path: string, thrown: unknown): SlotTake {
  const errno = errnoOf(thrown);
  switch (errno) {
    case 'ENOSPC':
    case 'EDQUOT':
      return unusable('disk_full', errno, `The disk is full, so the lock ${path} can't be made; make room.`);
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return unusable(
        'root_not_writable',
        errno,
        `The lock ${path} may not be opened or made (${errno}); give this user the folder and the file, ` +
          'or run `landlord gate --machine-wide` once as root to share the lanes of several users.',
      );
    case 'ENOTDIR':
    case 'EEXIST':
      return unusable(
        'root_not_a_folder',
        errno,
        `${dirname(path)} is no folder, so no lane can lie in it; move away what is there.`,
      );
    case 'EISDIR':
    case 'ELOOP':
    case 'ENXIO':
      return unusable('lock_not_a_file', errno, `${path} is not a plain file; move away what is there.`);
    default:
      return unusable('lock_failed', errno, `The lock ${path} can't be opened (${errno ?? String(thrown)}).`);
  }
}

function unusable(reason: OpenReason, errno: string | null, message: string): SlotTake {
  return { kind: 'unusable', reason, errno, message: `${message} The turn goes on without its lane.` };
}
