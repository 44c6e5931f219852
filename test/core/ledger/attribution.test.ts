import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeviceSample, ProcessMemory } from '../../../electron/core/devices/sample.ts';
import { attribute, type KnownModel } from '../../../electron/core/ledger/attribution.ts';
import type { Booking } from '../../../electron/core/ledger/booking.ts';
import type { TenantState } from '../../../shared/state.ts';
import { deviceSample } from '../../support/device-sample.ts';

const GB = 1_000_000_000;
const MIB = 1024 * 1024;
const CARD = 'pci:0000:03:00.0';

function sample(usedBytes: number | null, more: Partial<DeviceSample> = {}): DeviceSample {
  return deviceSample({
    id: CARD,
    kind: 'nvidia',
    name: 'a card',
    pciAddress: '0000:03:00.0',
    totalBytes: 32 * GB,
    usedBytes,
    freeBytes: usedBytes === null ? null : 32 * GB - usedBytes,
    gttUsedBytes: null,
    source: 'nvml',
    takenAtMs: 1,
    ...more,
  });
}

function use(
  pid: number,
  name: string,
  bytes: number | null,
  type: ProcessMemory['type'] = null,
  more: Partial<ProcessMemory> = {},
): ProcessMemory {
  return {
    pid,
    startTimeTicks: pid * 10,
    name,
    deviceId: CARD,
    bytes,
    gttBytes: null,
    type,
    source: type === null ? 'drm-fdinfo' : 'nvml',
    ...more,
  };
}

function known(id: string, pids: readonly number[], more: Partial<KnownModel> = {}): KnownModel {
  const processes = pids.map((pid) => ({ pid, startTimeTicks: pid * 10 }));
  return { id, deviceId: CARD, processes, predictedBytes: null, measuredBytes: null, ...more };
}

function attributed(
  usedBytes: number | null,
  processes: readonly ProcessMemory[] | null,
  models: readonly KnownModel[] = [],
  more: { sample?: Partial<DeviceSample>; bookings?: readonly Booking[] } = {},
): readonly TenantState[] {
  return attribute({
    sample: sample(usedBytes, more.sample),
    processes,
    models,
    bookings: more.bookings ?? [],
  });
}

function sizes(tenants: readonly TenantState[]): Record<string, number | null> {
  return Object.fromEntries(tenants.map((one) => [`${one.kind} ${one.name}`, one.measuredBytes]));
}

describe('who holds a device', () => {
  it('gives a model what its process and its children hold', () => {
    const processes = [use(10, 'llama-server', 7 * GB, 'C'), use(11, 'llama-server', 1 * GB, 'C')];
    expect(sizes(attributed(9 * GB, processes, [known('router/a', [10, 11])]))).toEqual({
      'model router/a': 8 * GB,
      'desktop the desktop': 1 * GB,
    });
  });

  it('does not take a reused pid for the model', () => {
    const reused = use(10, 'python3', 7 * GB, 'C', { startTimeTicks: 999 });
    expect(sizes(attributed(8 * GB, [reused], [known('router/a', [10])]))).toEqual({
      'model router/a': null,
      'foreign python3': 7 * GB,
      'desktop the desktop': 1 * GB,
    });
  });

  it('rule 14: what can not be attributed is the desktop’s, also where graphics clients are not listed', () => {
    const [desktop] = attributed(596 * MIB, [use(2165, '/usr/bin/kwin_wayland', 25 * MIB, 'C+G')]);
    expect(desktop).toMatchObject({
      kind: 'desktop',
      measuredBytes: 596 * MIB,
      pids: [2165],
      parts: [{ name: 'kwin_wayland', bytes: 25 * MIB, pid: 2165 }],
    });
  });

  const kinds: readonly [ProcessMemory, TenantState['kind']][] = [
    [use(1, 'ComfyUI', GB), 'foreign'],
    [use(1, '/opt/comfy/venv/bin/python3 main.py --listen', GB, 'C'), 'foreign'],
    [use(1, 'python3', GB), 'foreign'],
    [use(1, 'blender', GB, 'C+G'), 'foreign'],
    [use(1, 'llama-server', GB), 'foreign'],
    [use(1, 'ollama', GB), 'foreign'],
    // On Vulkan no driver tells compute from drawing: names alone do.
    [use(1, 'local-ai', GB), 'foreign'],
    [use(1, 'ggml-rpc-server', GB), 'foreign'],
    [use(1, 'llmster', GB), 'foreign'],
    [use(1, 'Cyberpunk2077.exe', GB), 'foreign'],
    [use(1, 'mystery', GB, 'C'), 'foreign'],
    [use(1, 'mystery', GB, null, { source: 'kfd' }), 'foreign'],
    [use(1, 'mystery', GB), 'desktop'],
    [use(1, 'mystery', GB, 'G'), 'desktop'],
    [use(1, 'firefox', GB, 'C+G'), 'desktop'],
    [use(1, 'mpv', GB, 'C'), 'desktop'],
    [use(1, 'C:\\Windows\\explorer.exe', GB, 'C+G'), 'desktop'],
    [use(1, 'python3', GB, null, { source: 'statm' }), 'desktop'],
    [use(1, 'ollama', GB, null, { source: 'statm' }), 'foreign'],
  ];
  for (const [process, kind] of kinds)
    it(`${process.name} (${process.type ?? 'untyped'}, ${process.source}) is ${kind}`, () => {
      const tenants = attributed(3 * GB, [process]);
      expect(tenants.some((one) => one.kind === kind && one.pids.includes(1))).toBe(true);
      expect(tenants.filter((one) => one.pids.includes(1))).toHaveLength(1);
    });

  it('puts processes of one foreign program together, with its parts', () => {
    const tenants = attributed(9 * GB, [use(1, 'blender', 1 * GB), use(2, 'blender', 3 * GB)]);
    expect(tenants[0]).toMatchObject({
      kind: 'foreign',
      name: 'blender',
      measuredBytes: 4 * GB,
      pids: [2, 1],
      parts: [
        { pid: 2, bytes: 3 * GB },
        { pid: 1, bytes: 1 * GB },
      ],
    });
  });

  it('rule 5: a figure the driver keeps to itself stays null', () => {
    const hidden = [use(10, 'llama-server', null, 'C'), use(11, 'firefox', null, 'C+G')];
    const models = [known('router/a', [10], { predictedBytes: 6 * GB })];
    expect(sizes(attributed(9 * GB, hidden, models))).toEqual({
      'model router/a': null,
      'desktop the desktop': 3 * GB,
    });
    expect(sizes(attributed(null, hidden, models))).toEqual({
      'model router/a': null,
      'desktop the desktop': null,
    });
  });

  it('takes what the backend reports where the driver says nothing, and the driver’s figure before it', () => {
    const models = [known('router/a', [10], { measuredBytes: 5 * GB })];
    expect(sizes(attributed(9 * GB, null, models))['model router/a']).toBe(5 * GB);
    const processes = [use(10, 'llama-server', 6 * GB, 'C')];
    expect(sizes(attributed(9 * GB, processes, models))['model router/a']).toBe(6 * GB);
  });

  it('an unmeasured model takes no more of the rest than what is not seen to be the desktop’s', () => {
    const models = [known('router/a', [10], { predictedBytes: 8 * GB })];
    const tenants = attributed(5 * GB, [use(11, 'firefox', 2 * GB, 'G')], models);
    expect(sizes(tenants)['desktop the desktop']).toBe(2 * GB);
  });

  it('lists agents and reserved jobs from their lines, and models of other devices not at all', () => {
    const line: Booking = {
      id: 'agent/smol',
      kind: 'agent',
      name: 'smol',
      deviceId: CARD,
      predictedBytes: 2 * GB,
      measuredBytes: 1 * GB,
      state: 'committed',
      sinceMs: 0,
      shared: null,
    };
    const job: Booking = { ...line, id: 'job', kind: 'reserved', name: 'render', measuredBytes: null };
    const bookings = [line, job, { ...line, id: 'router/a', kind: 'model' as const }];
    const elsewhere = known('router/b', [99], { deviceId: 'pci:other' });
    const tenants = attributed(9 * GB, [], [elsewhere], { bookings });
    expect(sizes(tenants)).toEqual({
      'agent smol': 1 * GB,
      'reserved render': null,
      'desktop the desktop': 6 * GB,
    });
    expect(tenants.map((one) => one.id)).toEqual(['agent/smol', 'job', `desktop@${CARD}`]);
  });

  it('on memory that is the system’s the rest is the system', () => {
    const tenants = attributed(
      9 * GB,
      [use(10, 'llama-server', 4 * GB, null, { source: 'statm' })],
      [known('r/a', [10])],
      {
        sample: { memory: 'system' },
      },
    );
    expect(sizes(tenants)).toEqual({ 'model r/a': 4 * GB, 'desktop the system': 5 * GB });
  });

  it('never adds up to more than the device says is used, and never below zero', () => {
    const names = fc.constantFrom('llama-server', 'firefox', 'blender', 'python3', 'Xorg');
    const row = fc.record({
      pid: fc.integer({ min: 1, max: 6 }),
      name: names,
      bytes: fc.option(fc.integer({ min: 0, max: 20 * GB })),
      type: fc.constantFrom('C', 'G', 'C+G', null),
    } as const);
    fc.assert(
      fc.property(fc.array(row, { maxLength: 10 }), fc.integer({ min: 0, max: 32 * GB }), (rows, used) => {
        const processes = rows.map(({ pid, name, bytes, type }) => use(pid, name, bytes, type));
        const models = [known('r/a', [1, 2], { predictedBytes: GB }), known('r/b', [3])];
        const tenants = attributed(used, processes, models);
        let sum = 0;
        for (const one of tenants) {
          expect(one.measuredBytes ?? 0).toBeGreaterThanOrEqual(0);
          expect(Number.isInteger(one.measuredBytes ?? 0)).toBe(true);
          sum += one.measuredBytes ?? 0;
          const parts = (one.parts ?? []).reduce((bytes, part) => bytes + part.bytes, 0);
          if (one.measuredBytes !== null) expect(parts).toBeLessThanOrEqual(one.measuredBytes);
        }
        expect(sum).toBeLessThanOrEqual(used);
        expect(new Set(tenants.map((one) => one.id)).size).toBe(tenants.length);
      }),
      { numRuns: 500 },
    );
  });
});
