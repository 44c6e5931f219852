import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Runtime, startRuntime } from '../../electron/core/runtime.ts';
import type { ModelState } from '../../shared/state.ts';
import { must } from './engine.ts';
import { until } from './router.ts';

export interface EngineLandlord extends AsyncDisposable {
  readonly runtime: Runtime;
  model(name: string): ModelState;
  is(name: string, status: string): Promise<void>;
}

const GB = 1_000_000_000;

/** A runtime whose only backend is the engine, on the CPU, beside a simulated card. */
export async function startEngineLandlord(
  models: Readonly<Record<string, string>>,
  config = '',
): Promise<EngineLandlord> {
  const folder = await mkdtemp(join(tmpdir(), 'landlord-engine-'));
  const card = join(folder, 'card.json');
  await writeFile(
    card,
    JSON.stringify({ name: 'card', totalBytes: 24 * GB, usedBytes: GB, gttUsedBytes: 0 }),
  );
  const configPath = join(folder, 'config.yaml');
  await writeFile(
    configPath,
    `devices:\n  - { kind: simulated, path: ${JSON.stringify(card)} }\nbackends:\n  - { name: embedded, kind: embedded, models: ${JSON.stringify(models)} }\n${config}`,
  );
  const runtime = must(
    await startRuntime({
      configPath,
      stateDir: join(folder, 'state'),
      port: 0,
      discoverPorts: [],
      systemLog: false,
      engine: { gpu: 'cpu', threads: 1 },
    }),
  );
  const find = (name: string): ModelState | undefined =>
    runtime.state().models.find((model) => model.id === `embedded/${name}`);
  return {
    runtime,
    model(name) {
      const found = find(name);
      if (found === undefined) throw new Error(`embedded/${name} is not listed`);
      return found;
    },
    is: (name, status) => until(() => find(name)?.status === status, 30_000, `${name} to be ${status}`),
    async [Symbol.asyncDispose]() {
      await runtime.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
