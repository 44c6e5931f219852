import { readFileSync, statSync } from 'node:fs';
import { type LaneFiles, parseWidth } from './lane-files.ts';

/** `garbage`: a width file that holds no number; 1 is used, and it is told once. */
export function readWidth(lane: LaneFiles): { readonly width: number; readonly garbage: boolean } {
  try {
    // Asked first because a missing file is the usual case, and an exception is dear.
    if (statSync(lane.width, { throwIfNoEntry: false }) === undefined) return { width: 1, garbage: false };
    const width = parseWidth(readFileSync(lane.width, 'utf8'));
    return { width: width ?? 1, garbage: width === null };
  } catch {
    // A folder that can't be read is found out, and told, when the lock is opened.
    return { width: 1, garbage: false };
  }
}
