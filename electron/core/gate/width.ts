import { statSync } from 'node:fs';
import { type LaneFiles, MAX_WIDTH, parseWidth, type SlotFiles, slotFiles } from './lane-files.ts';
import { readSmallFile } from './small-file.ts';

export interface WidthRead {
  /** 1–256. */
  readonly width: number;
  /** A sentence where the file holds no number and 1 is used; told once. null: nothing is wrong. */
  readonly garbage: string | null;
}

export function readWidth(lane: LaneFiles): WidthRead {
  const read = readSmallFile(lane.width);
  if (read.kind === 'absent') return { width: 1, garbage: null };
  const width = read.kind === 'read' ? parseWidth(read.text) : null;
  if (width !== null) return { width, garbage: null };
  const why = read.kind === 'odd' ? read.why : 'holds no number from 1 to 256';
  return {
    width: 1,
    garbage: `${lane.width} ${why}, so this lane is one turn wide; write such a number or remove it.`,
  };
}

/**
 * The slots of a lane, and those that were slots while it was wider: a holder of one goes on until its
 * turn ends. Slots are made in their order and never deleted.
 */
export function slotsOf(lane: LaneFiles, width: number = readWidth(lane).width): readonly SlotFiles[] {
  const slots = Array.from({ length: width }, (_, index) => slotFiles(lane, index));
  for (let index = width; index < MAX_WIDTH; index += 1) {
    const files = slotFiles(lane, index);
    if (statSync(files.lock, { throwIfNoEntry: false }) === undefined) break;
    slots.push(files);
  }
  return slots;
}
