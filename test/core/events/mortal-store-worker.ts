import { existsSync, writeFileSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { RequestMessage } from '../../../electron/core/events/store-protocol.ts';

/** The store's worker, but it ends when it is first asked to write an event that says so. */
const deathFile = process.env.LANDLORD_TEST_DEATH_FILE ?? '';
parentPort?.on('message', ({ request }: RequestMessage) => {
  if (request.type !== 'append' || !request.events.some((event) => event.reason === 'die now')) return;
  if (existsSync(deathFile)) return;
  writeFileSync(deathFile, '');
  process.exit(3);
});
await import('../../../electron/core/events/store-worker.ts');
