/** The real llama-server that the integration tests drive. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError } from './steps.mjs';

/**
 * @param {string} root
 * @param {import('./steps.mjs').Steps} steps
 */
export async function ensureLlamaServer(root, steps) {
  if (!existsSync(join(root, 'build/fetch-llama-server.mjs'))) return;
  // Loaded only here: `npm start` needs no server, and must not fail for want of one.
  const fetcher = await import('../fetch-llama-server.mjs');
  if (fetcher.findLlamaServer() !== null) return;
  await steps.run('Fetching a llama-server for the integration tests (15 MB)', async () => {
    try {
      // Its own progress would break the step's line; its error says what went wrong.
      await fetcher.ensureLlamaServer({ onProgress: () => {} });
    } catch (error) {
      throw new SetupError(error instanceof Error ? error.message : String(error));
    }
  });
}
