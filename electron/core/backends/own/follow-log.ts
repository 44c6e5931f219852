import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** A server that draws its progress in one endless line is not waited for. */
const LONGEST_LINE = 64 * 1024;

/** Each call gives the whole lines that were written since the last, also where the file was begun anew meanwhile. */
export function followLog(file: string): () => readonly string[] {
  let at = look(file)?.size ?? 0;
  let inode = look(file)?.inode ?? null;
  let rest = '';
  return () => {
    const now = look(file);
    if (now === null) return [];
    const isNew = now.inode !== inode || now.size < at;
    // What was written before the change lies in the old file's end.
    const old = isNew && inode !== null ? read(`${file}.1`, at) : '';
    if (isNew) at = 0;
    inode = now.inode;
    const text = rest + old + read(file, at);
    at = now.size;
    const lines = text.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LONGEST_LINE) {
      lines.push(rest);
      rest = '';
    }
    return lines;
  };

  function read(path: string, from: number): string {
    let fd: number | null = null;
    try {
      fd = openSync(path, 'r');
      const buffer = Buffer.alloc(Math.max(0, fstatSync(fd).size - from));
      const count = readSync(fd, buffer, 0, buffer.length, from);
      return buffer.toString('utf8', 0, count);
    } catch {
      return '';
    } finally {
      if (fd !== null) closeSync(fd);
    }
  }
}

function look(file: string): { readonly size: number; readonly inode: number } | null {
  let fd: number | null = null;
  try {
    fd = openSync(file, 'r');
    const { size, ino } = fstatSync(fd);
    return { size, inode: ino };
  } catch {
    return null;
  } finally {
    if (fd !== null) closeSync(fd);
  }
}
