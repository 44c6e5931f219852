import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf } from './errno.ts';

/**
 * Makes a folder and what is missing above it; throws what the file system throws. Not mkdir's own
 * `recursive`: where a folder answers ENOENT though its parent is there, as everything in /proc does,
 * Node goes up and down between the two for ever, and neither a turn (rule 17) nor the runtime's start may hang.
 */
export function makeFolders(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
    return;
  } catch (thrown) {
    if (errnoOf(thrown) === 'EEXIST') return;
    if (errnoOf(thrown) !== 'ENOENT' || dirname(path) === path) throw thrown;
  }
  makeFolders(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (thrown) {
    if (errnoOf(thrown) !== 'EEXIST') throw thrown;
  }
}
