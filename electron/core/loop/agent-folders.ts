import { createHash } from 'node:crypto';
import { lstat, mkdir } from 'node:fs/promises';

const SHARED_MEMORY = '/dev/shm';

/**
 * The folder in host memory for the states of this runtime's agents; null: there is none that is ours
 * alone. Everybody may write to /dev/shm, so one of that name that another user made is not trusted.
 */
export async function hostFolder(stateDir: string): Promise<string | null> {
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 12);
  const dir = `${SHARED_MEMORY}/vram-landlord-${process.geteuid?.() ?? 0}-${name}`;
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const found = await lstat(dir);
    const isOurs = found.isDirectory() && found.uid === process.geteuid?.() && (found.mode & 0o077) === 0;
    return isOurs ? dir : null;
  } catch {
    return null;
  }
}
