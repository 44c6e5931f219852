import { describe, expect, it } from 'vitest';
import { evictionUnderWay } from '../../../electron/core/devices/gtt.ts';
import { mergeProcesses, plausibleRows } from '../../../electron/core/devices/process-memory.ts';
import type { DeviceSample, ProcessMemory } from '../../../electron/core/devices/sample.ts';
import { deviceSample } from '../../support/device-sample.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

function sample(
  atMs: number,
  usedBytes: number | null,
  gttUsedBytes: number | null,
  change: Partial<DeviceSample> = {},
): DeviceSample {
  return deviceSample({
    id: 'pci:0000:03:00.0',
    kind: 'amdgpu',
    name: 'card',
    pciAddress: '0000:03:00.0',
    totalBytes: 32 * GIB,
    usedBytes,
    freeBytes: null,
    gttTotalBytes: 32 * GIB,
    gttUsedBytes,
    source: 'amdgpu-sysfs',
    takenAtMs: atMs,
    ...change,
  });
}
const FULL = 32 * GIB - 300 * MIB;

describe('eviction under way', () => {
  it('is GTT that grows while VRAM is full', () => {
    expect(
      evictionUnderWay([
        sample(0, FULL, 100 * MIB),
        sample(500, FULL, 130 * MIB),
        sample(1000, FULL, 170 * MIB),
      ]),
    ).toBe(true);
  });

  it('is not GTT that grows beside free VRAM: a loading model’s host buffers', () => {
    expect(evictionUnderWay([sample(0, 20 * GIB, 0), sample(500, 24 * GIB, GIB)])).toBe(false);
    expect(evictionUnderWay([sample(0, 20 * GIB, 0), sample(500, FULL, GIB)])).toBe(false);
  });

  it('is not a full card whose GTT stands still, shrinks or creeps', () => {
    expect(evictionUnderWay([sample(0, FULL, GIB), sample(500, FULL, GIB)])).toBe(false);
    expect(evictionUnderWay([sample(0, FULL, 2 * GIB), sample(500, FULL, GIB)])).toBe(false);
    expect(evictionUnderWay([sample(0, FULL, GIB), sample(500, FULL, GIB + 20 * MIB)])).toBe(false);
  });

  it('is over when the growth is 3 s back, and is not told across a gap', () => {
    expect(
      evictionUnderWay([
        sample(0, FULL, 0),
        sample(2000, FULL, GIB),
        sample(4000, FULL, GIB),
        sample(5500, FULL, GIB),
      ]),
    ).toBe(false);
    expect(evictionUnderWay([sample(0, FULL, 0), sample(60_000, FULL, GIB)])).toBeNull();
  });

  it('is unknown for unified memory, missing figures and a first sample', () => {
    const unified = { memory: 'unified' as const };
    expect(evictionUnderWay([sample(0, FULL, 0, unified), sample(500, FULL, GIB, unified)])).toBeNull();
    expect(evictionUnderWay([sample(0, FULL, 0), sample(500, FULL, null)])).toBeNull();
    expect(evictionUnderWay([sample(0, FULL, 0), sample(500, null, GIB)])).toBeNull();
    expect(evictionUnderWay([sample(0, FULL, GIB)])).toBeNull();
    expect(evictionUnderWay([])).toBeNull();
  });

  it('the source’s own word goes before', () => {
    expect(evictionUnderWay([sample(0, 1, null, { evictionUnderWay: true })])).toBe(true);
  });
});

describe('process rows', () => {
  const row = (change: Partial<ProcessMemory>): ProcessMemory => ({
    pid: 1,
    startTimeTicks: 5,
    name: 'p',
    deviceId: 'a',
    bytes: 10,
    gttBytes: null,
    type: null,
    source: 'drm-fdinfo',
    ...change,
  });

  it('fdinfo and kfd see the same bytes: the larger is taken, never the sum', () => {
    const merged = mergeProcesses([
      row({ bytes: 10, gttBytes: 3 }),
      row({ bytes: 900, source: 'kfd', startTimeTicks: null }),
    ]);
    expect(merged).toEqual([row({ bytes: 900, gttBytes: 3, source: 'kfd' })]);
    expect(mergeProcesses([row({ bytes: null }), row({ bytes: 4, source: 'kfd' })])[0]?.bytes).toBe(4);
  });

  it('one process on two cards stays two rows', () => {
    expect(mergeProcesses([row({}), row({ deviceId: 'b' })])).toHaveLength(2);
  });

  it('a figure above the card is unknown', () => {
    expect(plausibleRows([row({ bytes: 101 })], 'a', 100)[0]?.bytes).toBeNull();
  });
});
