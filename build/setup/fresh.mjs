import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Whether a program made of sources is there, and each source that went in is as it was: `sources.json` beside
 * it knows them (build/package/bundled-source.ts).
 *
 * @param {string} program
 */
export function isFresh(program) {
  try {
    /** @type {readonly { file: string, sizeBytes: number, mtimeMs: number }[]} */
    const sources = JSON.parse(readFileSync(join(dirname(program), 'sources.json'), 'utf8'));
    return (
      existsSync(program) &&
      sources.every(({ file, sizeBytes, mtimeMs }) => {
        const found = statSync(file, { throwIfNoEntry: false });
        return found?.size === sizeBytes && found.mtimeMs === mtimeMs;
      })
    );
  } catch {
    return false;
  }
}
