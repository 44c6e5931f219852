import { type Stats, statSync } from 'node:fs';

/**
 * A folder as it was at some time. While it looks like that, no file in it was made, renamed or removed since.
 * Its ctime says so where its mtime does not: whoever restores a backup, or runs touch(1), sets the latter as he likes.
 */
export interface FolderMark {
  readonly dev: number;
  readonly ino: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

/**
 * A change that follows must leave another time than the one before: the coarsest clock of a file system
 * ticks every 2 s (FAT), so what has changed a moment ago is no mark yet.
 */
const CALM_MS = 5_000;

/** null: it has changed a moment ago, or can't be looked at. */
export function markOf(path: string): FolderMark | null {
  const found = look(path);
  if (found === null || Date.now() - Math.max(found.mtimeMs, found.ctimeMs) < CALM_MS) return null;
  const { dev, ino, mtimeMs, ctimeMs } = found;
  return { dev, ino, mtimeMs, ctimeMs };
}

export function isUnchanged(path: string, mark: FolderMark): boolean {
  const found = look(path);
  return (
    found !== null &&
    found.ctimeMs === mark.ctimeMs &&
    found.mtimeMs === mark.mtimeMs &&
    found.ino === mark.ino &&
    found.dev === mark.dev
  );
}

/** Where the path is a link, of the folder it leads to: a link stays as it is, whatever happens there. */
function look(path: string): Stats | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}
