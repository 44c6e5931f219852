import { lockFileId, readLockTable } from './kernel-locks.ts';
import { type LaneFiles, slotFiles } from './lane-files.ts';
import { readWidth } from './width.ts';

/**
 * Whether the kernel lists no lock on one of a lane's slots; null where it lists none at all. Cheap,
 * and only a hint: the lock itself decides.
 */
export function looksFree(lane: LaneFiles): boolean | null {
  const table = readLockTable();
  if (table === null) return null;
  const locked = new Set(table.locks.filter((lock) => !lock.waiting).map((lock) => lock.file));
  const { width } = readWidth(lane);
  return Array.from({ length: width }, (_, index) => lockFileId(slotFiles(lane, index).lock)).some(
    (id) => id === null || !locked.has(id.file),
  );
}
