import { accessSync, constants, lstatSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf } from '../errno.ts';
import { kindOf } from './small-file.ts';

const GO_ON = 'turns go on without this lane';

/**
 * Why a turn would go on without its lane at this lock path, in a sentence, as far as looking can
 * tell; null: nothing is in the way. A link is no lock either: what it points to may be anything.
 */
export function lockTrouble(path: string): string | null {
  try {
    const found = look(lstatSync, path);
    if (found === undefined) return folderTrouble(dirname(path));
    if (!found.isFile()) return `${path} ${kindOf(found)} and no plain file, so ${GO_ON}; move it away.`;
    accessSync(path, constants.R_OK);
    return null;
  } catch (thrown) {
    return `${path} may not be looked at or opened by this user (${errnoOf(thrown) ?? 'no reason told'}), so ${GO_ON}.`;
  }
}

/**
 * undefined: nothing is there, perhaps because something above it is no folder. Asked without an exception
 * for a missing file: a lane that was never used is looked at with every reading.
 */
function look(
  stat: (path: string, options: { readonly throwIfNoEntry: false }) => Stats | undefined,
  path: string,
): Stats | undefined {
  try {
    return stat(path, { throwIfNoEntry: false });
  } catch (thrown) {
    if (errnoOf(thrown) === 'ENOENT' || errnoOf(thrown) === 'ENOTDIR') return undefined;
    throw thrown;
  }
}

/** The lock is not there; a turn makes it, and the folders above it, where it may. */
function folderTrouble(folder: string): string | null {
  const found = look(statSync, folder);
  if (found === undefined) {
    if (look(lstatSync, folder) !== undefined)
      return `${folder} is a link that leads nowhere, so no lane can lie in it and ${GO_ON}; move it away.`;
    return dirname(folder) === folder ? null : folderTrouble(dirname(folder));
  }
  if (!found.isDirectory())
    return `${folder} is no folder, so no lane can lie in it and ${GO_ON}; move it away.`;
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return null;
  } catch {
    return `Nothing can be made in ${folder} by this user, so ${GO_ON}.`;
  }
}
