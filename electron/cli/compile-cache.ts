import { lstatSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { makeFolders } from '../core/make-folders.ts';

/**
 * Where the compiled forms of our own code are kept between starts. Not in /tmp, where somebody else
 * could have put it. A package is not writable by its user: it has them among the user's caches.
 */
export function compileCacheDir(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const isPacked = !import.meta.filename.endsWith('.ts');
  if (!isPacked) return join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'compile');
  const { XDG_CACHE_HOME: cacheHome } = env;
  const base = cacheHome !== undefined && isAbsolute(cacheHome) ? cacheHome : join(homedir(), '.cache');
  return join(base, 'vram-landlord', 'compile');
}

/**
 * That folder, made for its user alone whatever the umask; null where everybody may write to it, or it is
 * another's: what lies there is run.
 */
export function ownCompileCache(folder: string = compileCacheDir()): string | null {
  try {
    makeFolders(folder, 0o700);
    const found = lstatSync(folder);
    const isOurs = found.isDirectory() && found.uid === (process.geteuid?.() ?? found.uid);
    return isOurs && (found.mode & 0o002) === 0 ? folder : null;
  } catch {
    return null;
  }
}
