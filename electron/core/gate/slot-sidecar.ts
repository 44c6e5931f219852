import { lstatSync } from 'node:fs';
import { removeSidecar, type Sidecar, writeSidecar } from './sidecar.ts';
import type { TakenSlot } from './take-lanes.ts';
import { isAtPath } from './take-slot.ts';

/**
 * The sidecar of a slot we hold. It goes before the slot is freed: a later turn of this process that
 * writes none (or only later) has the same pid and start time, and the old one would speak for it.
 *
 *   none of ours ──write──► ours ──remove, before the unlock──► none of ours
 */
const cleared = new Set<string>();
const MOST_CLEARED = 1000;

/** Throws what the file system throws. */
export function writeSidecarOf({ files }: TakenSlot, sidecar: Sidecar, mode: number): void {
  cleared.delete(files.sidecar);
  writeSidecar(files.sidecar, sidecar, mode);
}

/** For a turn that writes none yet: an old one, also of a program that this process was before, goes. */
export function clearSidecarOf({ files }: TakenSlot): void {
  const path = files.sidecar;
  // One of another process proves nothing about us, so once is enough.
  if (cleared.has(path)) return;
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined || removeSidecar(path)) remember(path);
  } catch {
    // It can't be looked at: then it can't be read for a proof either.
  }
}

/** Just before the unlock. Where the lock was replaced under us the sidecar there is another turn's. */
export function removeSidecarOf({ files, lock }: TakenSlot): void {
  const path = files.sidecar;
  if (!cleared.has(path) && isAtPath(lock) && removeSidecar(path)) remember(path);
}

function remember(path: string): void {
  if (cleared.size >= MOST_CLEARED) cleared.clear();
  cleared.add(path);
}
