import { describe, expect, it } from 'vitest';
import { processScanner } from '../../../electron/core/devices/process-scan.ts';
import type { CardFacts } from '../../../electron/core/devices/reader.ts';
import { samplerCore } from '../../../electron/core/devices/sampler-core.ts';
import { lookUpNames, namesOf } from '../../../electron/core/devices/static-names.ts';
import { memoryTree } from '../../support/memory-tree.ts';

const AMD: CardFacts = {
  id: 'pci:0000:2d:00.0',
  kind: 'amdgpu',
  name: 'AMD GPU 1002:744c',
  pciAddress: '0000:2d:00.0',
  path: '/sys/class/drm/card0',
  memory: 'discrete',
  drivesDisplay: null,
  maySuspend: false,
  notes: [],
};

describe('names that pci.ids does not have', () => {
  it('are keyed by PCI address, and ids are no names', () => {
    const controllers = [
      { busAddress: '2d:00.0', model: 'Radeon Test' },
      { busAddress: '2e:00.0', model: 'Device 744c' },
      { model: 'no address' },
    ];
    expect([...namesOf(controllers)]).toEqual([['0000:2d:00.0', 'Radeon Test']]);
  });

  it('are not asked for where asking would run nvidia-smi', async () => {
    let asked = 0;
    const ask = async () => {
      asked += 1;
      return [{ busAddress: '2d:00.0', model: 'Radeon Test' }];
    };
    expect((await lookUpNames([AMD, { ...AMD, kind: 'nvidia' }], ask)).size).toBe(0);
    expect(asked).toBe(0);
    expect((await lookUpNames([AMD], ask)).size).toBe(1);
  });

  it('a failure leaves the cards without', async () => {
    expect((await lookUpNames([AMD], () => Promise.reject(new Error('no lspci')))).size).toBe(0);
  });

  it('come in later without holding a reading up, and are asked for once', async () => {
    let asked = 0;
    let answer: (names: ReadonlyMap<string, string>) => void = () => {};
    const tree = memoryTree({
      '/sys/class/drm/card0/device/uevent': 'DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:2d:00.0\n',
      '/sys/class/drm/card0/device/mem_info_vram_total': '1000\n',
    });
    const lookUp = () => {
      asked += 1;
      return new Promise<ReadonlyMap<string, string>>((resolve) => {
        answer = resolve;
      });
    };
    const parts = {
      tree,
      scanner: processScanner(tree, 4096, () => new Set()),
      names: { name: () => null, startTimeTicks: () => null },
      lookUpNames: lookUp,
    };
    const core = samplerCore(parts, { devices: null, periodMs: 500, processPeriodMs: 2000, memory: {} });
    expect((await core.tick(0)).devices[0]?.name).toBe('AMD GPU 1002:744c');
    answer(new Map([['0000:2d:00.0', 'Radeon Test']]));
    await Promise.resolve();
    expect((await core.tick(40_000)).devices[0]?.name).toBe('Radeon Test');
    expect(asked).toBe(1);
  });
});
