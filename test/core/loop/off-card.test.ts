import { describe, expect, it } from 'vitest';
import type { DeviceSample, ProcessMemory } from '../../../electron/core/devices/sample.ts';
import { offCardEvent, wrongGpuEvent } from '../../../electron/core/loop/off-card.ts';
import { deviceSample } from '../../support/device-sample.ts';
import { modelView } from '../../support/model-view.ts';

const GB = 1_000_000_000;
const CARD = 'pci:0000:03:00.0';
const card = deviceSample({
  id: CARD,
  kind: 'nvidia',
  name: 'RTX 4090',
  pciAddress: '0000:03:00.0',
  totalBytes: 24 * GB,
  usedBytes: 2 * GB,
  freeBytes: 22 * GB,
  gttUsedBytes: null,
  source: 'nvml',
});
const use = (pid: number, bytes: number | null, deviceId = CARD): ProcessMemory => ({
  pid,
  startTimeTicks: 1,
  name: 'x',
  deviceId,
  bytes,
  gttBytes: null,
  type: 'C',
  source: 'nvml',
});
const DESKTOP = use(900, GB);
const process = {
  pid: 7,
  startTimeTicks: 1,
  command: ['llama-server'],
  port: 1,
  parentPid: 1,
  parentStartTimeTicks: 1,
};
const view = (change: Parameters<typeof modelView>[0] = {}) =>
  modelView({
    status: 'loaded',
    deviceId: CARD,
    predictedBytes: 18 * GB,
    ...change,
    observed: { status: 'loaded', sinceMs: 0, process, ...change.observed },
  });
const look = (model = view(), rows: readonly ProcessMemory[] = [DESKTOP], nowMs = 20_000, device = card) =>
  offCardEvent(model, device, rows, nowMs)?.reason ?? null;

describe('a model that should be on a card and is not (33-igpu-chosen, 38-resume-cpu-fallback)', () => {
  it('is told, and not taken for one that needs nothing', () => {
    expect(look()).toMatch(
      /nothing of the 18\.0 GB it takes is on RTX 4090: it computes on the CPU or on another/,
    );
    // A context of its driver is not the model.
    expect(look(view(), [DESKTOP, use(7, 0.3 * GB)])).toMatch(/only 300 MB of the 18\.0 GB/);
  });

  it('is not one that is there, in part by intent, or on two cards', () => {
    expect(look(view(), [DESKTOP, use(7, 17 * GB)])).toBeNull();
    expect(look(view(), [DESKTOP, use(7, 3 * GB)])).toBeNull();
    expect(look(view(), [DESKTOP, use(7, GB), use(7, 9 * GB, 'pci:0000:04:00.0')])).toBeNull();
  });

  it('that did not fit, and spilled into the system’s memory, is told as that', () => {
    const spilled = (gtt: number) => ({ ...use(7, 12 * GB), gttBytes: gtt * GB });
    const at = (gtt: number, args: readonly string[] | null = null) =>
      look(view({ observed: { args } }), [DESKTOP, spilled(gtt)]);
    expect(at(6)).toMatch(/did not fit on RTX 4090: 6\.0 GB of it is in the system's memory/);
    expect(at(6, ['llama-server', '-ngl', '999'])).toMatch(/did not fit/);
    // A table of words, and layers that are meant to be there.
    expect(at(2)).toBeNull();
    expect(at(6, ['llama-server', '-ngl', '20'])).toBeNull();
    expect(at(6, ['llama-server', '-ot', 'exps=CPU'])).toBeNull();
  });

  it('is not said while nobody can tell', () => {
    // No word of any process: that driver tells none.
    expect(look(view(), [])).toBeNull();
    expect(look(view(), [use(900, null)])).toBeNull();
    expect(look(view(), [DESKTOP, use(7, null)])).toBeNull();
    expect(look(view({ observed: { process: null } }))).toBeNull();
    expect(look(view(), [DESKTOP], 5_000)).toBeNull();
    expect(look(view({ predictedBytes: null }))).toBeNull();
    expect(look(view(), [DESKTOP], 20_000, { ...card, error: 'gone' })).toBeNull();
  });

  it('is not said of one that is not meant to be on a card', () => {
    expect(look(view({ observed: { args: ['llama-server', '-ngl', '0'] } }))).toBeNull();
    expect(look(view(), [DESKTOP], 20_000, { ...card, memory: 'unified' })).toBeNull();
    expect(look(view({ status: 'sleeping', observed: { status: 'sleeping' } }))).toBeNull();
    expect(look(view({ predictedBytes: 0.3 * GB }))).toBeNull();
  });
});

describe('a model on the wrong of two GPUs (33-igpu-chosen)', () => {
  const iGpu: DeviceSample = {
    ...card,
    id: 'pci:0000:00:02.0',
    kind: 'intel',
    memory: 'unified',
    name: 'Iris Xe',
  };
  const there = [use(7, 12 * GB, iGpu.id)];
  const told = (
    devices: readonly DeviceSample[],
    rows = there,
    change: Parameters<typeof view>[0] = {},
    nowMs = 20_000,
  ) => wrongGpuEvent(view({ deviceId: iGpu.id, ...change }), devices, rows, nowMs)?.reason ?? null;

  it('is told, with the card that stands by and how to say that it is meant so', () => {
    expect(told([iGpu, card])).toMatch(
      /m is on Iris Xe, .* while 22\.0 GB of RTX 4090 is free.*`device: "pci:0000:00:02\.0"`/,
    );
  });

  it('is none where there is no such card, no room on it, or no proof', () => {
    expect(told([iGpu])).toBeNull();
    expect(told([iGpu, { ...card, freeBytes: 3 * GB }])).toBeNull();
    expect(told([iGpu, { ...card, freeBytes: null }])).toBeNull();
    expect(told([iGpu, card], [])).toBeNull();
    expect(told([iGpu, card], there, {}, 5_000)).toBeNull();
    expect(told([iGpu, card], there, { observed: { args: ['x', '-ngl', '0'] } })).toBeNull();
    expect(told([iGpu, card], there, { predictedBytes: null })).toBeNull();
    // On the card all is well.
    expect(told([iGpu, card], there, { deviceId: CARD })).toBeNull();
  });
});
