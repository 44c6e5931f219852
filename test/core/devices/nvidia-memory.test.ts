import { describe, expect, it } from 'vitest';
import {
  decideNvidiaMemory,
  isTegraHost,
  memoryAnswerOf,
  type NvidiaMemoryFacts,
} from '../../../electron/core/devices/nvidia-memory.ts';
import { nvidiaSmiReader } from '../../../electron/core/devices/nvidia-smi-reader.ts';
import type { Reading } from '../../../electron/core/devices/reader.ts';
import { memoryTree } from '../../support/memory-tree.ts';

const MIB = 1024 ** 2;
const NAMES = { name: () => null, startTimeTicks: () => null };
const MEMINFO = { '/proc/meminfo': 'MemTotal: 1000 kB\nMemAvailable: 400 kB\n' };

function xml(name: string, words: readonly [string, string, string], more = ''): string {
  const [total, used, free] = words;
  return `<nvidia_smi_log><gpu id="00000000:01:00.0"><product_name>${name}</product_name>${more}
    <fb_memory_usage><total>${total}</total><used>${used}</used><free>${free}</free></fb_memory_usage></gpu></nvidia_smi_log>`;
}

async function readXml(output: string, files: Readonly<Record<string, string>> = {}): Promise<Reading> {
  const run = async () => ({ exitCode: 0, output });
  const reader = nvidiaSmiReader(memoryTree({ ...MEMINFO, ...files }), [], run, NAMES);
  const request = { nowMs: 0, processes: true, openCards: null };
  await reader.read(request);
  await new Promise((resolve) => setImmediate(resolve));
  return reader.read(request);
}

describe('a discrete NVIDIA card whose memory can’t be read', () => {
  it.each([
    ['Insufficient Permissions', 'nvidia-no-permission', /group/],
    ['GPU is lost', 'nvidia-gpu-lost', /restart/],
    ['GPU requires reset', 'nvidia-reset-required', /gpu-reset/],
    ['Unknown Error', 'nvidia-memory-unreadable', /dmesg/],
    ['ERR!', 'nvidia-memory-unreadable', /dmesg/],
    ['N/A', 'nvidia-memory-unsupported', /memory: unified/],
    ['Not Supported', 'nvidia-memory-unsupported', /memory: unified/],
  ])('%s is unknown with advice, never the machine’s RAM', async (word, code, advice) => {
    const { devices, troubles } = await readXml(xml('NVIDIA GeForce RTX 3080', [word, word, word]));
    expect(devices).toMatchObject([
      {
        kind: 'nvidia',
        memory: 'discrete',
        totalBytes: null,
        usedBytes: null,
        freeBytes: null,
        hostAvailableBytes: null,
      },
    ]);
    expect(devices[0]?.error).toMatch(advice);
    expect(devices[0]?.error).toMatch(/\.$/);
    expect(troubles.map((trouble) => trouble.code)).toContain(code);
  });

  it('split by MIG it takes its instances’ figures, each instance once', async () => {
    const row = (id: number, total: number, used: number): string =>
      `<mig_device><gpu_instance_id>${id}</gpu_instance_id><fb_memory_usage><total>${total} MiB</total><used>${used} MiB</used></fb_memory_usage></mig_device>`;
    const mig = `<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>${row(1, 100, 30)}${row(1, 100, 30)}${row(3, 50, 5)}</mig_devices>`;
    const word = 'Insufficient Permissions';
    const { devices, troubles } = await readXml(xml('NVIDIA A100', [word, word, word], mig));
    expect(devices).toMatchObject([
      { totalBytes: 150 * MIB, usedBytes: 35 * MIB, freeBytes: 115 * MIB, error: null },
    ]);
    expect(troubles).toEqual([]);
  });
});

describe('an NVIDIA chip without memory of its own', () => {
  it.each([
    ['NVIDIA GB10', {}],
    ['Orin (nvgpu)', {}],
    ['NVIDIA Thor', {}],
    ['NVIDIA Graphics', { '/etc/nv_tegra_release': '# R36\n' }],
    ['NVIDIA Graphics', { '/proc/device-tree/compatible': 'nvidia,p3701\0nvidia,tegra234\0' }],
  ])('%s lives in the system’s memory', async (name, files) => {
    for (const word of ['N/A', 'Not Supported']) {
      const { devices } = await readXml(xml(name, [word, word, word]), files);
      expect(devices).toMatchObject([
        { kind: 'unified', memory: 'unified', totalBytes: 1000 * 1024, freeBytes: 400 * 1024, error: null },
      ]);
    }
  });

  it('without a PCI address keeps its processes', async () => {
    const text =
      '<nvidia_smi_log><gpu id="N/A"><product_name>Orin (nvgpu)</product_name><fb_memory_usage><total>Not Supported</total></fb_memory_usage><processes><process_info><pid>7</pid><used_memory>5 MiB</used_memory></process_info></processes></gpu></nvidia_smi_log>';
    const { devices, processes } = await readXml(text);
    expect(devices).toMatchObject([{ id: 'nvidia:0', pciAddress: null, memory: 'unified' }]);
    expect(processes).toMatchObject([{ pid: 7, deviceId: 'nvidia:0', bytes: 5 * MIB }]);
  });

  it('is not told by a failure: a lost GB10 is lost', async () => {
    const { devices } = await readXml(xml('NVIDIA GB10', ['GPU is lost', 'GPU is lost', 'GPU is lost']));
    expect(devices).toMatchObject([{ memory: 'discrete', totalBytes: null }]);
  });

  it('a card plugged into a Tegra board, and Grace Hopper, keep their own memory', async () => {
    const tegra = { '/etc/nv_tegra_release': '# R36\n' };
    const plugged = await readXml(xml('NVIDIA RTX 6000 Ada Generation', ['N/A', 'N/A', 'N/A']), tegra);
    expect(plugged.devices).toMatchObject([{ memory: 'discrete', totalBytes: null }]);
    const hopper = await readXml(xml('NVIDIA GH200 480GB', ['97871 MiB', '600 MiB', '97000 MiB']));
    expect(hopper.devices).toMatchObject([
      { memory: 'discrete', totalBytes: 97871 * MIB, usedBytes: 600 * MIB },
    ]);
  });

  it('is known by its PCI id where the driver gives no name', () => {
    const facts: NvidiaMemoryFacts = {
      name: 'NVIDIA GPU 10de:2e12',
      pciAddress: '000f:01:00.0',
      tegraHost: false,
      setting: null,
      answer: 'not-supported',
      totalBytes: null,
      usedBytes: null,
      freeBytes: null,
      migEnabled: null,
      mig: [],
    };
    expect(decideNvidiaMemory(facts).kind).toBe('host');
    expect(decideNvidiaMemory({ ...facts, migEnabled: true }).kind).toBe('unknown');
    expect(decideNvidiaMemory({ ...facts, name: 'NVIDIA GPU 10de:2204' }).kind).toBe('unknown');
  });

  it('a Tegra is told by its release file or device tree', () => {
    expect(isTegraHost(memoryTree({ '/etc/nv_tegra_release': '' }))).toBe(true);
    expect(isTegraHost(memoryTree({ '/proc/device-tree/compatible': 'raspberrypi' }))).toBe(false);
  });
});

describe('the words in place of figures', () => {
  it.each([
    [['[N/A]', '[N/A]', '[N/A]'], 'not-supported'],
    [['24576 MiB', 'N/A', 'N/A'], 'given'],
    [['[Insufficient Permissions]'], 'no-permission'],
    [['N/A', 'Unknown Error', 'N/A'], 'error'],
    [[null, null, null], 'missing'],
    [['', ''], 'missing'],
  ])('%j: %s', (words, answer) => {
    expect(memoryAnswerOf(words)).toBe(answer);
  });
});
