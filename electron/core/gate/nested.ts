import { inspectSlot } from './inspect.ts';
import { lineage, lockedDescriptors, lockFileId, readLockTable } from './kernel-locks.ts';
import { type LaneFiles, slotFiles } from './lane-files.ts';
import { readSidecar } from './sidecar.ts';
import { readWidth } from './width.ts';

/** Rule 20: who asks for a lane that its own agent already holds must not wait for itself. */

/** The slot of a lane whose sidecar names this turn. Only a claim until its lock proves taken. */
export function slotClaimed(lane: LaneFiles, turn: string): number | null {
  const { width } = readWidth(lane);
  for (let index = 0; index < width; index += 1) {
    const read = readSidecar(slotFiles(lane, index).sidecar);
    if (read.kind === 'read' && read.sidecar.turn === turn) return index;
  }
  return null;
}

/**
 * Whether a turn of that name holds the lane: its sidecar says so and the kernel bears it out. null:
 * it says so, and the kernel does not show here who holds it.
 */
export function turnHolds(lane: LaneFiles, turn: string): boolean | null {
  const index = slotClaimed(lane, turn);
  if (index === null) return false;
  const { held, holder } = inspectSlot(slotFiles(lane, index), readLockTable());
  return held === null ? null : held && holder?.turn === turn;
}

export interface LineHolder {
  readonly pid: number;
  /** What its sidecar says, where that is about this process. */
  readonly session: string | null;
  readonly turn: string | null;
}

/**
 * Which of a process and its ancestors has the lane's lock open and locked, by the kernel's word.
 * `except` are descriptors of `pid` itself that do not count: turns of other sessions in one process.
 * null: none that can be seen.
 */
export function heldInLine(
  lane: LaneFiles,
  pid: number,
  except: ReadonlySet<number> = new Set(),
): LineHolder | null {
  const { width } = readWidth(lane);
  const slots = Array.from({ length: width }, (_, index) => {
    const files = slotFiles(lane, index);
    return { files, file: lockFileId(files.lock)?.file };
  });
  for (const ancestor of lineage(pid)) {
    for (const held of lockedDescriptors(ancestor) ?? []) {
      if (ancestor === pid && except.has(held.fd)) continue;
      const slot = slots.find((entry) => entry.file === held.file);
      if (slot === undefined) continue;
      const read = readSidecar(slot.files.sidecar);
      const about = read.kind === 'read' && read.sidecar.pid === ancestor ? read.sidecar : null;
      return { pid: ancestor, session: about?.session ?? null, turn: about?.turn ?? null };
    }
  }
  return null;
}
