import {
  appendFileSync,
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** Two files of this size at most: the one being written, and the one before it as `.1`. */
export const LOG_FILE_BYTES = 4 * 1024 * 1024;

/** A log that never grows beyond two files. A disk that is full or gone loses lines, and nothing else. */
export interface BoundedLog {
  write(chunk: Buffer | string): void;
}

export function boundedLog(file: string, fileBytes = LOG_FILE_BYTES): BoundedLog {
  let bytes = sizeOf(file);
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  } catch {
    // Said by the first write that fails, which is all of them.
  }
  return {
    write(chunk) {
      const size = Buffer.byteLength(chunk);
      try {
        if (bytes > 0 && bytes + size > fileBytes) {
          renameSync(file, `${file}.1`);
          bytes = 0;
        }
        appendFileSync(file, chunk, { mode: 0o600 });
        bytes += size;
      } catch {
        // The server goes on without a log.
      }
    },
  };
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}

/** The last lines of both files together, oldest first; empty where there is no log. At most 256 KiB of it is read. */
export function lastLines(file: string, count: number): readonly string[] {
  const now = linesOf(file);
  const before = now.length < count ? linesOf(`${file}.1`) : [];
  return [...before, ...now].slice(-count);
}

const READ_BYTES = 256 * 1024;

function linesOf(file: string): readonly string[] {
  let fd: number | null = null;
  try {
    fd = openSync(file, 'r');
    const { size } = fstatSync(fd);
    const from = Math.max(0, size - READ_BYTES);
    const buffer = Buffer.alloc(size - from);
    const read = readSync(fd, buffer, 0, buffer.length, from);
    const lines = buffer.toString('utf8', 0, read).split('\n');
    if (lines.at(-1) === '') lines.pop();
    // The first may be half a line.
    return from > 0 ? lines.slice(1) : lines;
  } catch {
    return [];
  } finally {
    if (fd !== null) closeSync(fd);
  }
}
