import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EventStore } from '../../../electron/core/events/event-store.ts';
import type { Footprint } from '../../../electron/core/ledger/footprint/estimate.ts';
import type { FootprintSource } from '../../../electron/core/ledger/footprint/footprint-source.ts';
import { CHOSEN_UP_TO } from '../../../electron/core/ledger/footprint/ollama-context.ts';
import {
  durableForecaster,
  FOOTPRINTS,
  type ForecasterParts,
} from '../../../electron/core/loop/forecaster.ts';
import { defaults } from '../../../electron/core/settings/defaults.ts';
import { ok } from '../../../shared/errors.ts';
import { modelView } from '../../support/model-view.ts';

const GB = 1_000_000_000;
const PLACE = { deviceKind: 'cuda', deviceTotalBytes: null } as const;

let folder = '';
let modelPath = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-forecaster-'));
  modelPath = join(folder, 'm.gguf');
  await writeFile(modelPath, 'GGUF');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The small facts of a store, kept as a database keeps them. */
function facts(): Pick<EventStore, 'get' | 'set'> {
  const kept = new Map<string, string>();
  return {
    get: async (key) => JSON.parse(kept.get(key) ?? 'null'),
    set: async (key, value) => {
      kept.set(key, JSON.stringify(value));
      return ok(undefined);
    },
  };
}

function source(totalBytes: number): FootprintSource & { asked: number } {
  const footprint: Footprint = {
    weightsBytes: totalBytes,
    kvBytes: 0,
    recurrentBytes: 0,
    computeBytes: 0,
    overheadBytes: 0,
    totalBytes,
    layers: 1,
    kvLayers: 1,
    contextTokens: 256,
    notes: [],
  };
  return {
    asked: 0,
    async footprintOf() {
      this.asked += 1;
      return ok(footprint);
    },
  };
}

const view = (deviceId = 'sim:0') =>
  modelView({ deviceId, observed: { args: ['llama-server', '-fit', 'off'], modelPath } });
const forecaster = (store: Pick<EventStore, 'get' | 'set'>, parts: ForecasterParts = {}) =>
  durableForecaster(store, defaults, { footprints: source(5 * GB), ...parts });

describe('predictions', () => {
  it('become llama.cpp’s own once that is there, and whoever asked is told', async () => {
    const better: string[] = [];
    const reference = source(6 * GB);
    const one = await forecaster(facts(), { reference, referenceAfterMs: 0 });
    const told = new Promise<void>((resolve) =>
      one.onBetter?.((modelId) => {
        better.push(modelId);
        resolve();
      }),
    );
    expect(await one.predict(view(), PLACE)).toEqual({ bytes: 5 * GB, source: 'estimate' });
    await told;
    expect(better).toEqual(['router/m']);
    expect(await one.predict(view(), PLACE)).toEqual({ bytes: 6 * GB, source: 'estimate' });
    expect(reference.asked).toBe(1);
  });

  it('take up what was measured in earlier runs also where it can be read only later, and keep both', async () => {
    const earlier = facts();
    const before = await forecaster(earlier);
    before.learn(view(), 7 * GB);
    before.learn(view('sim:1'), 8 * GB);
    const store = facts();
    const one = await forecaster(store);
    one.learn(view(), 9 * GB);
    one.takeUp?.(await earlier.get(FOOTPRINTS));
    one.takeUp?.('garbage');
    for (const known of [one, await forecaster(store)]) {
      expect(await known.predict(view(), PLACE)).toMatchObject({ bytes: 9 * GB });
      expect(await known.predict(view('sim:1'), PLACE)).toMatchObject({ bytes: 8 * GB });
    }
  });

  it('of a context that Ollama chooses go by the card, and what was measured there is known again', async () => {
    const one = await forecaster(facts());
    const ollama = (args: readonly string[]) =>
      modelView({ deviceId: 'sim:0', observed: { args: ['ollama', ...args], modelPath } });
    one.learn(ollama(['--ctx-size', '32768']), 9 * GB);
    const unloaded = ollama([CHOSEN_UP_TO, '131072']);
    const on = (deviceTotalBytes: number) => one.predict(unloaded, { ...PLACE, deviceTotalBytes });
    expect(await on(25 * GB)).toEqual({ bytes: 9 * GB, source: 'measured before' });
    expect(await on(16 * GB)).toMatchObject({ source: 'estimate' });
    const twoCards = { ...PLACE, deviceTotalBytes: 16 * GB, kindTotalBytes: 32 * GB };
    expect(await one.predict(unloaded, twoCards)).toMatchObject({ source: 'measured before' });
  });

  it('of a model that its repository names are of the file that was downloaded', async () => {
    const asked: (readonly string[])[] = [];
    const footprints: FootprintSource = {
      footprintOf: async ({ args }) => {
        asked.push(args);
        return await source(3 * GB).footprintOf({ args, modelPath: null, kind: 'cuda', build: null });
      },
    };
    const flat = join(folder, 'llama.cpp');
    await mkdir(flat, { recursive: true });
    await writeFile(join(flat, 'maker_m_m-Q4_K_M.gguf'), 'GGUF');
    const one = await forecaster(facts(), { footprints, downloads: { hubs: [], flat: [flat] } });
    const named = modelView({
      deviceId: 'sim:0',
      observed: { args: ['llama-server', '--hf-repo', 'maker/m:Q4_K_M'], modelPath: null },
    });
    expect(await one.predict(named, PLACE)).toEqual({ bytes: 3 * GB, source: 'estimate' });
    expect(asked.at(-1)).toContain(join(flat, 'maker_m_m-Q4_K_M.gguf'));
    // What it was measured with is told by its own flags.
    one.learn(named, 4 * GB);
    expect(await one.predict(named, PLACE)).toEqual({ bytes: 4 * GB, source: 'measured before' });
  });

  it('of another context are ours, and llama.cpp is left alone', async () => {
    const reference = source(6 * GB);
    const one = await forecaster(facts(), { reference, referenceAfterMs: 0 });
    const footprints = await Promise.all(
      [1024, 2048, 4096].map((tokens) => one.footprint(view(), PLACE, tokens)),
    );
    expect(footprints.map((footprint) => footprint?.totalBytes)).toEqual([5, 5, 5].map((gb) => gb * GB));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(reference.asked).toBe(0);
  });

  it('are what was measured on that device, over a restart', async () => {
    const store = facts();
    const one = await forecaster(store);
    one.learn(view(), 7 * GB);
    for (const again of [one, await forecaster(store)]) {
      expect(await again.predict(view(), PLACE)).toEqual({ bytes: 7 * GB, source: 'measured before' });
      expect(await again.predict(view('pci:1'), PLACE)).toEqual({ bytes: 5 * GB, source: 'estimate' });
    }
  });
});
