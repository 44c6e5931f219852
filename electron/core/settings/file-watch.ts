import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';

/** A new try for the kernel's notices every this many polls, after they failed. */
const REWATCH_POLLS = 15;

/**
 * Calls `onHint` when a file may have changed: at once where the kernel tells, and at every poll
 * anyway, since it does not tell about symbolic links' targets, network mounts, or once its watches
 * have run out. Watches the folder, because editors replace files rather than write into them.
 */
export class FileWatch implements Disposable {
  readonly #path: string;
  readonly #onHint: () => void;
  readonly #timer: NodeJS.Timeout;
  #watcher: FSWatcher | null = null;
  #polls = 0;

  constructor(path: string, pollMs: number, onHint: () => void) {
    this.#path = path;
    this.#onHint = onHint;
    this.#watch();
    this.#timer = setInterval(() => this.#poll(), pollMs);
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#unwatch();
  }

  #poll(): void {
    this.#polls += 1;
    if (this.#watcher === null && this.#polls % REWATCH_POLLS === 0) this.#watch();
    this.#onHint();
  }

  #watch(): void {
    try {
      const name = basename(this.#path);
      const watcher = watch(dirname(this.#path), { persistent: false }, (_event, changed) => {
        if (changed === null || changed === name) this.#onHint();
      });
      watcher.on('error', () => this.#unwatch());
      this.#watcher = watcher;
    } catch {
      this.#watcher = null;
    }
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = null;
  }
}

/** Changes whenever the file's content may have; `missing` when there is none. */
export async function fileSignature(path: string): Promise<string> {
  try {
    const found = await stat(path, { bigint: true });
    return `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}`;
  } catch {
    return MISSING;
  }
}

export const MISSING = 'missing';
