import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SMALL_MODELS } from '../../build/models/synthetic-models.ts';
import { forbidsSkipping } from '../../build/tally.ts';
import { estimate } from '../../electron/core/ledger/footprint/estimate.ts';
import { DEFAULT_FLAGS } from '../../electron/core/ledger/footprint/flags.ts';
import { readModel } from '../../electron/core/ledger/footprint/footprint-of-load.ts';
import type { DeviceBuffers, DeviceLoad } from '../support/device-buffers-child.ts';
import { writeGguf } from '../support/gguf-writer.ts';
import { softwareVulkan } from '../support/software-vulkan.ts';

/** Where llama.cpp puts each layer's weights, keys, values and states when not all fit, on a real device. */
const MIB = 1_048_576;
const CHILD = join(import.meta.dirname, '../support/device-buffers-child.ts');
const LIMIT_MS = 120_000;
const CONTEXT_TOKENS = 2048;
/** Of every kind; those whose window or head width this device has another cache for are left to the other tests. */
const MODELS = [
  'llama',
  'qwen3, tied',
  'qwen3moe',
  'gpt-oss',
  'falcon-h1',
  'granitehybrid',
  'nemotron_h',
  'lfm2',
  'qwen35',
  'qwen35 with a next-token layer',
  'deepseek2 with latent tensors',
  'deepseek2 without',
];

const env = softwareVulkan();
if (env !== null) onDevice(env);
else if (forbidsSkipping(process.env)) {
  it('has a software Vulkan device to run on', () => {
    throw new Error('There is none: apt-get install mesa-vulkan-drivers libvulkan1.');
  });
}

function onDevice(variables: Readonly<Record<string, string>>): void {
  const folders: string[] = [];
  afterAll(() => Promise.all(folders.map((one) => rm(one, { recursive: true, force: true }))));

  describe('a model with some of its layers on a device', () => {
    it(
      'has there what llama.cpp puts there, however many layers',
      async () => {
        const folder = await mkdtemp(join(tmpdir(), 'landlord-placement-'));
        folders.push(folder);
        const loads: DeviceLoad[] = [];
        for (const [index, name] of MODELS.entries()) {
          const spec = SMALL_MODELS[name];
          if (spec === undefined) throw new Error(`There is no model ${name}.`);
          const path = await writeGguf(join(folder, `${index}.gguf`), spec);
          const layers = Number(spec.metadata['.block_count']);
          for (const gpuLayers of [0, 1, 2, layers, layers + 1])
            loads.push({ path, gpuLayers, contextTokens: CONTEXT_TOKENS });
        }
        const answer = execFileSync(process.execPath, [CHILD], {
          input: JSON.stringify(loads),
          env: { ...process.env, ...variables },
          encoding: 'utf8',
          timeout: LIMIT_MS,
          stdio: ['pipe', 'pipe', 'ignore'],
        });
        const logged: readonly DeviceBuffers[] = JSON.parse(answer);
        expect(logged).toHaveLength(loads.length);
        for (const [index, load] of loads.entries()) {
          const header = await readModel(load.path);
          if (!header.ok) throw new Error(header.error.message);
          const flags = {
            ...DEFAULT_FLAGS,
            contextTokens: CONTEXT_TOKENS,
            slots: 1,
            gpuLayers: load.gpuLayers,
          };
          const ours = estimate(header.value, flags, 'vulkan');
          const name = `${MODELS[Math.floor(index / 5)]} with ${load.gpuLayers} layers`;
          const near = (bytes: number, mib: number | undefined): void =>
            expect(Math.abs(bytes / MIB - (mib ?? Number.NaN)), name).toBeLessThan(0.02);
          near(ours.weightsBytes, logged[index]?.weightsMib);
          near(ours.kvBytes, logged[index]?.kvMib);
          near(ours.recurrentBytes, logged[index]?.stateMib);
        }
      },
      LIMIT_MS,
    );
  });
}
