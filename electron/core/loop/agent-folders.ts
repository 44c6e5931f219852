import { createHash } from 'node:crypto';

const SHARED_MEMORY = '/dev/shm';

/** The folder in host memory for the states of this runtime's agents; it is made when one is saved. */
export function hostFolder(stateDir: string): string {
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 12);
  return `${SHARED_MEMORY}/vram-landlord-${process.geteuid?.() ?? 0}-${name}`;
}
