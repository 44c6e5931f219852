import { constants } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Not /tmp, which is memory on many systems (systemd file-hierarchy(7): /var/tmp is on a disk). */
const FOLDERS = ['/var/tmp', tmpdir()];
const READ_BYTES = 64 * 1024;

/**
 * The beginning of a body that is too long to be held in memory: a file that has lost its name the
 * moment it was made, so that it is gone with its descriptor, however this process ends.
 */
export class Spool implements AsyncDisposable {
  readonly #file: FileHandle;
  #size = 0;
  #closed: Promise<void> | null = null;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** null: there is no place for one; the body is then held in memory. */
  static async open(folders: readonly string[] = FOLDERS): Promise<Spool | null> {
    for (const folder of folders) {
      const path = join(folder, `vram-landlord-${process.pid}-${Math.random().toString(36).slice(2)}`);
      try {
        const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600);
        await unlink(path);
        return new Spool(file);
      } catch {}
    }
    return null;
  }

  get sizeBytes(): number {
    return this.#size;
  }

  /** Rejects where the disk is full. */
  async append(chunks: readonly Buffer[]): Promise<void> {
    for (const chunk of chunks)
      for (let at = 0; at < chunk.length; ) {
        const { bytesWritten } = await this.#file.write(chunk, at, chunk.length - at, this.#size);
        at += bytesWritten;
        this.#size += bytesWritten;
      }
  }

  /** Bytes `from` to `to`, any number of times. */
  async *read(from: number, to: number): AsyncGenerator<Buffer> {
    for (let at = from; at < to; ) {
      const part = Buffer.allocUnsafe(Math.min(READ_BYTES, to - at));
      const { bytesRead } = await this.#file.read(part, 0, part.length, at);
      if (bytesRead === 0) throw new Error('the kept beginning of the body is shorter than it was');
      at += bytesRead;
      yield part.subarray(0, bytesRead);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#file.close().catch(() => undefined);
    return this.#closed;
  }
}
