import { describe, expect, it } from 'vitest';
import { gemma3, llama } from '../../../build/models/synthetic-architectures.ts';
import { deepseek2, qwen35 } from '../../../build/models/synthetic-state-models.ts';
import { choose } from '../../../electron/cli/presets/choose.ts';
import { presetText } from '../../../electron/cli/presets/preset-text.ts';
import {
  type FreeReading,
  freedBytes,
  type Operation,
  settled,
} from '../../../electron/core/actuators/operation.ts';
import { emptyMemory } from '../../../electron/core/guards/memory.ts';
import { EMPTY_MEMO, viewModel } from '../../../electron/core/loop/model-view.ts';
import { defaults } from '../../../electron/core/settings/defaults.ts';
import { resolveFloor } from '../../../shared/settings.ts';
import { footprintOf, headerOfSpec } from '../../support/footprint.ts';
import { observedModel } from '../../support/model-view.ts';
import { breached, CARD, device, GB, loading, model, NOW, small, told, world } from '../guards/worlds.ts';

/** Field reports about what models take and when they have to go. Numbers are those of the collected reports. */
const operation = (change: Partial<Operation> = {}): Operation => ({
  modelId: 'router/m',
  deviceId: CARD,
  cause: 'floor',
  reason: '',
  numbers: {},
  forModelId: null,
  startedAtMs: 0,
  freeBeforeBytes: 2 * GB,
  heldBytes: 8 * GB,
  phase: 'settling',
  requestedAtMs: 1,
  armed: null,
  signalable: null,
  signalNote: null,
  killedAtMs: null,
  goneAtMs: 1_000,
  lastFreeBytes: null,
  lastSampleAtMs: null,
  steadySamples: 0,
  disturbed: false,
  stuckTold: false,
  ...change,
});
const reading = (freeBytes: number, sampledAtMs: number): FreeReading => ({
  freeBytes,
  totalBytes: 24 * GB,
  sampledAtMs,
});

describe('04 router-lru-evicts-loading-model', () => {
  it('one that is loading is never the one to go, nor one that works, for anything but a race', () => {
    const models = [loading('coming', GB, { seenBytes: GB }), model('working', { busy: true })];
    expect(told(world(device({ freeBytes: 3 * GB }), models), breached())).toEqual([]);
    expect(
      told(world(device(), models, { policy: { maxBig: 1 } })).filter((line) => line.includes('coming')),
    ).toEqual([]);
  });
});

it('09 rocm-vram-floor-rises: an unload is over when memory is steady, also a gigabyte below where it was', () => {
  const leaving = operation();
  // It gave back 7 of the 8 it held: the driver keeps a residue.
  expect(settled(leaving, reading(9 * GB, 3_200), 3_200)).toBe(false);
  expect(settled(leaving, reading(9 * GB, 3_700), 3_700)).toBe(true);
  expect(freedBytes(leaving, reading(9 * GB, 3_700))).toBe(7 * GB);
});

it('10 settle-before-measuring: equal readings say nothing while the process is still there', () => {
  const leaving = operation({ goneAtMs: null });
  for (const atMs of [1_000, 1_500, 2_000]) expect(settled(leaving, reading(2 * GB, atMs), atMs)).toBe(false);
  // Gone, and the driver shows it late: two equal readings from before that are not the end.
  const gone = operation({ goneAtMs: 2_000 });
  expect(settled(gone, reading(2 * GB, 2_100), 2_100)).toBe(false);
  expect(settled(gone, reading(2 * GB, 2_600), 2_600)).toBe(false);
});

it('15 reload-loop-fit-negative: a model just loaded does not go for a shortage that does not last', () => {
  const fresh = model('fresh', { statusSinceMs: NOW - 10_000, lastUsedAtMs: NOW - 10_000 });
  expect(told(world(device({ freeBytes: 3.9 * GB }), [fresh]))).toEqual([]);
});

it('16 estimate-hybrid-over: layers without keys and values cost none, and their state is counted once', () => {
  const footprint = footprintOf(headerOfSpec(qwen35()), { contextTokens: 4096, slots: 1 });
  expect(footprint.kvLayers).toBeLessThan(footprint.layers);
  expect(footprint.recurrentBytes).toBeGreaterThan(0);
  const twice = footprintOf(headerOfSpec(qwen35()), { contextTokens: 8192, slots: 1 });
  expect(twice.recurrentBytes).toBe(footprint.recurrentBytes);
  expect(twice.kvBytes).toBe(2 * footprint.kvBytes);
});

it('18 estimate-swa-both-ways: a windowed layer costs its window, never nothing, and all of it with --swa-full', () => {
  const at = (contextTokens: number, fullWindowCache = false): number =>
    footprintOf(headerOfSpec(gemma3()), { contextTokens, slots: 1, fullWindowCache }).kvBytes;
  expect(at(8192)).toBeLessThan(at(8192, true));
  expect(at(8192)).toBeGreaterThan(at(8192, true) / 12);
});

it('19 estimate-mla-under: latent or whole keys go by what is in the file, not by its name', () => {
  const latent = footprintOf(headerOfSpec(deepseek2()), { contextTokens: 4096, slots: 1 }).kvBytes;
  const whole = footprintOf(headerOfSpec(deepseek2(undefined, undefined, true)), {
    contextTokens: 4096,
    slots: 1,
  }).kvBytes;
  expect(whole).toBeGreaterThan(2 * latent);
});

it('21 estimate-vs-ps: what a server claims is a forecast, never a measurement', () => {
  const claims = observedModel({ status: 'loaded', reportedBytes: 59 * GB });
  const input = {
    snapshot: {
      name: 'ollama',
      kind: 'ollama' as const,
      url: '',
      status: 'up' as const,
      sinceMs: null,
      error: null,
      version: null,
      models: [claims],
      takenAtMs: 0,
      tellsBusy: false,
      notes: [],
    },
    model: claims,
    settings: defaults(),
    memo: EMPTY_MEMO,
    operation: null,
    pinnedByPerson: undefined,
    guarded: 'on' as const,
    deviceId: CARD,
    freeBytes: null,
    freeAtMs: null,
    processes: [],
    processesAtMs: null,
  };
  expect(viewModel(input)).toMatchObject({ measuredBytes: null, predictedBytes: 59 * GB });
  // What the device lost while it loaded is one.
  const memo = { ...EMPTY_MEMO, settledBytes: 26.7 * GB };
  expect(viewModel({ ...input, memo })).toMatchObject({ measuredBytes: 26.7 * GB });
});

it('23 fit-abort-explicit-ngl: a preset that sets layers by hand has been sized, and no other sets them', () => {
  const header = headerOfSpec(llama(), { 'llama.context_length': 131_072 });
  for (let budgetBytes = 4 * GB; budgetBytes > 2_000_000; budgetBytes = Math.floor(budgetBytes * 0.8)) {
    const choice = choose(header, {}, { budgetBytes, deviceKind: 'cuda', contextTokens: null, slots: 1 });
    if (choice.kind !== 'fits') continue;
    const layers = choice.keys.find(([key]) => key === 'n-gpu-layers');
    expect(choice.footprint.totalBytes).toBeLessThanOrEqual(budgetBytes);
    if (layers !== undefined) expect(Number(layers[1])).toBeLessThan(footprintOf(header).layers + 1);
  }
});

it('24 host-mapped-weights-and-per-device-scratch: what is read row by row is no load of the card', () => {
  const header = headerOfSpec(llama());
  const embedding = header.tensors.find((tensor) => tensor.name === 'token_embd.weight')?.bytes ?? 0;
  const onCard = footprintOf(header, {}, 'cuda').weightsBytes;
  expect(footprintOf(header, {}, 'cpu').weightsBytes - onCard).toBe(embedding);
  const two = footprintOf(header, { devices: 2 }, 'cuda');
  expect(two.computeBytes + two.overheadBytes).toBeGreaterThan(
    footprintOf(header, {}, 'cuda').computeBytes + footprintOf(header, {}, 'cuda').overheadBytes,
  );
});

it('25 wayland-vram-exhaustion: below the floor idle models go, before the card is full and whoever asks', () => {
  expect(told(world(device({ freeBytes: 3 * GB }), [model('idle')]), breached())).toEqual([
    'unload idle floor',
  ]);
  // Half-way to nothing there is no time to wait.
  expect(told(world(device({ freeBytes: 1.5 * GB }), [model('idle')]))).toEqual(['unload idle floor']);
});

it('26 compositor-spikes: a window resized for a second costs no model its place', () => {
  const spike = world(device({ freeBytes: 2.9 * GB }), [model('idle')]);
  expect(told(spike)).toEqual([]);
  expect(told(spike, { ...emptyMemory(), breachSinceMs: { [CARD]: NOW - 2_000 } })).toEqual([]);
  expect(told(spike, { ...emptyMemory(), breachSinceMs: { [CARD]: NOW - 6_000 } })).toEqual([
    'unload idle floor',
  ]);
  // The reserve is larger than such a spike on any card of some size.
  expect(resolveFloor(defaults().floor, 24 * GB, null).floorBytes).toBeGreaterThan(1.3 * GB);
});

describe('36 apu-carveout-eviction-storm', () => {
  const short = world(device({ unified: true, freeBytes: GB }), [model('idle'), small('resident')]);
  it('an eviction that freed nothing is not repeated', () => {
    const freed = { ...breached(), freedNothing: { 'router/idle': { atMs: NOW - 30_000, freeBytes: GB } } };
    expect(told(short, breached())).toContain('unload idle floor');
    expect(told(short, freed)).not.toContain('unload idle floor');
  });
});

it('38 resume-cpu-fallback: readings and breaches from before a suspend move nothing', () => {
  const memory = breached();
  const asleep = world(device({ freeBytes: GB, sampledAtMs: NOW - 5_000 }), [model('idle')], {
    resumedAtMs: NOW - 1_000,
  });
  expect(told(asleep, memory)).toEqual([]);
});

it('46 cache-ram-cross-conversation: a preset for conversations side by side shares no prompt cache', () => {
  const text = (slots: number): string =>
    presetText({ folder: '/m', budgetBytes: GB, how: '', models: [], leftOut: [], slots });
  expect(text(4)).toMatch(/^cache-ram = 0$/m);
  expect(text(1)).not.toMatch(/cache-ram/);
});
