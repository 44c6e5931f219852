import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { link, open, rename, unlink } from 'node:fs/promises';

/** Whether this is a file system error of that code (`ENOENT`, `EEXIST`, …). */
export function isErrno(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code;
}

/**
 * Replaces a file as one step: a reader sees the old text or the new, and so does the next start
 * after a SIGKILL or a power cut. Throws what the file system throws; the old file then stands.
 */
export async function replaceFile(path: string, text: string, mode: number): Promise<void> {
  const temporary = await writeTemporary(path, text, mode);
  try {
    await rename(temporary, path);
  } catch (error) {
    await discard(temporary);
    throw error;
  }
}

/** Creates a file complete with its text, or not at all; false when there is one already. */
export async function createFile(path: string, text: string, mode: number): Promise<boolean> {
  const temporary = await writeTemporary(path, text, mode);
  try {
    // link(2), unlike rename(2), never replaces what is there.
    await link(temporary, path);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await discard(temporary);
  }
}

async function writeTemporary(path: string, text: string, mode: number): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
  const file = await open(temporary, flags, mode);
  try {
    await file.writeFile(text);
    // The mode given to open(2) passes through the umask; this one does not.
    await file.chmod(mode);
    await file.sync();
  } catch (error) {
    await discard(temporary);
    throw error;
  } finally {
    await file.close();
  }
  return temporary;
}

async function discard(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch {
    // Already renamed, or the disk is gone: nothing left to tidy.
  }
}
