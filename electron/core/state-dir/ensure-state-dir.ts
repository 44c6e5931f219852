import { chmod, stat } from 'node:fs/promises';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { makeFolders } from '../make-folders.ts';

export interface StateDirReady {
  /** What was put right, in sentences. */
  readonly notes: readonly string[];
}

const GROUP_WRITE = 0o020;
const WORLD_WRITE = 0o002;

/**
 * Makes the state folder (0700) where it is missing, and refuses one that others could have prepared:
 * the token, the lock and the log in it would be theirs to replace.
 *
 * Errors: `not_permitted` (another owner, world-writable), `storage_failed` (can't be made, not a folder).
 */
export async function ensureStateDir(
  stateDir: string,
  effectiveUid: number | null,
): Promise<Result<StateDirReady>> {
  try {
    makeFolders(stateDir, 0o700);
    const found = await stat(stateDir);
    if (!found.isDirectory()) {
      return fail(
        'storage_failed',
        `${stateDir} is not a folder; move it away or choose another --state-dir.`,
      );
    }
    if (effectiveUid !== null && found.uid !== effectiveUid) {
      return fail(
        'not_permitted',
        `${stateDir} belongs to uid ${found.uid} and this runs as uid ${effectiveUid}; ` +
          'choose a --state-dir of your own.',
      );
    }
    if ((found.mode & WORLD_WRITE) !== 0) {
      return fail(
        'not_permitted',
        `${stateDir} can be written by every user, so its token and log can't be trusted; ` +
          `run chmod 700 ${stateDir}, or choose another --state-dir.`,
      );
    }
    const notes: string[] = [];
    if ((found.mode & GROUP_WRITE) !== 0) {
      await chmod(stateDir, found.mode & 0o7777 & ~GROUP_WRITE);
      notes.push(`${stateDir} could be written by its group; that was taken away.`);
    }
    return ok({ notes });
  } catch (error) {
    return fail(
      'storage_failed',
      `The state folder ${stateDir} can't be used (${messageOf(error)}); ` +
        'make it writable or choose another --state-dir.',
    );
  }
}
