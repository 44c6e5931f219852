import { lstatSync, openSync, read } from 'node:fs';
import { promisify } from 'node:util';
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

const readAt = promisify(read);
const CHUNK_BYTES = 16 * 1024;
/** One for the process, however many runtimes it hosts in its life. */
let locksFd: number | null = null;

/**
 * Reads /proc/locks on one of Node's threads. It stays open, so that a table of one page is one trip there: with
 * `readFile` (open, fstat, read, read, close) that was a fifth of what an idle runtime does.
 */
function tableAside(): ReadTable {
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  /** The same texts say the same. */
  let last: { readonly key: string; readonly table: LockTable } | null = null;
  const readWhole = async (from: number): Promise<string> => {
    let text = '';
    for (;;) {
      const { bytesRead } = await readAt(from, chunk, 0, CHUNK_BYTES, text.length);
      text += chunk.toString('latin1', 0, bytesRead);
      if (bytesRead === 0 || !mayBePaged(text)) return text;
    }
  };
  return async () => {
    try {
      locksFd ??= openSync('/proc/locks', 'r');
      const fd = locksFd;
      const texts = [await readWhole(fd)];
      while (texts.length < PAGED_READINGS && mayBePaged(texts[0] ?? '')) texts.unshift(await readWhole(fd));
      const key = texts.join('\0');
      if (last?.key !== key) last = { key, table: lockTable(texts) };
      return last.table;
    } catch {
      return null;
    }
  };
}

/**
 * A lane watch whose reading of /proc/locks never holds up the control loop: the kernel lets a reader
 * wait until no processor is changing a lock (fs/locks.c takes file_rwsem for writing), measured at up
 * to 20 ms, which would be time lost to an unload. So each look uses the table that the one before it
 * has asked for. Where no lane has a file yet, nobody can hold one, and none is asked for.
 */
export function laneWatchAside(
  readAside: ReadTable = tableAside(),
  readFirst: () => LockTable | null = readLockTable,
  watchOver: (readTable: () => LockTable | null) => LaneWatch = (readTable) =>
    createLaneWatch(undefined, readTable),
  isThere: (path: string) => boolean = mayBeThere,
): LaneWatch {
  let table: LockTable | null = null;
  let isStale = true;
  let reading = false;
  let paths: readonly string[] | null = null;
  const watch = watchOver(() => table);
  return {
    read(backends, nowMs) {
      const isWanted = paths === null || paths.some(isThere);
      // The first table, and the first one after a time without.
      if (isWanted && isStale) table = readFirst();
      isStale = !isWanted;
      if (isWanted && !reading) {
        reading = true;
        void readAside().then((fresh) => {
          table = fresh;
          reading = false;
        });
      }
      const lanes = watch.read(backends, nowMs);
      paths = lanes.map(({ state }) => state.path);
      return lanes;
    },
  };
}

function mayBeThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}
