import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { createFile, isErrno, replaceFile } from './atomic-file.ts';

export interface LoadedToken {
  readonly token: string;
  /** What was put right, in sentences; never the token itself. */
  readonly notes: readonly string[];
}

const TOKEN_SHAPE = /^[A-Za-z0-9_-]{43}$/;

/** 32 random bytes as base64url: 43 characters. */
function freshToken(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * The token of `<state-dir>/token`, made when there is none. Two processes that start at once end with
 * the same one. Loose permissions are put right and said; a file without a proper token is replaced.
 *
 * Errors: `storage_failed`, `not_permitted` (the file belongs to somebody else).
 */
export async function loadOrCreateToken(
  tokenFile: string,
  effectiveUid: number | null,
): Promise<Result<LoadedToken>> {
  try {
    const found = await inspect(tokenFile, effectiveUid);
    if (found !== null && !found.ok) return found;
    if (found === null) {
      await createFile(tokenFile, `${freshToken()}\n`, 0o600);
      return readToken(tokenFile);
    }
    if (found.value.token !== null) return ok({ token: found.value.token, notes: found.value.notes });
    const token = freshToken();
    await replaceFile(tokenFile, `${token}\n`, 0o600);
    return ok({
      token,
      notes: [...found.value.notes, `${tokenFile} did not hold a proper token; a new one was made.`],
    });
  } catch (error) {
    return fail(
      'storage_failed',
      `The token ${tokenFile} can't be read or made (${messageOf(error)}); ` +
        'make its folder writable, or delete the file so that a new one is made.',
    );
  }
}

/** The token as it stands, for a client; changes nothing. Errors: `storage_failed`. */
export async function readToken(tokenFile: string): Promise<Result<LoadedToken>> {
  try {
    const file = await open(tokenFile, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const token = (await file.readFile('utf8')).trim();
      if (!TOKEN_SHAPE.test(token)) {
        return fail(
          'storage_failed',
          `${tokenFile} does not hold a proper token; delete it and start the runtime again.`,
        );
      }
      return ok({ token, notes: [] });
    } finally {
      await file.close();
    }
  } catch (error) {
    return fail(
      'storage_failed',
      `The token ${tokenFile} can't be read (${messageOf(error)}); run this as the user who runs the runtime.`,
    );
  }
}

/** Takes as long for a near miss as for a wide one: compares digests of equal length. */
export function tokenMatches(expected: string, given: string): boolean {
  return timingSafeEqual(digest(expected), digest(given));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** null: there is no file. A null token: there is one, and it holds something else. */
async function inspect(
  tokenFile: string,
  effectiveUid: number | null,
): Promise<Result<{ readonly token: string | null; readonly notes: readonly string[] }> | null> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(tokenFile, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  }
  try {
    const found = await file.stat();
    if (effectiveUid !== null && found.uid !== effectiveUid) {
      return fail(
        'not_permitted',
        `${tokenFile} belongs to uid ${found.uid} and this runs as uid ${effectiveUid}; delete it.`,
      );
    }
    const notes: string[] = [];
    if ((found.mode & 0o077) !== 0) {
      await file.chmod(0o600);
      notes.push(
        `${tokenFile} could be read by other users (mode ${(found.mode & 0o777).toString(8)}); ` +
          'it is 600 now. Delete it and start again if somebody else may have read it.',
      );
    }
    const token = (await file.readFile('utf8')).trim();
    return ok({ token: TOKEN_SHAPE.test(token) ? token : null, notes });
  } finally {
    await file.close();
  }
}
