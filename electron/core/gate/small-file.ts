import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs';
import { errnoOf } from '../errno.ts';

/**
 * A text file of ours that lies where others may put what they like. Only a plain file is read, never
 * a link, and never more than its first `LONGEST_BYTES`: a pipe, a device or an endless file in its
 * place must not hold up a turn (rule 17).
 */
export type SmallFile =
  | { readonly kind: 'read'; readonly text: string }
  | { readonly kind: 'absent' }
  /** There, and not to be read as what it should be; `why` is a clause such as `is a folder`. */
  | { readonly kind: 'odd'; readonly why: string };

/** Many times what any of them needs. */
export const LONGEST_BYTES = 65_536;

export function readSmallFile(path: string): SmallFile {
  let found: Stats | undefined;
  try {
    // Asked before it is opened: opening a device may already do something. And asked first because a
    // missing file is the usual case, and an exception is dear.
    found = lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // A folder that can't be looked into is found out, and told, when the lock is opened.
  }
  if (found === undefined) return { kind: 'absent' };
  if (!found.isFile()) return { kind: 'odd', why: kindOf(found) };
  try {
    return readPlain(path);
  } catch (thrown) {
    const errno = errnoOf(thrown);
    return errno === 'ENOENT' ? { kind: 'absent' } : { kind: 'odd', why: `can't be read (${errno})` };
  }
}

function readPlain(path: string): SmallFile {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0));
  try {
    const found = fstatSync(fd);
    if (!found.isFile()) return { kind: 'odd', why: kindOf(found) };
    if (found.size > LONGEST_BYTES) return { kind: 'odd', why: `is longer than ${LONGEST_BYTES} bytes` };
    const buffer = Buffer.allocUnsafe(found.size);
    return { kind: 'read', text: buffer.toString('utf8', 0, readSync(fd, buffer, 0, found.size, 0)) };
  } finally {
    closeSync(fd);
  }
}

/** What there is in a plain file's place: `is a folder`, `is a link`, `is a pipe`, … */
export function kindOf(found: {
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
  isFIFO(): boolean;
  isSocket(): boolean;
}): string {
  if (found.isDirectory()) return 'is a folder';
  if (found.isSymbolicLink()) return 'is a link';
  if (found.isFIFO()) return 'is a pipe';
  return found.isSocket() ? 'is a socket' : 'is a device';
}
