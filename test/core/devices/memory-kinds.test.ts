import { describe, expect, it } from 'vitest';
import { decideMemoryKind, type MemoryKindSignals } from '../../../electron/core/devices/apu.ts';
import { parseMemInfo } from '../../../electron/core/devices/meminfo.ts';
import {
  parseBytes,
  parsePciAddress,
  parsePercent,
  plausibleBytes,
} from '../../../electron/core/devices/quantity.ts';
import { apuPool, hostPool } from '../../../electron/core/devices/unified.ts';

const GIB = 1024 ** 3;
const UNKNOWN: MemoryKindSignals = {
  vendorId: '1002',
  deviceId: null,
  pciClass: null,
  vramTotalBytes: null,
  visibleVramTotalBytes: null,
  gttTotalBytes: null,
  vramVendor: null,
  hasMemBusy: null,
  hasNorthBridgeRail: null,
  sharesNodeWithCpu: null,
};
const kind = (signals: Partial<MemoryKindSignals>): string =>
  decideMemoryKind({ ...UNKNOWN, ...signals }).memory;

describe('whether a card’s memory is its own', () => {
  it('GTT larger than VRAM does not make a discrete card an APU', () => {
    expect(kind({ vramTotalBytes: 2 * GIB, visibleVramTotalBytes: GIB / 4, gttTotalBytes: 48 * GIB })).toBe(
      'discrete',
    );
    expect(kind({ vramTotalBytes: 4 * GIB, gttTotalBytes: 40 * GIB, vramVendor: 'micron' })).toBe('discrete');
  });

  it('a carve-out of 96 GB does not make an APU a discrete card', () => {
    const halo = { vramTotalBytes: 96 * GIB, visibleVramTotalBytes: 96 * GIB, gttTotalBytes: 16 * GIB };
    expect(kind({ ...halo, deviceId: '1586' })).toBe('unified');
    expect(kind({ ...halo, sharesNodeWithCpu: true })).toBe('unified');
    expect(kind({ ...halo, hasNorthBridgeRail: true })).toBe('unified');
  });

  it('an APU of an unknown id is told by its small carve-out', () => {
    expect(
      kind({
        deviceId: 'fff0',
        vramTotalBytes: GIB / 2,
        visibleVramTotalBytes: GIB / 2,
        gttTotalBytes: 16 * GIB,
      }),
    ).toBe('unified');
  });

  it.each<[string, Partial<MemoryKindSignals>]>([
    [
      'Instinct MI210',
      {
        deviceId: '740f',
        pciClass: '038000',
        vramTotalBytes: 64 * GIB,
        visibleVramTotalBytes: 64 * GIB,
        gttTotalBytes: 515 * GIB,
        sharesNodeWithCpu: false,
      },
    ],
    [
      'an unknown accelerator that the compute driver lists apart from the CPU',
      { pciClass: '038000', vramTotalBytes: 64 * GIB, gttTotalBytes: 515 * GIB, sharesNodeWithCpu: false },
    ],
    [
      'RX 6400 with a large BAR',
      {
        deviceId: '743f',
        pciClass: '030000',
        vramTotalBytes: 4278190080,
        visibleVramTotalBytes: 4278190080,
        gttTotalBytes: 34 * GIB,
      },
    ],
    [
      'an unknown card that keeps some VRAM for its firmware',
      { vramTotalBytes: 4080 * 1024 ** 2, gttTotalBytes: 34 * GIB },
    ],
    [
      'an unknown card whose sensors lack the north bridge',
      { vramTotalBytes: 4 * GIB, gttTotalBytes: 34 * GIB, hasNorthBridgeRail: false },
    ],
    [
      'RX 9070 XT',
      {
        deviceId: '7550',
        vramTotalBytes: 16 * GIB,
        visibleVramTotalBytes: 16 * GIB,
        gttTotalBytes: 200 * GIB,
      },
    ],
    [
      'MI300X',
      { deviceId: '74a1', pciClass: '038000', vramTotalBytes: 192 * GIB, gttTotalBytes: 2000 * GIB },
    ],
  ])('%s has its own', (_, signals) => {
    expect(kind(signals)).toBe('discrete');
  });

  it.each<[string, Partial<MemoryKindSignals>]>([
    ['Strix Halo', { deviceId: '1586', vramTotalBytes: 96 * GIB, gttTotalBytes: 16 * GIB }],
    ['Strix Point', { deviceId: '150e', vramTotalBytes: GIB / 2, gttTotalBytes: 15 * GIB }],
    ['Raphael', { deviceId: '164e', vramTotalBytes: GIB / 2, gttTotalBytes: 31 * GIB }],
    ['Phoenix', { deviceId: '15bf', vramTotalBytes: 4 * GIB, gttTotalBytes: 14 * GIB }],
    ['Steam Deck', { deviceId: '163f', vramTotalBytes: GIB, gttTotalBytes: 8 * GIB, vramVendor: 'samsung' }],
    ['MI300A', { deviceId: '74a0', vramTotalBytes: 128 * GIB, vramVendor: 'hynix', hasMemBusy: true }],
  ])('%s shares the system’s, also where the compute driver lists it apart', (_, signals) => {
    expect(kind({ ...signals, sharesNodeWithCpu: false })).toBe('unified');
    expect(kind({ ...signals, sharesNodeWithCpu: true })).toBe('unified');
  });

  it('a class shared with accelerators does not decide alone, and nothing known is discrete', () => {
    expect(
      kind({ pciClass: '038000', vramTotalBytes: 32 * GIB - 1, gttTotalBytes: 64 * GIB, hasMemBusy: true }),
    ).toBe('discrete');
    expect(kind({})).toBe('discrete');
  });

  it('a setting overrides, and says so', () => {
    expect(decideMemoryKind({ ...UNKNOWN, deviceId: '1586' }, 'discrete')).toMatchObject({
      memory: 'discrete',
      overridden: true,
    });
  });

  it('names the strongest reason first', () => {
    const decided = decideMemoryKind({ ...UNKNOWN, deviceId: '150e', pciClass: '038000' });
    expect(decided.reasons[0]).toContain('150e');
  });
});

describe('pools that are shared with the system', () => {
  const host = (
    totalBytes: number | null,
    availableBytes: number | null,
  ): ReturnType<typeof parseMemInfo> => ({
    totalBytes,
    availableBytes,
    freeBytes: null,
    swapTotalBytes: null,
    swapFreeBytes: null,
  });

  it('a full carve-out beside free GTT is no pressure', () => {
    const parts = {
      vramTotalBytes: 2 * GIB,
      vramUsedBytes: 1.98 * GIB,
      gttTotalBytes: 98 * GIB,
      gttUsedBytes: 31 * GIB,
    };
    const pool = apuPool(parts, host(125 * GIB, 80 * GIB));
    expect(pool.totalBytes).toBe(100 * GIB);
    expect((pool.usedBytes ?? 0) / (pool.totalBytes ?? 1)).toBeCloseTo(0.33, 2);
    expect(pool.freeBytes).toBeCloseTo(67.02 * GIB, -3);
  });

  it('GTT is only as free as the system’s memory', () => {
    const parts = { vramTotalBytes: GIB, vramUsedBytes: 0, gttTotalBytes: 98 * GIB, gttUsedBytes: 0 };
    expect(apuPool(parts, host(125 * GIB, 3 * GIB)).freeBytes).toBe(4 * GIB);
    expect(apuPool({ ...parts, gttTotalBytes: 500 * GIB }, host(125 * GIB, 3 * GIB)).totalBytes).toBe(
      126 * GIB,
    );
  });

  it('an unknown part makes the sum unknown', () => {
    const parts = { vramTotalBytes: GIB, vramUsedBytes: null, gttTotalBytes: GIB, gttUsedBytes: 0 };
    expect(apuPool(parts, host(8 * GIB, GIB))).toEqual({
      totalBytes: 2 * GIB,
      usedBytes: null,
      freeBytes: null,
    });
  });

  it('without memory of its own it is MemTotal and MemAvailable', () => {
    expect(hostPool(host(100, 40))).toEqual({ totalBytes: 100, usedBytes: 60, freeBytes: 40 });
    expect(hostPool(host(100, null))).toEqual({ totalBytes: 100, usedBytes: null, freeBytes: null });
  });

  it('a line of meminfo that was cut is unknown', () => {
    const text = 'MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000';
    expect(parseMemInfo(text)).toMatchObject({ totalBytes: 16000000 * 1024, availableBytes: null });
  });
});

describe('figures as drivers print them', () => {
  it('reads units, and nothing else', () => {
    expect(parseBytes('12 KiB')).toBe(12288);
    expect(parseBytes('7', 1024)).toBe(7168);
    expect(['-1', 'N/A', '1 XB', '', '12 KiB x'].map((text) => parseBytes(text))).toEqual([
      null,
      null,
      null,
      null,
      null,
    ]);
  });

  it('drops sentinels and figures above the device', () => {
    expect(parseBytes('17179869184 GiB')).toBeNull();
    expect(plausibleBytes(2 ** 64 - 1)).toBeNull();
    expect(plausibleBytes(11, 10)).toBeNull();
    expect(parsePercent('101 %')).toBeNull();
  });

  it('one spelling of PCI addresses', () => {
    expect(['00000000:0C:00.0', '0000:0c:00.0', '0c:00.0', 'N/A'].map(parsePciAddress)).toEqual([
      '0000:0c:00.0',
      '0000:0c:00.0',
      '0000:0c:00.0',
      null,
    ]);
    expect(parsePciAddress('00010000:01:00.0')).toBe('10000:01:00.0');
  });
});
