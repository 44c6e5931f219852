import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The file's text, or null when it is missing, unreadable or answers an error. */
export type ReadText = (path: string) => string | null;

/** What the device readers need of a file system; tests give a tree of their own. */
export interface SysTree {
  readonly readText: ReadText;
  /** Entry names of a directory; empty when it can't be read. */
  readonly list: (path: string) => readonly string[];
  readonly exists: (path: string) => boolean;
  /** Target of a symbolic link as written; null when there is none. */
  readonly link: (path: string) => string | null;
}

/** The machine's own /sys and /proc. Reads may block in the driver: only the sampler child makes them. */
export const machineTree: SysTree = {
  readText: (path) => {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      return null;
    }
  },
  list: (path) => {
    try {
      return readdirSync(path);
    } catch {
      return [];
    }
  },
  exists: (path) => existsSync(path),
  link: (path) => {
    try {
      return readlinkSync(path);
    } catch {
      return null;
    }
  },
};
