import { createHash } from 'node:crypto';
import { copyFile, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SavedState } from './agent.ts';

export type StatePlace = SavedState['place'];

export interface StateFilesOptions {
  /** In host memory: a folder on a tmpfs. */
  readonly hostDir: string;
  readonly fileDir: string;
  readonly hostBudgetBytes: number;
  readonly fileBudgetBytes: number;
  /** Bytes that may be taken of each now, whatever the budget; null: not known, and the budget alone holds. */
  readonly roomBytes: (place: StatePlace) => Promise<number | null>;
}

interface Kept {
  readonly place: StatePlace;
  readonly bytes: number;
}

/**
 * Where contexts that had to leave the device wait: in host memory as long as its budget lasts, else in
 * files under a budget of their own, else nowhere (the tokens are kept, and read again).
 */
export class StateFiles {
  readonly #options: StateFilesOptions;
  readonly #kept = new Map<string, Kept>();
  #next = 1;

  constructor(options: StateFilesOptions) {
    this.#options = options;
  }

  /** Takes away what no `keep` names: states of a runtime that was killed. Folders are made when they are needed. */
  async open(keep: readonly SavedState[]): Promise<void> {
    const wanted = new Map(keep.map((saved) => [saved.record.path, saved]));
    for (const place of ['host', 'file'] as const) {
      const dir = this.#dir(place);
      if (!(await isOurs(dir))) continue;
      for (const name of await readdir(dir).catch(() => [])) {
        const path = join(dir, name);
        const saved = wanted.get(path);
        if (saved !== undefined) this.#kept.set(path, { place: saved.place, bytes: saved.record.bytes });
        else await rm(path, { force: true, recursive: true }).catch(() => undefined);
      }
    }
  }

  has(saved: SavedState): boolean {
    return this.#kept.has(saved.record.path);
  }

  usedBytes(place: StatePlace): number {
    let bytes = 0;
    for (const one of this.#kept.values()) if (one.place === place) bytes += one.bytes;
    return bytes;
  }

  /** Where so many bytes may go, the best place first. */
  async placesFor(bytes: number): Promise<readonly StatePlace[]> {
    const places: StatePlace[] = [];
    for (const place of ['host', 'file'] as const) {
      const budget = place === 'host' ? this.#options.hostBudgetBytes : this.#options.fileBudgetBytes;
      if (this.usedBytes(place) + bytes > budget) continue;
      const room = await this.#options.roomBytes(place);
      if ((room === null || bytes <= room) && (await makeOurs(this.#dir(place)))) places.push(place);
    }
    return places;
  }

  /** A name that no other state has. */
  pathFor(agent: string, place: StatePlace): string {
    const name = createHash('sha256').update(agent).digest('hex').slice(0, 12);
    const path = join(this.#dir(place), `${name}-${process.pid}-${this.#next}.kv`);
    this.#next += 1;
    return path;
  }

  add(saved: SavedState): void {
    this.#kept.set(saved.record.path, { place: saved.place, bytes: saved.record.bytes });
  }

  async remove(saved: SavedState): Promise<void> {
    this.#kept.delete(saved.record.path);
    await rm(saved.record.path, { force: true }).catch(() => undefined);
  }

  /** From host memory to a file, where its budget has room; null: it stays where it is. */
  async toFile(agent: string, saved: SavedState): Promise<SavedState | null> {
    const { bytes } = saved.record;
    if (saved.place === 'file' || !(await this.placesFor(bytes)).includes('file')) return null;
    const path = this.pathFor(agent, 'file');
    try {
      await copyFile(saved.record.path, `${path}.part`);
      await rename(`${path}.part`, path);
    } catch {
      await rm(`${path}.part`, { force: true }).catch(() => undefined);
      return null;
    }
    await this.remove(saved);
    const moved: SavedState = { place: 'file', record: { ...saved.record, path } };
    this.add(moved);
    return moved;
  }

  /** Takes away all that is in host memory, and its folder. */
  async close(): Promise<void> {
    await rm(this.#options.hostDir, { recursive: true, force: true }).catch(() => undefined);
  }

  #dir(place: StatePlace): string {
    return place === 'host' ? this.#options.hostDir : this.#options.fileDir;
  }
}

async function makeOurs(dir: string): Promise<boolean> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return await isOurs(dir);
  } catch {
    return false;
  }
}

/** Everybody may write to /dev/shm: a folder of that name which another user made is not trusted. */
async function isOurs(dir: string): Promise<boolean> {
  try {
    const found = await lstat(dir);
    return found.isDirectory() && found.uid === process.geteuid?.() && (found.mode & 0o077) === 0;
  } catch {
    return false;
  }
}
