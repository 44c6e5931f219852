import { describe, expect, it } from 'vitest';
import { compareFields, type NvmlView } from '../../../build/gpu-check/compare.ts';
import { NO_GPU_FIGURES } from '../../../electron/core/devices/nvidia.ts';

const MIB = 1024 ** 2;
const VIEW: NvmlView = {
  pciAddress: '0000:01:00.0',
  name: 'GeForce X',
  totalBytes: 24_564 * MIB,
  reservedBytes: 364 * MIB,
  usedBytes: 4_000 * MIB + 5_000,
  freeBytes: 20_200 * MIB - 5_000,
  busyPercent: 3,
  displayActive: true,
  migEnabled: null,
};
const SMI = {
  ...NO_GPU_FIGURES,
  ...VIEW,
  name: 'NVIDIA GeForce X',
  usedBytes: 4_000 * MIB,
  freeBytes: 20_200 * MIB,
};

function differing(before: NvmlView, after: NvmlView, smi: typeof SMI): readonly string[] {
  return compareFields(before, after, smi)
    .filter(({ agrees }) => !agrees)
    .map(({ field }) => field);
}

describe('NVML against nvidia-smi', () => {
  it('agrees over whole MiB, the vendor’s name, and a card that can’t be split', () => {
    expect(differing(VIEW, VIEW, SMI)).toEqual([]);
    expect(differing({ ...VIEW, migEnabled: false }, VIEW, SMI)).toEqual([]);
  });

  it('lets a figure lie between what was read before and after', () => {
    const later = { ...VIEW, usedBytes: 6_000 * MIB };
    expect(differing(VIEW, later, { ...SMI, usedBytes: 5_000 * MIB })).toEqual([]);
    expect(differing(VIEW, later, { ...SMI, usedBytes: 6_003 * MIB })).toEqual(['usedBytes']);
  });

  it('tells every field that differs, and unknown from 0', () => {
    expect(differing(VIEW, VIEW, { ...SMI, usedBytes: 4_003 * MIB })).toEqual(['usedBytes']);
    expect(differing({ ...VIEW, reservedBytes: 0 }, { ...VIEW, reservedBytes: 0 }, SMI)).toEqual([
      'reservedBytes',
    ]);
    const unknown = { ...VIEW, freeBytes: null };
    expect(differing(unknown, unknown, SMI)).toEqual(['freeBytes']);
    expect(differing(VIEW, VIEW, { ...SMI, name: 'NVIDIA GeForce Y' })).toEqual(['name']);
  });
});
