import type { DeviceSample } from '../../electron/core/devices/sample.ts';

const GB = 1_000_000_000;

/** A card of 34 GB that is read and well, but for what a test changes. */
export function deviceSample(change: Partial<DeviceSample> = {}): DeviceSample {
  return {
    id: 'sim:0',
    kind: 'simulated',
    memory: 'discrete',
    name: 'Card',
    pciAddress: null,
    drivesDisplay: true,
    power: 'active',
    totalBytes: 34 * GB,
    usedBytes: 24 * GB,
    freeBytes: 10 * GB,
    gttTotalBytes: null,
    gttUsedBytes: 0,
    hostAvailableBytes: null,
    busyPercent: null,
    source: 'simulated',
    takenAtMs: 0,
    periodMs: 500,
    notes: [],
    error: null,
    ...change,
  };
}
