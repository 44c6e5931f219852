import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { forbidsSkipping } from '../../build/tally.ts';
import type { DeskWorld } from '../../electron/core/engine/desk/desk-world.ts';
import { nodeEngineProcess } from '../../electron/core/engine/engine-process.ts';
import { footprintsInChild } from '../../electron/core/ledger/footprint/footprint-source.ts';
import { answered, DEVICE, decode, deskBench } from '../support/desk-bench.ts';
import { must, NEVER, say, TALKER_SHAPE, type TestEngine, testEngine } from '../support/engine.ts';
import { gguf } from '../support/gguf.ts';
import { softwareVulkan } from '../support/software-vulkan.ts';

const env = softwareVulkan();
if (env !== null) onVulkan(env);
else if (forbidsSkipping(process.env)) {
  it('has a software Vulkan device to run on', () => {
    throw new Error('There is none: apt-get install mesa-vulkan-drivers libvulkan1.');
  });
}

function onVulkan(env: Readonly<Record<string, string>>): void {
  describe('the engine on a Vulkan device', () => {
    let engine: TestEngine;
    beforeAll(async () => {
      engine = testEngine({ gpu: 'vulkan', startProcess: nodeEngineProcess({ env }) });
      expect(must(await engine.host.start())).toMatchObject({ gpu: 'vulkan' });
      expect(engine.host.facts()?.gpuDevices.join()).toContain('llvmpipe');
    });
    afterAll(() => engine[Symbol.asyncDispose]());

    it.each([null, 2])(
      'goes on bit for bit after a swap with %s layers on it, and counts its memory there',
      async (layers) => {
        const { host } = engine;
        const model = await engine.load(TALKER_SHAPE, layers);
        expect(model.gpuLayers).toBe(layers ?? model.layers);
        expect(model.deviceBytes).toBeGreaterThan(layers === null ? 2_000_000 : 500_000);
        const context = await engine.context(model);
        expect(context.deviceBytes).toBeGreaterThan(100_000);
        expect(must(await host.memory()).deviceBytes).toBe(
          (model.deviceBytes ?? 0) + (context.deviceBytes ?? 0),
        );
        await say(host, context.contextId, await engine.tokens(model, 'Hello there'), 6);
        const record = must(await host.saveState(context.contextId, join(engine.memoryFolder, 'state')));
        const there = await say(host, context.contextId, [], 10);
        must(await host.disposeContext(context.contextId));
        const anew = await engine.context(model);
        must(await host.restoreState(anew.contextId, record));
        expect((await say(host, anew.contextId, [], 10)).tokens).toEqual(there.tokens);
        must(await host.unloadModel(model.modelId));
        expect(must(await host.memory()).deviceBytes).toBe(0);
        expect(engine.ended).toEqual([]);
      },
    );

    it('admits an agent with the layers that have room, where that is asked for, and it speaks', async () => {
      const footprints = footprintsInChild(process.execPath);
      const estimate: DeskWorld['estimate'] = ({ path, contextTokens, gpuLayers }) =>
        footprints.footprintOf({
          modelPath: path,
          args: [
            ...['--parallel', '1', '--ubatch-size', '512'],
            ...(contextTokens === null ? [] : ['--ctx-size', String(contextTokens)]),
            ...(gpuLayers === null ? [] : ['--n-gpu-layers', String(gpuLayers)]),
          ],
          kind: 'vulkan',
          build: null,
        });
      const path = await gguf(TALKER_SHAPE);
      const asked = { path, contextTokens: 512, kind: 'vulkan' } as const;
      const whole = must(await estimate({ ...asked, gpuLayers: null }));
      const three = must(await estimate({ ...asked, gpuLayers: 3 }));
      expect(three.totalBytes).toBeLessThan(whole.totalBytes);
      await using bench = await deskBench({ capBytes: three.totalBytes, host: engine.host, estimate });
      const request = { agent: 'smol', path, holder: null, class: null, contextTokens: 512 };
      expect(await bench.desk.register({ ...request, fit: false }, NEVER)).toMatchObject({
        ok: false,
        error: { denial: { code: 'CAP' } },
      });
      expect(await bench.desk.register({ ...request, fit: true }, NEVER)).toMatchObject({
        ok: true,
        value: { gpuLayers: 3 },
      });
      const answer = await answered(decode(bench.desk, 'smol', 8, 'hello'));
      expect(answer.generatedTokens).toBeGreaterThan(0);
      expect(bench.ledger.book(DEVICE)?.bookedBytes).toBeLessThanOrEqual(three.totalBytes);
      // Some of its weights are on the device, and not all.
      const { deviceBytes } = must(await engine.host.memory());
      expect(deviceBytes).toBeGreaterThan(0);
      expect(deviceBytes).toBeLessThan(whole.totalBytes - whole.overheadBytes);
      await bench.desk.unregister('smol');
      expect(must(await engine.host.memory()).deviceBytes).toBe(0);
    });

    it('refuses a cache that the device does not take, which llama.cpp would abort on', async () => {
      const model = await engine.load();
      const context = await engine.host.createContext({ modelId: model.modelId, contextTokens: 1 << 21 });
      expect(context).toMatchObject({ ok: false, error: { code: 'engine_out_of_memory' } });
      expect(engine.ended).toEqual([]);
      must(await engine.host.unloadModel(model.modelId));
    });
  });
}
