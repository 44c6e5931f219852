import { describe, expect, it } from 'vitest';
import { amdgpuReader } from '../../../electron/core/devices/amdgpu-reader.ts';
import { parseAmdSysfs } from '../../../electron/core/devices/amdgpu-sysfs.ts';
import { discoverAt, discoverCards, tegraModel } from '../../../electron/core/devices/discovery.ts';
import { drivesDisplay, readConnectors } from '../../../electron/core/devices/display.ts';
import { kfdNodeOf, readKfdUse } from '../../../electron/core/devices/kfd.ts';
import { cardName, pciName } from '../../../electron/core/devices/pci-names.ts';
import type { CardFacts, Reading } from '../../../electron/core/devices/reader.ts';
import { parseRocmSmi } from '../../../electron/core/devices/rocm-smi.ts';
import type { DeviceSample } from '../../../electron/core/devices/sample.ts';
import type { SysTree } from '../../../electron/core/devices/sysfs.ts';
import { parseAmdgpuTop } from '../../support/amdgpu-top.ts';
import { memoryTree } from '../../support/memory-tree.ts';

const CARD = '/sys/class/drm/card1';
const DEVICE = `${CARD}/device`;

function cardFiles(change: Readonly<Record<string, string | null>> = {}): Record<string, string | null> {
  return {
    [`${DEVICE}/uevent`]: 'DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:2d:00.0\n',
    [`${DEVICE}/vendor`]: '0x1002\n',
    [`${DEVICE}/device`]: '0x744c\n',
    [`${DEVICE}/boot_vga`]: '1\n',
    [`${DEVICE}/power/runtime_status`]: 'active\n',
    [`${DEVICE}/power/control`]: 'on\n',
    [`${DEVICE}/mem_info_vram_total`]: '20000000000\n',
    [`${DEVICE}/mem_info_vram_used`]: '5000000000\n',
    [`${DEVICE}/mem_info_gtt_total`]: '30000000000\n',
    [`${DEVICE}/mem_info_gtt_used`]: '100000000\n',
    [`${DEVICE}/mem_info_vram_vendor`]: 'samsung\n',
    [`${DEVICE}/gpu_busy_percent`]: '17\n',
    [`${CARD}/card1-DP-1/status`]: 'connected\n',
    [`${CARD}/card1-DP-1/enabled`]: 'enabled\n',
    ...change,
  };
}

function readOnce(
  tree: SysTree,
  openCards: ReadonlySet<string> | null = new Set(),
  known?: CardFacts,
): DeviceSample {
  const card = known ?? discoverCards(tree)[0];
  if (card === undefined) throw new Error('no card');
  const reading = amdgpuReader(tree, card, 500).read({ nowMs: 7, processes: false, openCards }) as Reading;
  const sample = reading.devices[0];
  if (sample === undefined) throw new Error('no sample');
  return sample;
}

describe('an amdgpu card', () => {
  it('is keyed by its PCI address and read in bytes', () => {
    expect(readOnce(memoryTree(cardFiles()))).toMatchObject({
      id: 'pci:0000:2d:00.0',
      memory: 'discrete',
      drivesDisplay: true,
      power: 'active',
      totalBytes: 20e9,
      usedBytes: 5e9,
      freeBytes: 15e9,
      gttUsedBytes: 1e8,
      busyPercent: 17,
      error: null,
      takenAtMs: 7,
    });
  });

  it.each([
    ['permission denied', null],
    ['an empty read', ''],
    ['an error text', 'Invalid argument\n'],
    ['more than the total', '99999999999999\n'],
  ])('%s leaves the use unknown, never 0', (_, text) => {
    const sample = readOnce(memoryTree(cardFiles({ [`${DEVICE}/mem_info_vram_used`]: text })));
    expect(sample).toMatchObject({ usedBytes: null, freeBytes: null, totalBytes: 20e9 });
    expect(sample.notes.join()).toContain('did not give');
  });

  it('that vanishes mid-run has an error that says so, and no figures', () => {
    const files = cardFiles();
    const tree = memoryTree(files);
    const card = discoverCards(tree)[0];
    for (const path of Object.keys(files)) delete files[path];
    const sample = readOnce(tree, null, card);
    expect(sample).toMatchObject({ totalBytes: null, usedBytes: null, freeBytes: null });
    expect(sample.error).toContain('gone');
  });

  it('whose driver answers nothing any more has an error', () => {
    const files = cardFiles();
    const tree = memoryTree(files);
    const card = discoverCards(tree)[0];
    for (const path of Object.keys(files)) if (path.includes('mem_info')) files[path] = null;
    expect(readOnce(tree, null, card).error).toContain('does not answer');
  });

  it('that is suspended is not touched beyond its power state', () => {
    const files = cardFiles();
    const tree = memoryTree(files);
    const card = discoverCards(tree)[0];
    files[`${DEVICE}/power/runtime_status`] = 'suspended\n';
    tree.reads.length = 0;
    expect(readOnce(tree, null, card)).toMatchObject({
      power: 'suspended',
      totalBytes: null,
      usedBytes: null,
      error: null,
    });
    expect(tree.reads).toEqual([`${DEVICE}/power/runtime_status`]);
  });

  it('that may sleep is not asked how busy it is while nobody uses it', () => {
    const files = cardFiles({
      [`${DEVICE}/power/control`]: 'auto\n',
      [`${CARD}/card1-DP-1/status`]: 'disconnected\n',
      [`${CARD}/card1-DP-1/enabled`]: 'disabled\n',
    });
    const tree = memoryTree(files);
    expect(readOnce(tree).busyPercent).toBeNull();
    expect(tree.reads.filter((path) => path.includes('busy_percent') && !path.includes('mem_busy'))).toEqual(
      [],
    );
    expect(readOnce(tree, new Set(['0000:2d:00.0'])).busyPercent).toBe(17);
  });

  it('that is an APU counts GTT and is bounded by MemAvailable', () => {
    const tree = memoryTree(
      cardFiles({
        [`${DEVICE}/uevent`]: 'DRIVER=amdgpu\nPCI_ID=1002:1586\nPCI_SLOT_NAME=0000:c5:00.0\n',
        [`${DEVICE}/device`]: '0x1586\n',
        [`${DEVICE}/mem_info_vram_vendor`]: null,
        [`${DEVICE}/mem_info_vram_total`]: '2000000000\n',
        [`${DEVICE}/mem_info_vram_used`]: '1990000000\n',
        '/proc/meminfo': 'MemTotal:       60000000 kB\nMemAvailable:   10000000 kB\n',
      }),
    );
    expect(readOnce(tree)).toMatchObject({
      memory: 'unified',
      totalBytes: 32e9,
      usedBytes: 2.09e9,
      freeBytes: 10_000_000 + 10_000_000 * 1024,
      hostAvailableBytes: 10_000_000 * 1024,
    });
  });

  it('a card without a card node is asked for its power in its PCI device’s own folder', () => {
    const path = '/sys/bus/pci/devices/0000:01:00.0';
    const files = { [`${path}/device`]: '0x2704\n', [`${path}/power/runtime_status`]: 'suspended\n' };
    expect(parseAmdSysfs(memoryTree(files).readText, path).power).toBe('suspended');
  });

  it('a power state is read without runtime_status too', () => {
    const tree = memoryTree({ [`${DEVICE}/power_state`]: 'D3cold\n' });
    expect(parseAmdSysfs(tree.readText, CARD).power).toBe('suspended');
    expect(parseAmdSysfs(memoryTree({}).readText, CARD).power).toBe('unknown');
  });
});

describe('discovery', () => {
  it('leaves out nodes that no model can live on', () => {
    const tree = memoryTree({
      '/sys/class/drm/card0/device/uevent':
        'DRIVER=virtio-pci\nPCI_ID=1AF4:1050\nPCI_SLOT_NAME=0000:00:01.0\n',
      '/sys/class/drm/card1/device/uevent': 'DRIVER=simple-framebuffer\n',
      '/sys/class/drm/renderD128/device/uevent': 'DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n',
      '/sys/class/drm/version': 'drm 1.1.0\n',
    });
    expect(discoverCards(tree)).toEqual([]);
  });

  it('finds NVIDIA cards that have no card node, and tells integrated Intel from discrete', () => {
    const tree = memoryTree({
      '/sys/bus/pci/drivers/nvidia/0000:01:00.0': '',
      '/sys/bus/pci/drivers/nvidia/bind': '',
      '/sys/bus/pci/devices/0000:01:00.0/power/control': 'auto\n',
      '/proc/driver/nvidia/gpus/0000:01:00.0/information':
        'Model: \t\t NVIDIA RTX A500\nDevice Minor: \t 0\n',
      '/sys/class/drm/card0/device/uevent': 'DRIVER=i915\nPCI_ID=8086:46A6\nPCI_SLOT_NAME=0000:00:02.0\n',
      '/sys/class/drm/card2/device/uevent': 'DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:09:00.0\n',
    });
    expect(
      discoverCards(tree).map(({ id, kind, memory, maySuspend }) => [id, kind, memory, maySuspend]),
    ).toEqual([
      ['pci:0000:00:02.0', 'intel', 'unified', false],
      ['pci:0000:01:00.0', 'nvidia', 'discrete', true],
      ['pci:0000:09:00.0', 'intel', 'discrete', false],
    ]);
    expect(discoverCards(tree)[1]?.name).toBe('NVIDIA RTX A500');
  });

  it('sensors that can’t be read say nothing of an APU, and those that lack its rail speak against one', () => {
    const signs = (label: string | null): string | undefined =>
      discoverCards(
        memoryTree(
          cardFiles({
            [`${DEVICE}/uevent`]: 'DRIVER=amdgpu\nPCI_ID=1002:FFF0\nPCI_SLOT_NAME=0000:2d:00.0\n',
            [`${DEVICE}/device`]: '0xfff0\n',
            [`${DEVICE}/mem_info_vram_vendor`]: null,
            [`${DEVICE}/mem_info_vram_total`]: String(512 * 1024 ** 2),
            [`${DEVICE}/mem_info_gtt_total`]: String(2 * 1024 ** 3),
            [`${DEVICE}/hwmon/hwmon3/in0_label`]: label,
          }),
        ),
      )[0]?.memory;
    expect(signs(null)).toBe('unified');
    expect(signs('vddgfx\n')).toBe('discrete');
    expect(signs('vddnb\n')).toBe('unified');
  });

  it('a setting overrides what the memory is, and a path in the settings may name the device folder', () => {
    const tree = memoryTree(cardFiles());
    expect(discoverAt(tree, DEVICE, { 'pci:0000:2d:00.0': 'unified' })).toMatchObject({
      path: CARD,
      memory: 'unified',
    });
    expect(discoverAt(tree, '/sys/class/drm/card9/device')).toBeNull();
  });

  it('a Jetson is told by its device tree or its release file', () => {
    const files = {
      '/proc/device-tree/compatible': 'nvidia,p3767\0nvidia,tegra234\0',
      '/proc/device-tree/model': 'Orin Nano\0',
    };
    expect(tegraModel(memoryTree(files))).toBe('Orin Nano');
    expect(tegraModel(memoryTree({ '/etc/nv_tegra_release': '# R36\n' }))).toBe('NVIDIA Jetson');
    expect(tegraModel(memoryTree({}))).toBeNull();
  });

  it('names come from pci.ids, and are the ids where that has none', () => {
    const ids =
      '# list\n1001  Other\n\t744c  Wrong\n1002  Maker\n\t744b  Before\n\t744c  Navi 99 [Radeon Test]\n\t\t1002 0001  Sub\n1003  Next\n\t744d  Late\n';
    expect(pciName(ids, '1002', '744c')).toBe('Navi 99 [Radeon Test]');
    expect(pciName(ids, '1002', '744d')).toBeNull();
    expect(cardName((path) => (path.includes('misc') ? ids : null), '1002', '744c')).toBe('AMD Radeon Test');
    expect(cardName(() => null, '1002', '73bf')).toBe('AMD GPU 1002:73bf');
  });
});

describe('which card drives a display', () => {
  const hint = { bootVga: null, kernelModesetting: true };
  const connector = (connected: boolean | null, enabled: boolean | null) => ({
    name: 'DP-1',
    connected,
    enabled,
  });

  it('needs a monitor on it, not only a plug', () => {
    expect(drivesDisplay([connector(true, true)], hint)).toBe(true);
    expect(drivesDisplay([connector(true, false)], hint)).toBe(false);
    expect(drivesDisplay([connector(true, null)], hint)).toBe(true);
    expect(drivesDisplay([connector(false, false)], hint)).toBe(false);
  });

  it('a blanked monitor of the boot display still counts', () => {
    expect(drivesDisplay([connector(true, false)], { ...hint, bootVga: true })).toBe(true);
  });

  it('is unknown where nothing can be read', () => {
    expect(drivesDisplay([connector(null, null)], hint)).toBeNull();
    expect(drivesDisplay([], { bootVga: true, kernelModesetting: false })).toBeNull();
    expect(drivesDisplay([], hint)).toBe(false);
  });

  it('writeback connectors are no monitors', () => {
    const tree = memoryTree({
      [`${CARD}/card1-Writeback-1/status`]: 'connected\n',
      [`${CARD}/card1-HDMI-A-1/status`]: 'disconnected\n',
    });
    expect(readConnectors(tree, CARD).map(({ name }) => name)).toEqual(['HDMI-A-1']);
  });
});

describe('kfd', () => {
  it('maps a node to its PCI address', () => {
    const node = kfdNodeOf('51545\n', 'cpu_cores_count 0\nsimd_count 160\nlocation_id 11521\ndomain 0\n');
    expect(node).toEqual({ gpuId: 51545, pciAddress: '0000:2d:00.1', sharesNodeWithCpu: false });
    expect(kfdNodeOf('0\n', 'cpu_cores_count 16\n')).toBeNull();
    expect(kfdNodeOf('7\n', 'cpu_cores_count 16\nsimd_count 4\n')).toMatchObject({
      sharesNodeWithCpu: true,
      pciAddress: null,
    });
  });

  it('reads each process’s VRAM, and leaves out what can’t be read', () => {
    const base = '/sys/class/kfd/kfd/proc';
    const tree = memoryTree({
      [`${base}/40/vram_51545`]: '123456\n',
      [`${base}/40/sdma_51545`]: '9\n',
      [`${base}/41/vram_51545`]: null,
    });
    expect(readKfdUse(tree)).toEqual([{ pid: 40, gpuId: 51545, bytes: 123456 }]);
  });
});

describe('rocm-smi and amdgpu_top', () => {
  it('warnings around the answer are no part of it', () => {
    const json =
      '{"card0": {"VRAM Total Memory (B)": "100", "VRAM Total Used Memory (B)": "N/A", "Card series": "X"}}';
    const report = parseRocmSmi(
      `WARNING: AMD GPU device(s) is/are in a low-power state. {check}\n\n${json}\nERROR: none\n`,
    );
    expect(report.lowPower).toBe(true);
    expect(report.cards).toMatchObject([{ name: 'X', vramTotalBytes: 100, vramUsedBytes: null }]);
  });

  it('reads the plain lines too', () => {
    const text =
      'GPU[0]\t\t: VRAM Total Memory (B): 4096\nGPU[0]\t\t: VRAM Total Used Memory (B): 12\nGPU[1]\t\t: GPU use (%): 5\n';
    expect(parseRocmSmi(text).cards).toMatchObject([
      { key: 'card0', vramTotalBytes: 4096, vramUsedBytes: 12 },
      { key: 'card1', busyPercent: 5, vramTotalBytes: null },
    ]);
  });

  it('a board’s own id, which releases before 6 call the model, is not the chip’s', () => {
    const card = (keys: Readonly<Record<string, string>>) =>
      parseRocmSmi(JSON.stringify({ card0: keys })).cards;
    expect(card({ 'GPU ID': '0x73df', 'Card series': '0x1002', 'Card model': '0x1002' })).toMatchObject([
      { deviceId: '73df', name: null },
    ]);
    expect(card({ 'GPU ID': '0x1586', 'Card series': 'Strix Halo', 'Card model': '0x0c34' })).toMatchObject([
      { deviceId: '1586', name: 'Strix Halo' },
    ]);
    expect(card({ 'Card Series': 'Navi 31', 'Card Model': '0x744c' })).toMatchObject([{ deviceId: '744c' }]);
  });

  it('a vendor with a comma does not shift the columns after it', () => {
    const text = 'device,Card Series,Card Vendor,VRAM Total Memory (B)\ncard0,Navi, Inc. X,Y,77\n';
    expect(parseRocmSmi(text).cards).toMatchObject([{ vramTotalBytes: 77 }]);
  });

  it('amdgpu_top: one line of its stream, with the processes it lists', () => {
    const line = JSON.stringify({
      devices: [
        {
          DeviceName: 'A',
          Info: { PCI: '0000:03:00.0' },
          VRAM: {
            'Total VRAM': { unit: 'MiB', value: 10 },
            'Total VRAM Usage': { unit: 'MiB', value: null },
          },
          fdinfo: {
            55: {
              name: 'game',
              usage: { usage: { VRAM: { unit: 'MiB', value: 3 }, GTT: { unit: 'KiB', value: 2 } } },
            },
          },
        },
      ],
    });
    expect(parseAmdgpuTop(line)).toMatchObject([
      {
        pciAddress: '0000:03:00.0',
        vramTotalBytes: 10 * 1024 ** 2,
        vramUsedBytes: null,
        processes: [{ pid: 55, name: 'game', vramBytes: 3 * 1024 ** 2, gttBytes: 2048 }],
      },
    ]);
  });
});
