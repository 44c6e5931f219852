import { describe, expect, it } from 'vitest';
import { memoryKindSignals, parseAmdSysfs } from '../../../electron/core/devices/amdgpu-sysfs.ts';
import { decideMemoryKind } from '../../../electron/core/devices/apu.ts';
import { discoverCards } from '../../../electron/core/devices/discovery.ts';
import { parseFdinfo } from '../../../electron/core/devices/fdinfo.ts';
import { parseRocmSmi } from '../../../electron/core/devices/rocm-smi.ts';
import { apuPool } from '../../../electron/core/devices/unified.ts';
import { parseAmdgpuTop } from '../../support/amdgpu-top.ts';
import { parsePart, splitCapture, sysfsCapture } from '../../support/captures.ts';
import { evidenceFiles, readEvidence } from '../../support/evidence.ts';
import { memoryTree } from '../../support/memory-tree.ts';

const KIB = 1024;

function cardIn(file: string): ReturnType<typeof parseAmdSysfs> {
  const { readText, cards } = sysfsCapture(readEvidence('amd-sysfs', file));
  return parseAmdSysfs(readText, cards[0] ?? '');
}

function memoryOf(file: string): 'discrete' | 'unified' {
  return decideMemoryKind(memoryKindSignals(cardIn(file))).memory;
}

const AMD: Readonly<Record<string, (file: string) => void>> = {
  '01-strixpoint-apu-512m.txt': (file) => {
    const card = cardIn(file);
    expect(card).toMatchObject({
      driver: 'amdgpu',
      pciAddress: '0000:c1:00.0',
      vendorId: '1002',
      deviceId: '150e',
      pciClass: '038000',
      bootVga: null,
      power: 'active',
      vramTotalBytes: 536870912,
      vramUsedBytes: 514580480,
      visibleVramTotalBytes: 536870912,
      gttTotalBytes: 16441004032,
      gttUsedBytes: 3946811392,
      busyPercent: 3,
      vramVendor: null,
    });
    expect(memoryOf(file)).toBe('unified');
    // 512 MiB + GTT; in use 514580480 + 3946811392; MemAvailable is the bound on what is free.
    const host = {
      totalBytes: 32e9,
      availableBytes: 10e9,
      freeBytes: 1e9,
      swapTotalBytes: 0,
      swapFreeBytes: 0,
    };
    expect(apuPool(card, host)).toEqual({
      totalBytes: 16977874944,
      usedBytes: 4461391872,
      freeBytes: 22290432 + 10e9,
    });
  },
  '03-rx6900xt.txt': (file) => {
    expect(cardIn(file)).toMatchObject({
      pciAddress: '0000:0c:00.0',
      vendorId: '1002',
      deviceId: '73bf',
      bootVga: true,
      vramTotalBytes: 17163091968,
      vramUsedBytes: 668274688,
      gttTotalBytes: 16786171904,
      gttUsedBytes: 62369792,
      vramVendor: 'samsung',
      busyPercent: 3,
      memBusyPercent: 0,
    });
    expect(memoryOf(file)).toBe('discrete');
  },
  '05-r7-240-si.txt': (file) => {
    expect(cardIn(file)).toMatchObject({
      pciAddress: '0000:01:00.0',
      vramTotalBytes: 2147483648,
      vramUsedBytes: 495321088,
      gttTotalBytes: 4069261312,
      busyPercent: null,
      memBusyPercent: null,
    });
    expect(memoryOf(file)).toBe('discrete');
  },
  '07-vega56-hbm.txt': (file) => {
    expect(cardIn(file)).toMatchObject({
      pciAddress: '0000:0b:00.0',
      vramTotalBytes: 8573157376,
      vramUsedBytes: 16613376,
      busyPercent: 0,
      vramVendor: 'hynix',
    });
    expect(memoryOf(file)).toBe('discrete');
  },
  '09-intel-b580-xe.txt': (file) => {
    expect(cardIn(file)).toMatchObject({
      driver: 'xe',
      pciAddress: '0000:09:00.0',
      vendorId: '8086',
      deviceId: 'e20b',
      bootVga: false,
      power: 'active',
      vramTotalBytes: null,
      vramUsedBytes: null,
      gttTotalBytes: null,
      busyPercent: null,
    });
    expect(memoryOf(file)).toBe('discrete');
  },
  '11-rocm-smi-612-rx6700xt.json': (file) => {
    expect(parseRocmSmi(readEvidence('amd-sysfs', file))).toMatchObject({
      driverVersion: '6.3.6',
      lowPower: false,
      cards: [
        {
          key: 'card0',
          name: 'Navi 22 [Radeon RX 6700/6700 XT / 6800M]',
          deviceId: '73df',
          pciAddress: '0000:07:00.0',
          vramTotalBytes: 12868124672,
          vramUsedBytes: 1572745216,
          visibleVramTotalBytes: 268435456,
          visibleVramUsedBytes: 70930432,
          gttTotalBytes: 16792432640,
          gttUsedBytes: 242036736,
          busyPercent: 0,
        },
      ],
    });
  },
  '13-rocm-smi-igpu-dgpu-csv.txt': (file) => {
    const parts = splitCapture(readEvidence('amd-sysfs', file)).map(parsePart);
    const report = parts[0]?.kind === 'rocm' ? parts[0].report : null;
    expect(report?.cards).toMatchObject([
      { key: 'card0', vramTotalBytes: 17163091968, vramUsedBytes: 692142080, deviceId: '73bf' },
      { key: 'card1', vramTotalBytes: 67108864, vramUsedBytes: 26079232, name: 'Raphael', deviceId: '164e' },
    ]);
  },
  '15-strix-halo-gtt-96g.txt': (file) => {
    expect(cardIn(file)).toMatchObject({ gttTotalBytes: 103079215104, vramTotalBytes: 4294967296 });
    expect(memoryOf(file)).toBe('unified');
  },
  '17-rocm-smi-low-power-warning.txt': (file) => {
    expect(parseRocmSmi(readEvidence('amd-sysfs', file))).toEqual({
      cards: [],
      lowPower: true,
      driverVersion: null,
    });
  },
  '19-simpledrm-card0-three-cards.txt': (file) => {
    expect(readEvidence('amd-sysfs', file)).toContain('simpledrm');
    // card0 has no PCI files; only the two PCI cards count, whatever their numbers.
    const tree = memoryTree({
      '/sys/class/drm/card0/device/uevent':
        'DRIVER=simple-framebuffer\nMODALIAS=platform:simple-framebuffer\n',
      '/sys/class/drm/card1/device/uevent': 'DRIVER=i915\nPCI_ID=8086:9A49\nPCI_SLOT_NAME=0000:00:02.0\n',
      '/sys/class/drm/card2/device/uevent': 'DRIVER=amdgpu\nPCI_ID=1002:73BF\nPCI_SLOT_NAME=0000:03:00.0\n',
      '/sys/class/drm/card2/device/mem_info_vram_total': '17163091968\n',
    });
    expect(discoverCards(tree).map(({ id, kind }) => [id, kind])).toEqual([
      ['pci:0000:00:02.0', 'intel'],
      ['pci:0000:03:00.0', 'amdgpu'],
    ]);
  },
  '21-hip-malloc-not-in-gtt-used.txt': (file) => {
    // A description only: the figures it warns about must not make memory that is taken look free.
    expect(
      splitCapture(readEvidence('amd-sysfs', file))
        .map(parsePart)
        .filter(({ kind }) => kind !== 'unknown'),
    ).toEqual([]);
    const taken = 51.75 * 1024 ** 3;
    const host = {
      totalBytes: 64 * 1024 ** 3,
      availableBytes: 64 * 1024 ** 3 - taken,
      freeBytes: 0,
      swapTotalBytes: 0,
      swapFreeBytes: 0,
    };
    const parts = {
      vramTotalBytes: 512 * 1024 ** 2,
      vramUsedBytes: 0,
      gttTotalBytes: 60 * 1024 ** 3,
      gttUsedBytes: 0,
    };
    expect(apuPool(parts, host).freeBytes).toBe(512 * 1024 ** 2 + 12.25 * 1024 ** 3);
  },
  '23-amdgpu-top-raphael-igpu.json': (file) => {
    expect(parseAmdgpuTop(readEvidence('amd-sysfs', file))).toMatchObject([
      {
        name: 'AMD Radeon Graphics',
        vramTotalBytes: 536870912,
        vramUsedBytes: 482959360,
        gttTotalBytes: 16360796160,
        gttUsedBytes: 975273984,
        fdinfoVramBytes: 299 * 1024 ** 2,
        fdinfoGttBytes: 917 * 1024 ** 2,
      },
    ]);
  },
  '25-rocm-smi-marimo-csv-json.txt': (file) => {
    expect(parseRocmSmi(readEvidence('amd-sysfs', file)).cards).toMatchObject([
      {
        key: 'card0',
        name: 'Radeon RX 7900 XT',
        deviceId: '744c',
        vramTotalBytes: 21458059264,
        vramUsedBytes: 27856896,
        busyPercent: 0,
      },
    ]);
  },
};

const FDINFO: Readonly<Record<string, (file: string) => void>> = {
  '01-amdgpu-old-format.txt': (file) => {
    expect(parseFdinfo(readEvidence('fdinfo', file))).toEqual({
      driver: 'amdgpu',
      pciAddress: '0000:08:00.0',
      clientId: 217,
      device: 'gpu',
      vramBytes: 2068 * KIB,
      gttBytes: 8192 * KIB,
      sharedVramBytes: null,
      evictedVramBytes: null,
      usedEngine: true,
      family: 'memory',
    });
  },
  '03-amdgpu-new-format.txt': (file) => {
    expect(parseFdinfo(readEvidence('fdinfo', file))).toEqual({
      driver: 'amdgpu',
      pciAddress: '0000:04:00.0',
      clientId: 4,
      device: 'gpu',
      vramBytes: 44564 * KIB,
      gttBytes: 2392 * KIB,
      sharedVramBytes: 31952 * KIB,
      evictedVramBytes: 0,
      usedEngine: true,
      family: 'resident',
    });
  },
  '05-xe-full.txt': (file) => {
    expect(parseFdinfo(readEvidence('fdinfo', file))).toMatchObject({
      driver: 'xe',
      pciAddress: '0000:03:00.0',
      clientId: 3,
      device: 'gpu',
      vramBytes: 23992 * KIB,
      gttBytes: 192 * KIB,
      sharedVramBytes: 16 * KIB * KIB,
      usedEngine: true,
    });
  },
  '07-amdxdna-npu-no-units.txt': (file) => {
    expect(parseFdinfo(readEvidence('fdinfo', file))).toMatchObject({
      device: 'accel',
      clientId: 76,
      vramBytes: null,
    });
  },
  '09-fork-dup-same-client.txt': (file) => {
    expect(parseFdinfo(readEvidence('fdinfo', file))).toBeNull();
  },
  '11-amdgpu-app-apu-no-vram-key.txt': (file) => {
    expect(parseFdinfo(readEvidence('fdinfo', file))).toBeNull();
  },
};

for (const [folder, checks] of [
  ['amd-sysfs', AMD],
  ['fdinfo', FDINFO],
] as const) {
  const files = evidenceFiles(folder);
  if (files.length === 0) continue;
  describe(`saved ${folder} outputs give the figures that stand in them`, () => {
    for (const [file, check] of Object.entries(checks)) {
      if (files.includes(file)) it(file, () => check(file));
    }
    // Files added beside these are read as well: whatever they hold, use is never above the total.
    for (const file of files.filter((name) => checks[name] === undefined)) {
      it(`${file} (not worked out by hand): used is within total`, () => {
        const card = parseAmdSysfs(sysfsCapture(readEvidence(folder, file)).readText, '/sys/class/drm/card1');
        expect(card.vramUsedBytes ?? 0).toBeLessThanOrEqual(card.vramTotalBytes ?? Number.POSITIVE_INFINITY);
        for (const rocm of parseRocmSmi(readEvidence(folder, file)).cards) {
          expect(rocm.vramUsedBytes ?? 0).toBeLessThanOrEqual(
            rocm.vramTotalBytes ?? Number.POSITIVE_INFINITY,
          );
        }
      });
    }
  });
}

describe('a saved sysfs tree', () => {
  it('is read path by path, with absent files as absent', () => {
    const text = [
      '== /sys/class/drm/card2/device/uevent',
      'DRIVER=amdgpu',
      'PCI_SLOT_NAME=0000:0a:00.0',
      '/sys/class/drm/card2/device/mem_info_vram_total: 8589934592',
      '/sys/class/drm/card2/device/mem_info_vram_used: 1073741824',
      '/sys/class/drm/card2/device/boot_vga: <file absent in the snapshot>',
    ].join('\n');
    const { readText, cards } = sysfsCapture(text);
    expect(cards).toEqual(['/sys/class/drm/card2']);
    expect(parseAmdSysfs(readText, '/sys/class/drm/card2')).toMatchObject({
      pciAddress: '0000:0a:00.0',
      vramTotalBytes: 8589934592,
      vramUsedBytes: 1073741824,
      gttTotalBytes: null,
      bootVga: null,
    });
  });
});
