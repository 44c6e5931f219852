import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startRuntime } from '../../electron/core/runtime.ts';
import { must, TALKER_SHAPE } from '../support/engine.ts';
import { gguf } from '../support/gguf.ts';
import { until } from '../support/router.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-first-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it('answers with nothing installed but a model’s file, before there is a config', async () => {
  const configPath = join(folder, 'config', 'config.yaml');
  await using parts = new AsyncDisposableStack();
  const runtime = must(
    await startRuntime({
      configPath,
      stateDir: join(folder, 'state'),
      port: 0,
      discoverPorts: [],
      systemLog: false,
      pageDir: null,
      engine: { gpu: 'cpu', threads: 1 },
    }),
  );
  parts.defer(() => runtime.stop());
  expect(must(await runtime.ask('observation', {})).firstRun).toBe(true);
  const file = await gguf({ ...TALKER_SHAPE, seed: 41 });
  const added = must(await runtime.ask('addModel', { name: null, file }));
  const id = added.models?.[0] ?? '';
  expect(id).toMatch(/^embedded\//);
  expect(await readFile(configPath, 'utf8')).toContain(file);
  await until(() => runtime.state().models.some((model) => model.id === id), 10_000, 'it to be listed');
  must(await runtime.ask('testTurn', { model: id }));
  const model = runtime.state().models.find((one) => one.id === id);
  expect(model?.status).toBe('loaded');
  // In the machine's own memory, where that is what is watched, its figure is in the book.
  const device = runtime.state().devices.find((one) => one.id === model?.deviceId);
  expect(device === undefined || device.bookedBytes === model?.measuredBytes).toBe(true);
});
