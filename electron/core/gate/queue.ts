import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../errno.ts';
import { type LockTable, lockFileId } from './kernel-locks.ts';
import type { LaneFiles } from './lane-files.ts';
import type { FileLocker } from './locker.ts';
import type { TurnClass } from './sidecar.ts';
import type { LockModes } from './take-slot.ts';

/**
 * Who is next, among VRAM Landlord's own users, across processes and with nobody in charge. A waiter
 * puts a ticket in `<lane>.queue/` and holds a flock on it; names sort in the order of turn:
 *
 *   0-00000012345678901-4242-k3x9   class (interactive 0, batch 1), CLOCK_MONOTONIC in µs, pid, chance
 *
 * A ticket counts while it is locked, so the kernel ends it with its process, and whoever meets a dead
 * one removes it. The folder is there only while somebody waits: a newcomer with nobody before it
 * asks one stat(2).
 */
export interface Ticket {
  readonly name: string;
  readonly path: string;
  readonly fd: number;
}

const RANKS: Readonly<Record<TurnClass, number>> = { interactive: 0, batch: 1 };
const NEWCOMERS: Readonly<Record<TurnClass, string>> = {
  interactive: `${RANKS.interactive}-~`,
  batch: `${RANKS.batch}-~`,
};
const ATTEMPTS = 8;

export function ticketName(turnClass: TurnClass, monotonicMs: number, pid: number, chance: string): string {
  const micros = String(Math.floor(monotonicMs * 1000)).padStart(17, '0');
  return `${RANKS[turnClass]}-${micros}-${pid}-${chance}`;
}

/** Names that come before, in order; what is no ticket's name is not in the queue. */
export function namesAhead(names: readonly string[], own: string): readonly string[] {
  return names.filter((name) => /^[01]-\d{17}-\d+-\w+$/.test(name) && name < own).sort();
}

/** A name that sorts after every ticket a newcomer of that class gives way to. */
export function newcomerName(turnClass: TurnClass): string {
  return NEWCOMERS[turnClass];
}

/** Whether there is a line at all, of living or dead tickets, or something else in its place. */
export function isQueued(lane: LaneFiles): boolean {
  try {
    return lstatSync(lane.queue, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** Whether a ticket that comes before is alive. Removes the dead ones it meets. */
export function isBehind(lane: LaneFiles, own: string, locker: FileLocker): boolean {
  let names: readonly string[];
  try {
    // Asked first because a missing folder is the usual case, and an exception is dear.
    if (!isPlainFolder(lane.queue)) return false;
    names = readdirSync(lane.queue);
  } catch {
    return false;
  }
  const alive = namesAhead(names, own).some((name) => !removeIfDead(join(lane.queue, name), locker));
  if (!alive && names.length === 0) removeFolder(lane.queue);
  return alive;
}

/** The tickets that come before, in order, the dead ones too: opens none. */
export function namesBefore(lane: LaneFiles, own: string): readonly string[] {
  try {
    return isPlainFolder(lane.queue) ? namesAhead(readdirSync(lane.queue), own) : [];
  } catch {
    return [];
  }
}

/** How many tickets that come before are alive. Removes the dead ones. */
export function countAhead(lane: LaneFiles, own: string, locker: FileLocker): number {
  try {
    if (!isPlainFolder(lane.queue)) return 0;
    const ahead = namesAhead(readdirSync(lane.queue), own);
    return ahead.filter((name) => !removeIfDead(join(lane.queue, name), locker)).length;
  } catch {
    return 0;
  }
}

/** True when it was dead, and is gone. */
function removeIfDead(path: string, locker: FileLocker): boolean {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    // Gone since, or another user's and not to be read: it must not hold up the queue.
    return true;
  }
  try {
    if (locker.tryLock(fd).kind !== 'taken') return false;
    unlinkSync(path);
    return true;
  } catch {
    return true;
  } finally {
    closeSync(fd);
  }
}

/** Throws what the file system throws; the caller then waits without an order. */
export function enqueue(lane: LaneFiles, name: string, modes: LockModes, locker: FileLocker): Ticket {
  const path = join(lane.queue, name);
  for (let attempt = 0; ; attempt += 1) {
    try {
      makeFolder(lane.queue, modes);
      const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
      const fd = openSync(path, flags, modes.lock);
      if (modes.lock !== 0o600) fchmodSync(fd, modes.lock);
      // Between the two calls another may have taken it for a dead one and removed it.
      if (locker.tryLock(fd).kind === 'taken' && fstatSync(fd).nlink > 0) return { name, path, fd };
      closeSync(fd);
      removeQuietly(path);
    } catch (thrown) {
      // The last one to leave has just removed the folder.
      if (errnoOf(thrown) !== 'ENOENT' || attempt >= ATTEMPTS) throw thrown;
    }
    if (attempt >= ATTEMPTS) throw new Error(`${path} is removed again and again`);
  }
}

export function leave(lane: LaneFiles, ticket: Ticket): void {
  removeQuietly(ticket.path);
  closeSync(ticket.fd);
  removeFolder(lane.queue);
}

/** How many wait, from the kernel's table alone: looking must not take even a ticket. */
export function liveTickets(lane: LaneFiles, table: LockTable | null): number {
  if (table === null) return 0;
  let names: readonly string[];
  try {
    if (!isPlainFolder(lane.queue)) return 0;
    names = readdirSync(lane.queue);
  } catch {
    return 0;
  }
  const locked = new Set(table.locks.map((lock) => lock.file));
  return names.filter((name) => locked.has(lockFileId(join(lane.queue, name))?.file ?? '')).length;
}

function makeFolder(path: string, modes: LockModes): void {
  try {
    mkdirSync(path, { mode: modes.folder });
    if (modes.folder !== 0o700) makeMode(path, modes.folder);
  } catch (thrown) {
    if (errnoOf(thrown) !== 'EEXIST') throw thrown;
    if (!isPlainFolder(path)) throw Object.assign(new Error(`${path} is no folder`), { code: 'ENOTDIR' });
  }
}

/** By descriptor: another user may have put a link there as soon as the last of ours removed the folder. */
function makeMode(path: string, mode: number): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    fchmodSync(fd, mode);
  } finally {
    closeSync(fd);
  }
}

/** A link to a folder is none: tickets would be made and removed wherever it leads. */
function isPlainFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Removed by another, or not ours to remove.
  }
}

function removeFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Somebody else waits in it, or it is another user's.
  }
}
