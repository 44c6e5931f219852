import { describe, expect, it } from 'vitest';
import { processScanner } from '../../../electron/core/devices/process-scan.ts';
import { ROCM_SMI_PERIOD_MS } from '../../../electron/core/devices/rocm-reader.ts';
import type { SampleSet } from '../../../electron/core/devices/sample.ts';
import { samplerCore } from '../../../electron/core/devices/sampler-core.ts';
import type { ToolRun } from '../../../electron/core/devices/tool-run.ts';
import { memoryTree } from '../../support/memory-tree.ts';

const GIB = 1024 ** 3;
const DEVICE = '/sys/class/drm/card0/device';
const MEMINFO = { '/proc/meminfo': 'MemTotal: 40000000 kB\nMemAvailable: 20000000 kB\n' };

/** A card whose memory files are closed to this user. */
function closedCard(id = '744C'): Record<string, string | null> {
  return {
    ...MEMINFO,
    [`${DEVICE}/uevent`]: `DRIVER=amdgpu\nPCI_ID=1002:${id}\nPCI_SLOT_NAME=0000:2d:00.0\n`,
    [`${DEVICE}/mem_info_vram_total`]: null,
    [`${DEVICE}/mem_info_vram_used`]: null,
  };
}

function answer(change: Readonly<Record<string, string>> = {}): ToolRun {
  const card = {
    'Card Series': 'Radeon Test',
    'Card Model': '0x744c',
    'PCI Bus': '0000:2D:00.0',
    'GPU use (%)': '7',
    'VRAM Total Memory (B)': String(20 * GIB),
    'VRAM Total Used Memory (B)': String(5 * GIB),
    'GTT Total Memory (B)': String(16 * GIB),
    'GTT Total Used Memory (B)': String(GIB),
    ...change,
  };
  return { exitCode: 0, output: JSON.stringify({ card0: card }) };
}

function sampler(files: Record<string, string | null>, answers: () => ToolRun) {
  const tree = memoryTree(files);
  const asked: (readonly string[])[] = [];
  const core = samplerCore(
    {
      tree,
      scanner: processScanner(tree, 4096, () => new Set([1])),
      names: { name: () => null, startTimeTicks: () => null },
      runRocmSmi: (args) => {
        asked.push(args);
        return Promise.resolve(answers());
      },
    },
    { devices: null, periodMs: 500, processPeriodMs: 2000, memory: {} },
  );
  const tick = async (nowMs: number): Promise<SampleSet> => {
    const set = await core.tick(nowMs);
    await new Promise((resolve) => setImmediate(resolve));
    return set;
  };
  return { tick, asked };
}

describe('rocm-smi', () => {
  it('stands in for memory files that can’t be read, every 2 s at most', async () => {
    const { tick, asked } = sampler(closedCard(), () => answer());
    expect((await tick(0)).devices[0]).toMatchObject({ id: 'pci:0000:2d:00.0', totalBytes: null });
    const { devices, troubles } = await tick(500);
    expect(devices).toMatchObject([
      {
        id: 'pci:0000:2d:00.0',
        memory: 'discrete',
        totalBytes: 20 * GIB,
        usedBytes: 5 * GIB,
        freeBytes: 15 * GIB,
        gttUsedBytes: GIB,
        busyPercent: 7,
        source: 'rocm-smi',
        takenAtMs: 0,
        periodMs: ROCM_SMI_PERIOD_MS,
        error: null,
      },
    ]);
    expect(troubles).toEqual([]);
    await tick(1900);
    expect(asked).toHaveLength(1);
    await tick(2000);
    expect(asked).toHaveLength(2);
    expect(asked[0]).toContain('--json');
  });

  it('is not run while sysfs answers', async () => {
    const files = { ...closedCard(), [`${DEVICE}/mem_info_vram_total`]: '1000\n' };
    const { tick, asked } = sampler(files, () => answer());
    await tick(0);
    await tick(500);
    expect(asked).toEqual([]);
  });

  it('is not run while a card sleeps, because it would wake it', async () => {
    const files = { ...closedCard(), [`${DEVICE}/power/runtime_status`]: 'suspended\n' };
    const { tick, asked } = sampler(files, () => answer());
    expect((await tick(0)).devices).toMatchObject([{ power: 'suspended', error: null }]);
    expect(asked).toEqual([]);
  });

  it('is not run for a card that may sleep and that nobody uses', async () => {
    const { tick, asked } = sampler({ ...closedCard(), [`${DEVICE}/power/control`]: 'auto\n' }, () =>
      answer(),
    );
    await tick(0);
    await tick(500);
    expect(asked).toEqual([]);
  });

  it('a reader that breaks leaves its card unknown, and the machine’s RAM is not shown in its place', async () => {
    const { tick } = sampler(closedCard(), () => {
      throw new Error('broken');
    });
    const { devices } = await tick(0);
    expect(devices).toMatchObject([{ id: 'pci:0000:2d:00.0', totalBytes: null, freeBytes: null }]);
    expect(devices[0]?.error).not.toBeNull();
  });

  it('takes an APU’s pool from it, bounded by MemAvailable', async () => {
    const apu = { 'VRAM Total Memory (B)': String(GIB), 'VRAM Total Used Memory (B)': String(GIB) };
    const { tick } = sampler(closedCard('1586'), () => answer(apu));
    await tick(0);
    expect((await tick(500)).devices).toMatchObject([
      { memory: 'unified', totalBytes: 17 * GIB, usedBytes: 2 * GIB, freeBytes: 15 * GIB },
    ]);
  });

  it.each<[string, ToolRun]>([
    ['is missing', { exitCode: null, output: 'rocm-smi is not installed' }],
    ['gives no answer', { exitCode: null, output: '' }],
    ['fails', { exitCode: 2, output: 'ERROR: no driver' }],
    ['answers garbage', { exitCode: 0, output: 'Traceback (most recent call last)' }],
    ['gives no figures', answer({ 'VRAM Total Memory (B)': 'N/A' })],
  ])('that %s leaves the card unknown, with the advice about its files', async (_, run) => {
    const { tick } = sampler(closedCard(), () => run);
    await tick(0);
    const { devices, troubles } = await tick(500);
    expect(devices).toMatchObject([{ totalBytes: null, usedBytes: null, freeBytes: null }]);
    expect(devices[0]?.error).toContain('dmesg');
    expect(troubles[0]?.code).toBe('amdgpu-unreadable');
  });

  it('that gives more in use than there is gives no use', async () => {
    const { tick } = sampler(closedCard(), () => answer({ 'VRAM Total Used Memory (B)': String(21 * GIB) }));
    await tick(0);
    expect((await tick(500)).devices).toMatchObject([
      { totalBytes: 20 * GIB, usedBytes: null, freeBytes: null },
    ]);
  });

  it('that says a card is in a low-power state is not believed on its figures', async () => {
    const low = answer();
    const output = `WARNING: AMD GPU device(s) is/are in a low-power state.\n${low.output}`;
    const { tick } = sampler(closedCard(), () => ({ exitCode: 0, output }));
    await tick(0);
    expect((await tick(500)).devices).toMatchObject([{ power: 'suspended', totalBytes: null }]);
  });

  it('lists the cards where a container shows none in /sys, and only there', async () => {
    const { tick } = sampler({ ...MEMINFO, '/dev/kfd': '' }, () => answer());
    await tick(0);
    expect((await tick(500)).devices).toMatchObject([
      { id: 'pci:0000:2d:00.0', name: 'Radeon Test', totalBytes: 20 * GIB },
    ]);
    const none = sampler(MEMINFO, () => answer());
    await none.tick(0);
    expect((await none.tick(500)).devices).toMatchObject([{ id: 'system' }]);
    expect(none.asked).toEqual([]);
  });
});
