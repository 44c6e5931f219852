/** Loads everything that `landlord serve` loads, and nothing more happens: what was loaded stays compiled. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { CHILD_FLAGS } from '../../electron/core/devices/sampler.ts';

const electron = join(import.meta.dirname, '../../electron');
const core = join(electron, 'core');

// The entry itself first; of all commands this one does the least. By path: nothing of them is used here.
process.argv.splice(2, Number.POSITIVE_INFINITY, '--version');
for (const entry of ['cli.ts', 'cli/run-serve.ts', 'core/runtime.ts']) await import(join(electron, entry));

const store = new Worker(join(core, 'events/store-worker.ts'));
await new Promise((resolve) => store.once('online', resolve));
// It is online before its modules are in; an answer, whatever it is, comes after.
const answered = new Promise((resolve) => {
  store.once('message', resolve);
  store.once('error', resolve);
});
store.postMessage({ sequence: 0, request: { type: 'close' } });
await answered;
await store.terminate();

// Without a channel to a runtime these two have nothing to do, and end once they are loaded.
spawnSync(process.execPath, [...CHILD_FLAGS, join(core, 'devices/sampler-child.ts')], { timeout: 20_000 });
spawnSync(process.execPath, [join(core, 'actuators/reaper-child.ts')], { timeout: 20_000 });
spawnSync(process.execPath, [join(core, 'settings/config-reader-child.ts')], {
  timeout: 20_000,
  input: JSON.stringify({ type: 'schema' }),
});
spawnSync(process.execPath, [join(core, 'ledger/footprint/footprint-child.ts')], {
  timeout: 20_000,
  input: '[]',
});
