import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { errnoOf } from '../errno.ts';
import { makeFolders } from '../make-folders.ts';

/**
 * Makes the root that all users share, so that agents of several users, sudo and system services are
 * on one lane. Like /tmp: everybody may add a lane, nobody may remove another's.
 *
 * Lanes held in users' own roots are not seen from the new one; those turns are over when they end.
 * Errors: `not_permitted`, `storage_failed`.
 */
export function makeMachineWide(root: string): Result<{ readonly path: string; readonly created: boolean }> {
  try {
    makeFolders(dirname(root), 0o755);
    const created = makeFolder(root);
    const found = lstatSync(root);
    if (!found.isDirectory()) {
      return fail('storage_failed', `${root} is there and is no folder; move it away and try again.`);
    }
    // mkdir's mode passes through the umask, which also knows nothing of the sticky bit.
    chmodSync(root, 0o1777);
    for (const name of readdirSync(root)) shareFile(join(root, name));
    return ok({ path: root, created });
  } catch (thrown) {
    const errno = errnoOf(thrown);
    if (errno === 'EACCES' || errno === 'EPERM') {
      return fail('not_permitted', `${root} may be made by root alone: sudo landlord gate --machine-wide.`);
    }
    return fail('storage_failed', `${root} can't be made (${messageOf(thrown)}).`);
  }
}

function makeFolder(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch (thrown) {
    if (errnoOf(thrown) === 'EEXIST') return false;
    throw thrown;
  }
}

/**
 * A lock made under another rule would shut out the other users. We are root here, and anybody may put
 * what they like there: so never by path, never through a link, and no file that has another name too.
 */
function shareFile(path: string): void {
  if (!/\.(lock|json)$/.test(path)) return;
  const fd = openPlain(path);
  if (fd === null) return;
  try {
    const found = fstatSync(fd);
    if (found.isFile() && found.nlink === 1) fchmodSync(fd, 0o666);
  } finally {
    closeSync(fd);
  }
}

function openPlain(path: string): number | null {
  try {
    if (!lstatSync(path).isFile()) return null;
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    // Gone since, or swapped for a link.
    return null;
  }
}
