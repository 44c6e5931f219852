import { closeSync, constants, fchmodSync, openSync, writeSync } from 'node:fs';

/**
 * A file that was not there, with exactly this mode whatever the umask. The mode is set by descriptor: in a
 * folder of many users a path may come to mean another file. Throws what the file system throws.
 */
export function writeNew(path: string, text: string, mode: number): void {
  const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode);
  try {
    // In part: the disk is full.
    const bytes = Buffer.from(text);
    if (writeSync(fd, bytes) !== bytes.length)
      throw Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' });
    if (mode !== 0o600) fchmodSync(fd, mode);
  } finally {
    closeSync(fd);
  }
}
