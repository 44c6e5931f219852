import { readFile } from 'node:fs/promises';
import {
  type LockTable,
  lockTable,
  mayBePaged,
  PAGED_READINGS,
  readLockTable,
} from '../gate/kernel-locks.ts';
import { createLaneWatch, type LaneWatch } from '../gate/lane-watch.ts';

/** Reads the kernel's table of locks without holding the caller up; null: this system has none. */
export type ReadTable = () => Promise<LockTable | null>;

async function readTableAside(): Promise<LockTable | null> {
  try {
    const texts = [await readFile('/proc/locks', 'utf8')];
    while (texts.length < PAGED_READINGS && mayBePaged(texts[0] ?? '')) {
      texts.unshift(await readFile('/proc/locks', 'utf8'));
    }
    return lockTable(texts);
  } catch {
    return null;
  }
}

/**
 * A lane watch whose reading of /proc/locks never holds up the control loop: the kernel lets a reader
 * wait until no processor is changing a lock (fs/locks.c takes file_rwsem for writing), measured at up
 * to 20 ms, which would be time lost to an unload. So each look uses the table that the one before it
 * has asked for.
 */
export function laneWatchAside(
  readAside: ReadTable = readTableAside,
  readFirst: () => LockTable | null = readLockTable,
  watchOver: (readTable: () => LockTable | null) => LaneWatch = (readTable) =>
    createLaneWatch(undefined, readTable),
): LaneWatch {
  let table: LockTable | null = null;
  let isFirst = true;
  let reading = false;
  const watch = watchOver(() => table);
  return {
    read(backends, nowMs) {
      if (isFirst) table = readFirst();
      isFirst = false;
      if (!reading) {
        reading = true;
        void readAside().then((fresh) => {
          table = fresh;
          reading = false;
        });
      }
      return watch.read(backends, nowMs);
    },
  };
}
