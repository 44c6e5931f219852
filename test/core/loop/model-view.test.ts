import { describe, expect, it } from 'vitest';
import type { ObservedModel } from '../../../electron/core/backends/backend.ts';
import type { DeviceSample, ProcessMemory } from '../../../electron/core/devices/sample.ts';
import {
  deviceOf,
  EMPTY_MEMO,
  guardsFor,
  isBig,
  type ModelMemo,
  runsOnCpu,
  viewModel,
} from '../../../electron/core/loop/model-view.ts';
import { defaults } from '../../../electron/core/settings/defaults.ts';
import { deviceSample } from '../../support/device-sample.ts';
import { observedModel } from '../../support/model-view.ts';

const GB = 1_000_000_000;

function device(id: string, memory: DeviceSample['memory'], totalBytes: number | null): DeviceSample {
  return deviceSample({
    id,
    kind: memory === 'system' ? 'system' : 'amdgpu',
    memory,
    name: id,
    drivesDisplay: null,
    totalBytes,
    usedBytes: null,
    freeBytes: null,
    gttUsedBytes: null,
  });
}

describe('whether the guards act', () => {
  const named = { name: 'router', guards: null, found: false };
  const found = { name: 'router', guards: null, found: true };
  const none = { mode: null, pausedUntilMs: null, perBackend: {} };

  it('on for what the config names, observe for what was found by itself', () => {
    expect(guardsFor(named, defaults(), null)).toBe('on');
    expect(guardsFor(found, defaults(), null)).toBe('observe');
  });

  it("the config's word for a backend wins over its word for all", () => {
    const settings = { ...defaults(), guards: 'on' as const };
    expect(guardsFor({ ...named, guards: 'observe' }, settings, null)).toBe('observe');
    expect(guardsFor(found, settings, null)).toBe('on');
  });

  it("a person's word wins over the config's, the one for this backend over the one for all", () => {
    const settings = { ...defaults(), guards: 'on' as const };
    expect(guardsFor(named, settings, { ...none, mode: 'observe' })).toBe('observe');
    expect(guardsFor(named, settings, { ...none, mode: 'observe', perBackend: { router: 'on' } })).toBe('on');
    expect(guardsFor(found, defaults(), { ...none, perBackend: { router: 'on' } })).toBe('on');
  });

  it('a pause stops all of it', () => {
    expect(
      guardsFor(named, defaults(), { ...none, mode: 'on', pausedUntilMs: 1, perBackend: { router: 'on' } }),
    ).toBe('observe');
  });
});

describe('whether a figure is of a model at rest', () => {
  const process = {
    pid: 7,
    startTimeTicks: 1,
    command: ['llama-server'],
    port: 40_001,
    parentPid: 1,
    parentStartTimeTicks: 1,
  };
  const list = (bytes: number): readonly ProcessMemory[] => [
    {
      pid: 7,
      startTimeTicks: 1,
      name: 'llama-server',
      deviceId: 'sim:0',
      bytes,
      gttBytes: null,
      type: 'C',
      source: 'nvml',
    },
  ];
  const view = (
    change: Partial<ObservedModel>,
    seen: { readonly memo?: ModelMemo; readonly listAtMs?: number; readonly freeAtMs?: number },
    bytes = GB,
  ) => {
    const model = observedModel({ status: 'loaded', sinceMs: 10_000, ...change });
    return viewModel({
      snapshot: {
        name: 'router',
        kind: 'llama.cpp',
        url: '',
        status: 'up',
        sinceMs: null,
        error: null,
        version: null,
        models: [model],
        takenAtMs: 0,
        tellsBusy: true,
        notes: [],
      },
      model,
      settings: defaults(),
      memo: seen.memo ?? EMPTY_MEMO,
      operation: null,
      pinnedByPerson: undefined,
      guarded: 'on',
      deviceId: 'sim:0',
      freeBytes: null,
      freeAtMs: seen.freeAtMs ?? null,
      processes: list(bytes),
      processesAtMs: seen.listAtMs ?? null,
    });
  };

  it("the driver's list counts when two of after the load agree", () => {
    const amid = view({ process }, { listAtMs: 9_000 });
    expect(amid).toMatchObject({ measuredBytes: GB, atRest: false });
    const first = view({ process }, { memo: amid.memo, listAtMs: 10_100 });
    expect(first.atRest).toBe(false);
    const grown = view({ process }, { memo: first.memo, listAtMs: 12_100 }, 2 * GB);
    expect(grown).toMatchObject({ measuredBytes: 2 * GB, atRest: false });
    const same = view({ process }, { memo: grown.memo, listAtMs: 14_100 }, 2 * GB);
    expect(same.atRest).toBe(true);
    // It begins anew with its status.
    expect(view({ process, sinceMs: 14_500 }, { memo: same.memo, listAtMs: 14_100 }).atRest).toBe(false);
  });

  it('an exact account, and a difference taken at rest, count at once', () => {
    const counted = view({ process, countedBytes: 2 * GB }, { listAtMs: 9_000, freeAtMs: 9_000 });
    expect(counted).toMatchObject({ measuredBytes: 2 * GB, atRest: true });
    const settled = view({}, { memo: { ...EMPTY_MEMO, settledBytes: 5 * GB }, freeAtMs: 9_000 });
    expect(settled).toMatchObject({ measuredBytes: 5 * GB, atRest: true });
  });

  it('where nothing is measured, its device has been read a while after the load', () => {
    expect(view({}, { freeAtMs: 10_500 })).toMatchObject({ measuredBytes: null, atRest: false });
    expect(view({}, { freeAtMs: 11_000 }).atRest).toBe(true);
  });
});

describe('what is big', () => {
  it('unknown or at least big.atLeast, and not on the allow-list', () => {
    const settings = defaults();
    expect(isBig(settings, 'r/m', false, null)).toBe(true);
    expect(isBig(settings, 'r/m', false, 2 * GB)).toBe(true);
    expect(isBig(settings, 'r/m', false, 2 * GB - 1)).toBe(false);
    expect(isBig(settings, 'r/m', true, null)).toBe(false);
  });

  it('or by name, where names are given', () => {
    const settings = { ...defaults(), big: { names: [{ exact: 'qwen-27b' }, { pattern: 'vision' }] } };
    expect(isBig(settings, 'r/qwen-27b', false, 1)).toBe(true);
    expect(isBig(settings, 'r/my-vision-8b', false, null)).toBe(true);
    expect(isBig(settings, 'r/other', false, 50 * GB)).toBe(false);
  });
});

describe('the device a model lives on', () => {
  const iGpu = device('pci:0000:00:02.0', 'unified', 16 * GB);
  const card = device('pci:0000:03:00.0', 'discrete', 24 * GB);
  const small = device('pci:0000:04:00.0', 'discrete', 8 * GB);
  const ram = device('system', 'system', 64 * GB);

  it('is the one the config says', () => {
    expect(deviceOf(observedModel(), 'pci:0000:04:00.0', [card, small], [])).toBe('pci:0000:04:00.0');
  });

  it('is where its process was seen, else the largest card of its own memory', () => {
    const identity = {
      pid: 7,
      startTimeTicks: 1,
      command: [],
      port: 1,
      parentPid: 1,
      parentStartTimeTicks: 1,
    };
    const use = {
      pid: 7,
      startTimeTicks: 1,
      name: 'llama-server',
      gttBytes: null,
      type: null,
      source: 'drm-fdinfo' as const,
    };
    const model = observedModel({ process: identity });
    expect(deviceOf(model, null, [iGpu, small, card], [{ ...use, deviceId: small.id, bytes: GB }])).toBe(
      small.id,
    );
    expect(deviceOf(model, null, [iGpu, small, card], [])).toBe(card.id);
  });

  it('is the shared memory where there is no card, and unknown where that is not clear', () => {
    expect(deviceOf(observedModel(), null, [iGpu], [])).toBe(iGpu.id);
    expect(deviceOf(observedModel(), null, [ram], [])).toBe('system');
    expect(deviceOf(observedModel(), null, [], [])).toBeNull();
  });

  it('is not the card for a model that was started without GPU layers', () => {
    const cpu = observedModel({ args: ['llama-server', '-ngl', '0'] });
    expect(runsOnCpu(cpu.args)).toBe(true);
    expect(runsOnCpu(['llama-server', '-ngl', '99'])).toBe(false);
    expect(deviceOf(cpu, null, [card, ram], [])).toBe('system');
    expect(deviceOf(cpu, null, [card, small], [])).toBeNull();
    expect(deviceOf(cpu, null, [card], [])).toBeNull();
    expect(deviceOf(cpu, null, [card, iGpu], [])).toBe(iGpu.id);
  });
});
