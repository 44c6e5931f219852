import { readFileSync } from 'node:fs';
import { inspectSlot, provenSidecar } from './inspect.ts';
import {
  type DescriptorHolder,
  lineage,
  lockedDescriptors,
  lockFileId,
  readLockTable,
} from './kernel-locks.ts';
import { type LaneFiles, type SlotFiles, slotFiles } from './lane-files.ts';
import { ownPid, seesAllProcesses, startTimeOf } from './process-start.ts';
import { readSidecar } from './sidecar.ts';
import { parseTurns, TURN_VARIABLE } from './turn.ts';
import { slotsOf } from './width.ts';

/**
 * Rule 20: who asks for a lane that its own agent already holds must not wait for itself. A name alone
 * opens nothing, for any process may have copied it: the kernel must show the lock open in the process
 * that asks or in one it descends from.
 */

export interface LineHolder {
  readonly pid: number;
  /** What its sidecar says, where that is proven to be about this process. */
  readonly session: string | null;
  readonly turn: string | null;
}

/** The turn that asks, as it came to be known. */
export interface Asker {
  /** Turns it says to be inside of. */
  readonly turns: readonly string[];
  readonly session: string | null;
}

/**
 * Which of a process and its ancestors has the lane's lock open and locked, by the kernel's word; null:
 * none that can be seen.
 */
export function heldInLine(lane: LaneFiles, pid: number): LineHolder | null {
  for (const { holder } of holdersInLine(lane, pid, new Set())) return holder;
  return null;
}

/**
 * The holder in this process's line that is the asker's own turn; null: none, or only other turns of
 * the programs it descends from. `except` are descriptors of this process that do not count.
 */
export function ownHolder(lane: LaneFiles, asker: Asker, except: ReadonlySet<number>): LineHolder | null {
  for (const { holder, manyTurns, proven } of holdersInLine(lane, ownPid(), except)) {
    if (isOwn(asker, holder, manyTurns, proven)) return holder;
  }
  return null;
}

/**
 * Whoever hands its lock on to a program, or is that program, is one turn as a whole. A program that
 * uses our library may be in many turns at once: then the name of the turn, or of the session, says
 * which; where it wrote no sidecar a child that was given any name is taken at its word.
 */
export function isOwn(asker: Asker, holder: LineHolder, manyTurns: boolean, proven: boolean): boolean {
  if (!manyTurns) return true;
  if (!proven) return asker.turns.length > 0;
  if (holder.turn !== null && asker.turns.includes(holder.turn)) return true;
  return asker.session !== null && holder.session === asker.session;
}

interface Found {
  readonly holder: LineHolder;
  readonly manyTurns: boolean;
  /** Its sidecar is its own, of this very process. */
  readonly proven: boolean;
}

function* holdersInLine(lane: LaneFiles, pid: number, except: ReadonlySet<number>): Generator<Found> {
  const slots = slotsOf(lane).map((files) => ({ files, file: lockFileId(files.lock)?.file }));
  for (const ancestor of lineage(pid)) {
    const held = lockedDescriptors(ancestor);
    if (held === null) {
      // Another user's, as under sudo: whom the kernel names as taker is all there is to see.
      const taken = readLockTable()?.locks.filter((lock) => !lock.waiting && lock.pid === ancestor) ?? [];
      for (const lock of taken) {
        const slot = slots.find((entry) => entry.file === lock.file);
        if (slot !== undefined) yield found(slot.files, ancestor, false);
      }
      continue;
    }
    for (const entry of held) {
      const slot = slots.find((one) => one.file === entry.file);
      if (slot === undefined) continue;
      const inLibrary = isLibrarys(entry);
      // A lock that the library took in this process, in another thread perhaps, was not handed to it.
      if (ancestor === pid && pid === ownPid() && (inLibrary || except.has(entry.fd))) continue;
      yield found(slot.files, ancestor, inLibrary);
    }
  }
}

/** Taken by this very process through our library, and not handed on to a command (`FileLocker.handOn`). */
function isLibrarys({ pid, takerPid, unhanded }: DescriptorHolder): boolean {
  return unhanded && takerPid === pid;
}

function found(files: SlotFiles, pid: number, manyTurns: boolean): Found {
  const sidecar = provenSidecar(files.sidecar, pid);
  const holder = { pid, session: sidecar?.session ?? null, turn: sidecar?.turn ?? null };
  return { holder, manyTurns, proven: sidecar !== null };
}

/** Whether a turn of that name holds the lane: its sidecar says so and the kernel bears it out. null: not to be seen here. */
export function turnHolds(lane: LaneFiles, turn: string): boolean | null {
  for (const slot of slotsOf(lane)) {
    const read = readSidecar(slot.sidecar);
    if (read.kind !== 'read' || read.sidecar.turn !== turn) continue;
    const { held, holder } = inspectSlot(slot, readLockTable());
    return held === null ? null : held && holder?.turn === turn;
  }
  return false;
}

/**
 * The slot whose sidecar names one of these turns, where this is a pid namespace and its writer is not
 * among the processes in it: then only the lock itself can say whether anybody has it. null: none.
 *
 * Anybody may have read the name in the sidecar, so it must have come from outside: the outermost process
 * of this line that can be seen here, which nobody in here has started, was given it in its environment.
 */
export function unseenClaim(lane: LaneFiles, turns: readonly string[]): SlotFiles | null {
  if (turns.length === 0 || seesAllProcesses()) return null;
  for (const slot of slotsOf(lane)) {
    const read = readSidecar(slot.sidecar);
    if (read.kind !== 'read' || read.sidecar.turn === null || !turns.includes(read.sidecar.turn)) continue;
    const { pid, startTime, turn } = read.sidecar;
    if (startTime === null || startTimeOf(pid) === startTime) continue;
    if (turnsFromOutside().includes(turn)) return slotFiles(lane, slot.index);
  }
  return null;
}

/** What LANDLORD_TURN was when the outermost process in sight became what it is (proc_pid_environ(5)). */
function turnsFromOutside(): readonly string[] {
  try {
    const text = readFileSync(`/proc/${lineage(ownPid()).at(-1)}/environ`, 'utf8');
    const given = text.split('\0').find((entry) => entry.startsWith(`${TURN_VARIABLE}=`));
    return parseTurns(given?.slice(TURN_VARIABLE.length + 1));
  } catch {
    return [];
  }
}
