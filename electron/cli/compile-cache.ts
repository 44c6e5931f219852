import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

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
