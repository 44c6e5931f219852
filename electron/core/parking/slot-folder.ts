import { chmodSync } from 'node:fs';
import { lstat, readdir, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../shared/errors.ts';
import { weightFiles } from '../ledger/weight-files.ts';
import { makeFolders } from '../make-folders.ts';

/** Ours begin so: nothing else in somebody's folder is ever touched. */
const PREFIX = 'landlord-';

/** A disk is never filled up for the sake of a prompt. */
const LEAVE_FREE_BYTES = 2_000_000_000;

export function fileNameFor(tag: string, slot: number, epochMs: number): string {
  return `${PREFIX}${tag}-${slot}-${epochMs}.slot`;
}

export function isOurName(name: string): boolean {
  return name.startsWith(PREFIX) && name.endsWith('.slot');
}

/** Makes our own folder, for its owner's eyes alone; a sentence where that fails. */
export function makeSlotFolder(folder: string): string | null {
  try {
    makeFolders(folder, 0o700);
    chmodSync(folder, 0o700);
    return null;
  } catch (thrown) {
    return `The folder for parked conversations can't be made (${messageOf(thrown)}): none is parked.`;
  }
}

/** llama-server writes what others may read: only a folder that lets nobody else in keeps it private. null: this one does. */
export async function objectionToFolder(folder: string): Promise<string | null> {
  try {
    const found = await lstat(folder);
    if (!found.isDirectory()) return `${folder} is no folder.`;
    if (found.uid !== process.geteuid?.()) return `${folder} belongs to another user.`;
    const isOpen = (found.mode & 0o077) !== 0;
    return isOpen ? `${folder} can be read by others: \`chmod 700\` it to have conversations parked.` : null;
  } catch (thrown) {
    return `${folder} can't be looked at (${messageOf(thrown)}).`;
  }
}

/** Whether so many bytes more leave the disk enough; where it does not tell, they do. */
export async function hasRoom(folder: string, bytes: number): Promise<boolean> {
  try {
    const disk = await statfs(folder);
    return disk.bavail * disk.bsize - bytes >= LEAVE_FREE_BYTES;
  } catch {
    return true;
  }
}

/** Bytes of a regular file that is really there; null: there is none. */
export async function fileBytes(path: string): Promise<number | null> {
  try {
    const found = await lstat(path);
    return found.isFile() ? found.size : null;
  } catch {
    return null;
  }
}

export async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true }).catch(() => undefined);
}

/** Takes away files of ours that nobody remembers: of a runtime that was killed in the middle. */
export async function removeForgotten(folder: string, known: ReadonlySet<string>): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    if (isOurName(name) && !known.has(path)) await removeFile(path);
  }
}

/** Sizes and times of a model's weight files as one string: others of the same name are others. */
export async function weightsMark(args: readonly string[] | null, modelPath: string | null): Promise<string> {
  const marks = await Promise.all(
    weightFiles(args, modelPath).map(async (path) => {
      try {
        const { size, mtimeMs, ino } = await stat(path);
        return `${size} ${Math.round(mtimeMs)} ${ino}`;
      } catch {
        return 'unread';
      }
    }),
  );
  return marks.join(', ');
}
