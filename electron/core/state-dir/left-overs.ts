import { lstat, readdir, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** A file that is being written now is younger. */
const OLD_MS = 60_000;
/** As atomic-file.ts names what it has not renamed yet. */
const LEFT_OVER = /\.[0-9a-f]{12}\.tmp$/;

/**
 * Takes away what writers that were killed have left beside the files they would have replaced. Resolves
 * to how many that were; what can't be taken away stays.
 */
export async function takeAwayLeftOvers(files: readonly string[], epochMs: number): Promise<number> {
  let count = 0;
  for (const file of files) {
    const folder = dirname(file);
    for (const name of await readdir(folder).catch(() => [])) {
      if (!LEFT_OVER.test(name) || name.replace(LEFT_OVER, '') !== basename(file)) continue;
      if (await takeAway(join(folder, name), epochMs)) count += 1;
    }
  }
  return count;
}

async function takeAway(path: string, epochMs: number): Promise<boolean> {
  try {
    const found = await lstat(path);
    if (!found.isFile() || epochMs - found.mtimeMs < OLD_MS) return false;
    await unlink(path);
    return true;
  } catch {
    // Gone already, or not ours to take away.
    return false;
  }
}
