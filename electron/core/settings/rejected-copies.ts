import { readdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { isErrno } from '../state-dir/atomic-file.ts';

/** Copies of configs that were not accepted; the newest of them stay. */
export const KEPT_COPIES = 5;

/**
 * Keeps a copy of a config that was not accepted, as `<config>.rejected-<UTC time>` (0600), so that it
 * is not lost when the person starts over. Their own file stays where it is. A text that is already
 * kept is not kept twice. Returns the copy's path.
 *
 * Errors: `storage_failed`.
 */
export async function keepRejected(
  configFile: string,
  text: string,
  epochMs: number,
): Promise<Result<string>> {
  const dir = dirname(configFile);
  const prefix = `${basename(configFile)}.rejected-`;
  try {
    const names = (await readdir(dir)).filter((name) => name.startsWith(prefix)).sort();
    for (const name of names) {
      const kept = await readFile(join(dir, name), 'utf8').catch(() => null);
      if (kept === text) return ok(join(dir, name));
    }
    const name = await writeCopy(dir, `${prefix}${stamp(epochMs)}`, text);
    for (const old of names.slice(0, Math.max(0, names.length - KEPT_COPIES + 1)))
      await unlink(join(dir, old));
    return ok(join(dir, name));
  } catch (error) {
    return fail('storage_failed', `No copy of it could be kept (${messageOf(error)}).`);
  }
}

async function writeCopy(dir: string, stem: string, text: string): Promise<string> {
  for (let count = 0; ; count += 1) {
    const name = count === 0 ? stem : `${stem}.${count}`;
    try {
      await writeFile(join(dir, name), text, { mode: 0o600, flag: 'wx' });
      return name;
    } catch (error) {
      if (!isErrno(error, 'EEXIST') || count >= 99) throw error;
    }
  }
}

/** `20260102T030405Z`: sorts by time, and holds no character a file system minds. */
function stamp(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/[-:]|\.\d+/g, '');
}
