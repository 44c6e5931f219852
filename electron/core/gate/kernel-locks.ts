import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
} from 'node:fs';
import { parseStat } from '../process/procfs-text.ts';
import {
  deviceParts,
  type KernelLock,
  kernelFileId,
  mergeKernelLocks,
  mountDevice,
  parseFdInfo,
  parseKernelLocks,
} from './proc-locks.ts';
import { seesAllProcesses } from './process-start.ts';

/**
 * What the kernel shows of locks without one being taken. `complete` is false inside a pid namespace:
 * there it leaves out the locks of processes outside, so that what it does not list may yet be held.
 */
export interface LockTable {
  readonly locks: readonly KernelLock[];
  readonly complete: boolean;
}

/**
 * One read(2) of a file in /proc gives at most a page, under one taking of the kernel's lock; what is
 * shorter is whole. A longer table was seen to lack a held lock once in 1,592 readings while 600 others
 * came and went; it is read this often, and what any reading has counts.
 */
const PAGE_BYTES = 4096;
const LONGEST_LINE_BYTES = 128;
export const PAGED_READINGS = 3;

/** null: this system has no /proc/locks. About 12 µs (measured, Linux 6.18, few locks). */
export function readLockTable(
  read: () => string = () => readFileSync('/proc/locks', 'utf8'),
): LockTable | null {
  try {
    const texts = [read()];
    // A record that does not fit goes to the next page whole, so a first page is seldom quite full.
    while (texts.length < PAGED_READINGS && mayBePaged(texts[0] ?? '')) texts.unshift(read());
    return lockTable(texts);
  } catch {
    return null;
  }
}

/** Whether a reading may be of several pages, and lack what it should have. */
export function mayBePaged(text: string): boolean {
  return text.length > PAGE_BYTES - LONGEST_LINE_BYTES;
}

/** Of readings of /proc/locks, newest first. */
export function lockTable(texts: readonly string[]): LockTable {
  return { locks: mergeKernelLocks(texts.map(parseKernelLocks)), complete: seesAllProcesses() };
}

export interface LockFileId {
  /** As /proc/locks names it. */
  readonly file: string;
  readonly inode: number;
}

const ids = new Map<string, LockFileId & { readonly dev: number }>();

/**
 * What /proc/locks calls the plain file at a path; null when there is none. On btrfs and overlayfs stat(2)
 * tells another device (and perhaps inode) than the kernel locks by, so the kernel is asked through
 * an opening of our own, which takes no lock.
 */
export function lockFileId(path: string): LockFileId | null {
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isFile() !== true) return null;
    const known = ids.get(path);
    if (known !== undefined && known.inode === stat.ino && known.dev === stat.dev) return known;
    const id = { file: askKernel(path) ?? idOfStat(stat.dev, stat.ino), inode: stat.ino, dev: stat.dev };
    if (ids.size > 1000) ids.clear();
    ids.set(path, id);
    return id;
  } catch {
    return null;
  }
}

function idOfStat(dev: number, inode: number): string {
  const { major, minor } = deviceParts(dev);
  return kernelFileId(major, minor, inode);
}

function askKernel(path: string): string | null {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    return null;
  }
  try {
    const info = parseFdInfo(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'));
    if (info.mountId === null) return null;
    const device = mountDevice(readFileSync('/proc/self/mountinfo', 'utf8'), info.mountId);
    if (device === null) return null;
    return kernelFileId(device.major, device.minor, info.inode ?? fstatSync(fd).ino);
  } catch {
    return null;
  } finally {
    closeSync(fd);
  }
}

/** A process that has a lock file open whose opening carries a lock. */
export interface DescriptorHolder {
  readonly pid: number;
  readonly fd: number;
  /** The path as that process sees it: ends in ` (deleted)` when the file is gone, or is where it was moved to. */
  readonly path: string;
  readonly file: string;
  /** Who took it; 0: outside our pid namespace, or gone. */
  readonly takerPid: number;
  /** Opened as our library opens a lock, and not handed on since (`FileLocker.handOn`). */
  readonly unhanded: boolean;
}

/** No other program has a reason to open a plain file with both. */
const LIBRARY_FLAGS = constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** null: its descriptors can't be read (another user's, or it is gone). */
export function lockedDescriptors(pid: number): readonly DescriptorHolder[] | null {
  let fds: readonly string[];
  try {
    fds = readdirSync(`/proc/${pid}/fd`);
  } catch {
    return null;
  }
  const found: DescriptorHolder[] = [];
  for (const fd of fds) {
    try {
      const path = readlinkSync(`/proc/${pid}/fd/${fd}`);
      if (!/\.lock[^/]*$/.test(path)) continue;
      const { locks, flags } = parseFdInfo(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'));
      const unhanded = flags !== null && (flags & LIBRARY_FLAGS) === LIBRARY_FLAGS;
      for (const lock of locks) {
        found.push({ pid, fd: Number(fd), path, file: lock.file, takerPid: lock.pid, unhanded });
      }
    } catch {
      // Closed since the folder was read.
    }
  }
  return found;
}

export function processIds(): readonly number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/** Of every process whose descriptors may be read: some milliseconds on a desktop. */
export function allLockedDescriptors(): readonly DescriptorHolder[] {
  return processIds().flatMap((pid) => lockedDescriptors(pid) ?? []);
}

/** The process and its ancestors, nearest first; it ends at the first that can't be read. */
export function lineage(pid: number): readonly number[] {
  const line: number[] = [];
  for (let next = pid; next > 0 && line.length < 64; ) {
    line.push(next);
    try {
      next = parseStat(readFileSync(`/proc/${next}/stat`, 'utf8'))?.parentPid ?? 0;
    } catch {
      break;
    }
  }
  return line;
}
