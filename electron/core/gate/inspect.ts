import { readFileSync, realpathSync } from 'node:fs';
import type { LaneHolderState } from '../../../shared/state.ts';
import { parseCmdline } from '../process/procfs-text.ts';
import { secrets } from '../security/secrets.ts';
import {
  allLockedDescriptors,
  type DescriptorHolder,
  type LockTable,
  lockedDescriptors,
  lockFileId,
  readLockTable,
} from './kernel-locks.ts';
import { type LaneFiles, type SlotFiles, slotFiles } from './lane-files.ts';
import { lockTrouble } from './lock-trouble.ts';
import { ownPid, startTimeOf } from './process-start.ts';
import { liveTickets } from './queue.ts';
import { readSidecar, type Sidecar } from './sidecar.ts';
import { readWidth, slotsOf } from './width.ts';

/** `null` for `held`: the kernel does not show it here. */
export interface SlotInspection {
  readonly index: number;
  readonly path: string;
  /** null: the file is not there yet, and nobody can hold it. */
  readonly inode: number | null;
  readonly held: boolean | null;
  readonly holder: LaneHolderState | null;
  /** What is odd, in a sentence: held by a fork or another user, no plain file, a sidecar of garbage. */
  readonly note: string | null;
}

export interface LaneInspection {
  readonly name: string;
  readonly path: string;
  readonly width: number;
  /** Whether every slot is taken, so that a turn now would be deflected; null: unknown. */
  readonly held: boolean | null;
  readonly slots: readonly SlotInspection[];
  readonly holders: readonly LaneHolderState[];
  /** Turns in the queue, and other programs blocked in flock(2). */
  readonly waiting: number;
  /** What is wrong with the lane's own files, in a sentence. */
  readonly note: string | null;
}

/**
 * How a lane stands, without taking it: /proc/locks says whether, fdinfo says by whom, the sidecar
 * says what for as far as those two bear it out. `table` null: the system shows no locks.
 */
export function inspectLane(lane: LaneFiles, table: LockTable | null = readLockTable()): LaneInspection {
  const { width, garbage } = readWidth(lane);
  // A slot of a lane that was wider counts while it is held, and is free for nobody.
  const slots = slotsOf(lane, width)
    .map((files) => inspectSlot(files, table))
    .filter((slot) => slot.index < width || slot.held === true);
  const blocked = slots.reduce((sum, slot) => sum + blockedOn(slot.path, table), 0);
  return {
    name: lane.name,
    path: slotFiles(lane, 0).lock,
    width,
    held: allHeld(slots.filter(({ index }) => index < width).map((slot) => slot.held)),
    slots,
    holders: slots.flatMap((slot) => slot.holder ?? []),
    waiting: blocked + liveTickets(lane, table),
    note: garbage,
  };
}

/** Held when all are; free when one is; else unknown. */
export function allHeld(slots: readonly (boolean | null)[]): boolean | null {
  if (slots.includes(false)) return false;
  return slots.includes(null) ? null : true;
}

function blockedOn(path: string, table: LockTable | null): number {
  const id = table === null ? null : lockFileId(path);
  return table?.locks.filter((lock) => lock.waiting && lock.file === id?.file).length ?? 0;
}

export function inspectSlot(slot: SlotFiles, table: LockTable | null): SlotInspection {
  const base = { index: slot.index, path: slot.lock };
  const id = lockFileId(slot.lock);
  const trouble = lockTrouble(slot.lock);
  if (id === null) {
    const held = trouble === null ? false : null;
    return { ...base, inode: null, held, holder: null, note: trouble };
  }
  const known = { ...base, inode: id.inode };
  if (table === null) {
    return { ...known, held: null, holder: null, note: 'This system does not show who holds a file lock.' };
  }
  const listed = table.locks.find((entry) => entry.file === id.file && !entry.waiting);
  const lock = listed !== undefined && hasEnded(id.file, listed.pid) ? undefined : listed;
  if (lock === undefined && table.complete) {
    return { ...known, held: trouble === null ? false : null, holder: null, note: trouble };
  }
  const holding = whoHolds(id.file, lock?.pid ?? 0);
  if (lock === undefined && holding === null) {
    const note = 'Inside a pid namespace the locks of processes outside are not shown.';
    return { ...known, held: null, holder: null, note };
  }
  return { ...known, held: true, ...describe(slot, lock?.pid ?? 0, holding) };
}

/**
 * A turn of this very process that has ended since the table was read. Ours are closed on exec, so nobody
 * else has them open, and a walk over /proc, which takes this process tens of milliseconds, finds nobody.
 */
function hasEnded(file: string, takerPid: number): boolean {
  if (takerPid !== ownPid()) return false;
  return lockedDescriptors(takerPid)?.some((entry) => entry.file === file) === false;
}

interface Holding {
  readonly pid: number;
  /** The descriptor was seen, not only the taker's pid. */
  readonly proven: boolean;
}

function whoHolds(file: string, takerPid: number): Holding | null {
  const taker = takerPid > 0 ? lockedDescriptors(takerPid) : null;
  if (taker?.some((entry) => entry.file === file)) return { pid: takerPid, proven: true };
  // The taker has gone or let go, and a child or a parent still has the same opening.
  const other = allLockedDescriptors().find((entry) => entry.file === file);
  if (other !== undefined) return { pid: other.pid, proven: true };
  const alive = takerPid > 0 && startTimeOf(takerPid) !== null;
  return alive ? { pid: takerPid, proven: false } : null;
}

function describe(
  slot: SlotFiles,
  takerPid: number,
  holding: Holding | null,
): Pick<SlotInspection, 'holder' | 'note'> {
  const sidecar = bornOut(slot.sidecar, takerPid, holding);
  const note =
    holding === null
      ? 'It is held, but not by a process that can be seen from here.'
      : !holding.proven
        ? `Process ${holding.pid} took it; its descriptors may not be read, so another may hold it now.`
        : holding.pid !== takerPid && takerPid > 0
          ? `Process ${takerPid} took it; ${holding.pid} has it open still, and the lane ends with that one.`
          : readSidecar(slot.sidecar).kind === 'garbage'
            ? `${slot.sidecar} is not a sidecar, so it can't be told for whom it is held.`
            : null;
  return {
    holder: {
      pid: holding?.pid ?? null,
      command: holding === null ? null : commandOf(holding.pid),
      session: sidecar?.session ?? null,
      model: sidecar?.model ?? null,
      class: sidecar?.class ?? null,
      turn: sidecar?.turn ?? null,
      acquiredAt: sidecar?.acquiredAt ?? null,
    },
    note,
  };
}

/** A sidecar counts when the kernel names its writer: as the one who took the lock, or who has it open. */
function bornOut(path: string, takerPid: number, holding: Holding | null): Sidecar | null {
  return provenSidecar(path, takerPid) ?? (holding === null ? null : provenSidecar(path, holding.pid));
}

/** The sidecar that a process wrote, where its start time bears out that it is this very process. */
export function provenSidecar(path: string, pid: number): Sidecar | null {
  const read = readSidecar(path);
  if (read.kind !== 'read' || read.sidecar.pid !== pid || read.sidecar.startTime === null) return null;
  return startTimeOf(pid) === read.sidecar.startTime ? read.sidecar : null;
}

/** As a person knows it: the program's name and what it runs, at most 120 characters, without keys that were given to it. */
export function commandOf(pid: number): string | null {
  const line = argvOf(pid).join(' ').trim();
  return line === '' ? null : secrets.hide(line).slice(0, 120);
}

/** Empty where it can't be read: it has gone, or is another user's where those are hidden. */
export function argvOf(pid: number): readonly string[] {
  try {
    return parseCmdline(readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
  } catch {
    return [];
  }
}

/** Locks that are held on files no longer at their path: their holders and newcomers do not see each other. */
export function ghostsIn(root: string): readonly DescriptorHolder[] {
  const real = realPath(root);
  return allLockedDescriptors().filter((entry) => {
    if (!entry.path.startsWith(`${real}/`)) return false;
    const path = entry.path.replace(/\.lock[^/]*$/, '.lock');
    return lockFileId(path)?.file !== entry.file;
  });
}

/**
 * Locks that have a lane's name and are held in another folder: of a root that was moved away under its
 * holder, or of a program that has VRAM_LANDLORD_GATE_DIR set otherwise. They exclude nobody here.
 */
export function heldElsewhere(root: string): readonly DescriptorHolder[] {
  const real = realPath(root);
  return allLockedDescriptors().filter(({ path }) => {
    const found = /^(.*)\/127\.0\.0\.1_\d{1,5}(\.\d{1,3})?\.lock( \(deleted\))?$/.exec(path);
    return found?.[1] !== undefined && found[1] !== real;
  });
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
