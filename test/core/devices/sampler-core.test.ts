import { describe, expect, it } from 'vitest';
import { chooseCards } from '../../../electron/core/devices/chosen-cards.ts';
import { processScanner } from '../../../electron/core/devices/process-scan.ts';
import type { Reading } from '../../../electron/core/devices/reader.ts';
import { samplerCore } from '../../../electron/core/devices/sampler-core.ts';
import type { SamplerConfig } from '../../../electron/core/devices/sampler-messages.ts';
import { parseSimulatedCard, simulatedReader } from '../../../electron/core/devices/simulated-reader.ts';
import { memoryTree } from '../../support/memory-tree.ts';

const MIB = 1024 ** 2;
const AUTO: SamplerConfig = { devices: null, periodMs: 500, processPeriodMs: 2000, memory: {} };
const MEMINFO = { '/proc/meminfo': 'MemTotal: 2000 kB\nMemAvailable: 1500 kB\n' };

function amdFiles(): Record<string, string | null> {
  const device = '/sys/class/drm/card0/device';
  return {
    ...MEMINFO,
    [`${device}/uevent`]: 'DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:2d:00.0\n',
    [`${device}/mem_info_vram_total`]: '1000000000\n',
    [`${device}/mem_info_vram_used`]: '400000000\n',
    [`${device}/mem_info_vram_vendor`]: 'samsung\n',
  };
}

/** A process with one DRM descriptor that shows `vram` bytes under `clientId`. */
function client(
  pid: number,
  startTime: number,
  clientId: number,
  vram: number,
  name = 'server',
): {
  files: Record<string, string | null>;
  links: Record<string, string>;
} {
  const zeros = '0 '.repeat(17);
  return {
    files: {
      [`/proc/${pid}/stat`]: `${pid} (${name}) S 1 ${zeros}${startTime} 0 0\n`,
      [`/proc/${pid}/fdinfo/9`]: `drm-driver:\tamdgpu\ndrm-pdev:\t0000:2d:00.0\ndrm-client-id:\t${clientId}\ndrm-memory-vram:\t${vram}\n`,
    },
    links: { [`/proc/${pid}/fd/9`]: '/dev/dri/renderD128', [`/proc/${pid}/fd/1`]: 'pipe:[5]' },
  };
}

function coreOver(files: Record<string, string | null>, links: Record<string, string> = {}, config = AUTO) {
  const tree = memoryTree(files, links);
  const scanner = processScanner(tree, 4096, () => new Set([1]));
  const names = { name: () => null, startTimeTicks: () => null };
  return { tree, core: samplerCore({ tree, scanner, names }, config) };
}

describe('the sampler', () => {
  it('looks for devices anew when it is told to, as after a resume, and else every half minute', async () => {
    const files: Record<string, string | null> = { ...MEMINFO };
    const { core } = coreOver(files);
    expect((await core.tick(0)).devices.map((device) => device.id)).toEqual(['system']);
    Object.assign(files, amdFiles());
    expect((await core.tick(500)).devices.map((device) => device.id)).toEqual(['system']);
    core.lookAgain();
    expect((await core.tick(1000)).devices.map((device) => device.id)).toEqual(['pci:0000:2d:00.0']);
  });

  it('without a GPU gives one system device', async () => {
    const set = await coreOver(MEMINFO).core.tick(0);
    expect(set.devices).toMatchObject([
      {
        id: 'system',
        kind: 'system',
        totalBytes: 2048000,
        usedBytes: 512000,
        freeBytes: 1536000,
        source: 'meminfo',
      },
    ]);
    expect(set.troubles).toEqual([]);
  });

  it('says so when not even that can be read', async () => {
    const set = await coreOver({}).core.tick(0);
    expect(set.devices[0]).toMatchObject({ totalBytes: null, freeBytes: null });
    expect(set.devices[0]?.error).toContain('/proc');
  });

  it('reads processes less often than totals', async () => {
    const { core } = coreOver(amdFiles());
    const sets = [
      await core.tick(0),
      await core.tick(500),
      await core.tick(1000),
      await core.tick(1500),
      await core.tick(2000),
    ];
    expect(sets.map((set) => set.processes === null)).toEqual([false, true, true, true, false]);
    expect(sets.map((set) => set.sequence)).toEqual([1, 2, 3, 4, 5]);
  });

  it('a client that a fork inherited counts once, under its opener', async () => {
    const a = client(50, 100, 7, 300 * MIB);
    const b = client(40, 900, 7, 300 * MIB, 'sleep');
    const { core } = coreOver({ ...amdFiles(), ...a.files, ...b.files }, { ...a.links, ...b.links });
    const set = await core.tick(0);
    expect(set.processes).toMatchObject([
      {
        pid: 50,
        name: 'server',
        startTimeTicks: 100,
        deviceId: 'pci:0000:2d:00.0',
        bytes: 300 * MIB,
        source: 'drm-fdinfo',
      },
    ]);
  });

  it('a process figure above the card’s total is unknown', async () => {
    const a = client(50, 100, 7, 2_000_000_000);
    const { core } = coreOver({ ...amdFiles(), ...a.files }, a.links);
    expect((await core.tick(0)).processes).toMatchObject([{ pid: 50, bytes: null }]);
  });

  it('kfd and fdinfo of one process are not added', async () => {
    const a = client(50, 100, 7, 10 * MIB);
    const kfd = {
      '/sys/class/kfd/kfd/topology/nodes/1/gpu_id': '99\n',
      '/sys/class/kfd/kfd/topology/nodes/1/properties': 'simd_count 8\nlocation_id 11520\ndomain 0\n',
      '/sys/class/kfd/kfd/proc/50/vram_99': `${200 * MIB}\n`,
    };
    const { core } = coreOver({ ...amdFiles(), ...a.files, ...kfd }, a.links);
    expect((await core.tick(0)).processes).toMatchObject([{ pid: 50, bytes: 200 * MIB, source: 'kfd' }]);
  });

  it('a card that vanishes mid-run is reported lost with no figures, and is taken back when it returns', async () => {
    const files = amdFiles();
    const { core } = coreOver(files);
    await core.tick(0);
    const kept = { ...files };
    for (const path of Object.keys(files)) if (path.startsWith('/sys')) delete files[path];
    const failing = await core.tick(500);
    expect(failing.devices[0]).toMatchObject({ id: 'pci:0000:2d:00.0', usedBytes: null });
    expect(failing.devices[0]?.error).not.toBeNull();
    const lost = await core.tick(6000);
    expect(lost.troubles).toMatchObject([{ code: 'device-lost', deviceId: 'pci:0000:2d:00.0' }]);
    expect(lost.devices.map(({ totalBytes, usedBytes }) => [totalBytes, usedBytes])).toEqual([[null, null]]);
    Object.assign(files, kept);
    const back = await core.tick(12_000);
    expect(back.devices).toMatchObject([{ id: 'pci:0000:2d:00.0', usedBytes: 4e8, error: null }]);
    expect(back.troubles).toEqual([]);
  });

  it('a card whose number shifts keeps its id', async () => {
    const files = amdFiles();
    const { core } = coreOver(files);
    await core.tick(0);
    for (const [path, text] of Object.entries(files)) {
      if (!path.startsWith('/sys')) continue;
      files[path.replace('card0', 'card3')] = text;
      delete files[path];
    }
    const set = await core.tick(31_000);
    expect(set.devices).toMatchObject([{ id: 'pci:0000:2d:00.0', usedBytes: 4e8 }]);
    expect(set.troubles).toEqual([]);
  });

  it('a discrete card whose driver tells no total has none, and says so', async () => {
    const files = {
      ...MEMINFO,
      '/sys/class/drm/card0/device/uevent': 'DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:09:00.0\n',
    };
    const set = await coreOver(files).core.tick(0);
    expect(set.devices).toMatchObject([
      { kind: 'intel', totalBytes: null, usedBytes: null, freeBytes: null },
    ]);
    expect(set.devices[0]?.notes.join()).toContain('does not tell');
  });

  it('watched processes count by resident memory where memory is the system’s', async () => {
    const files = {
      ...MEMINFO,
      '/proc/60/stat': `60 (a (b) c) S 1 ${'0 '.repeat(17)}5 0\n`,
      '/proc/60/statm': '900 30 5 1 0 40 0\n',
    };
    const { core } = coreOver(files);
    core.watch([60, 61]);
    expect((await core.tick(0)).processes).toEqual([
      {
        pid: 60,
        startTimeTicks: 5,
        name: 'a (b) c',
        deviceId: 'system',
        bytes: 30 * 4096,
        gttBytes: null,
        type: null,
        source: 'statm',
      },
    ]);
  });

  it('a name that is too long is cut, for the window and for what is told', async () => {
    const files = { ...amdFiles(), '/sim.json': `{"name":"${'Very long name '.repeat(9)}","totalBytes":10}` };
    const devices = [{ kind: 'simulated', path: '/sim.json' }] as const;
    const set = await coreOver(files, {}, { ...AUTO, devices }).core.tick(0);
    expect(set.devices[0]?.name).toMatch(/^Very long name .{10,44}…$/);
  });

  it('a setting says what a card’s memory is, with its path or without', async () => {
    const files = amdFiles();
    const kindOf = async (
      devices: SamplerConfig['devices'],
    ): Promise<readonly (string | number | null)[]> => {
      const set = await coreOver(files, {}, { ...AUTO, devices }).core.tick(0);
      return set.devices.flatMap(({ memory, hostAvailableBytes }) => [memory, hostAvailableBytes]);
    };
    const path = '/sys/class/drm/card0/device';
    expect(await kindOf([{ kind: 'amdgpu', path }])).toEqual(['discrete', null]);
    expect(await kindOf([{ kind: 'amdgpu', path, memory: 'unified' }])).toEqual(['unified', 1536000]);
    expect(await kindOf([{ kind: 'amdgpu', memory: 'unified' }])).toEqual(['unified', 1536000]);
    expect(await kindOf([{ kind: 'amdgpu' }])).toEqual(['discrete', null]);
    const bus = '/sys/bus/pci/devices/0000:2d:00.0';
    expect(await kindOf([{ kind: 'amdgpu', path: bus, memory: 'unified' }])).toEqual(['unified', 1536000]);
    // The entry with a path speaks for its card alone, wherever it stands.
    expect(
      await kindOf([
        { kind: 'amdgpu', memory: 'unified' },
        { kind: 'amdgpu', path },
      ]),
    ).toEqual(['discrete', null]);
  });

  it('a setting holds for NVIDIA cards too, and not for those of another kind', () => {
    const tree = memoryTree({ ...amdFiles(), '/sys/bus/pci/drivers/nvidia/0000:01:00.0': '' });
    const memoryOf = (devices: SamplerConfig['devices'], memory: SamplerConfig['memory'] = {}) =>
      chooseCards(tree, devices, memory).map((card) => [card.id, card.memory, card.memorySetting]);
    expect(memoryOf([{ kind: 'nvidia', memory: 'unified' }, { kind: 'amdgpu' }])).toEqual([
      ['pci:0000:01:00.0', 'unified', 'unified'],
      ['pci:0000:2d:00.0', 'discrete', undefined],
    ]);
    expect(memoryOf([{ kind: 'nvidia', memory: 'unified' }], { 'pci:0000:01:00.0': 'discrete' })).toEqual([
      ['pci:0000:01:00.0', 'discrete', 'discrete'],
    ]);
  });

  it('settings choose the devices', async () => {
    const files = { ...amdFiles(), '/sim.json': '{"name":"S","totalBytes":10,"usedBytes":4}' };
    const devices = [{ kind: 'simulated', path: '/sim.json' }, { kind: 'system' }] as const;
    const set = await coreOver(files, {}, { ...AUTO, devices }).core.tick(0);
    expect(set.devices.map(({ id }) => id).sort()).toEqual(['sim:0', 'system']);
  });
});

describe('scanning processes', () => {
  const cards = [
    {
      id: 'pci:0000:2d:00.0',
      kind: 'amdgpu',
      name: 'c',
      pciAddress: '0000:2d:00.0',
      path: '',
      memory: 'discrete',
      drivesDisplay: null,
      maySuspend: true,
      notes: [],
    },
  ] as const;

  it('leaves processes without GPU files alone for a while, young ones not', () => {
    const links: Record<string, string> = { '/proc/69/fd/0': '/dev/null' };
    const files: Record<string, string | null> = { '/proc/69/stat': '' };
    const scanner = processScanner(memoryTree(files, links), 4096, () => new Set());
    const found = (nowMs: number): number => scanner.scan(nowMs, cards).rows.length;
    const late = client(70, 5, 3, 50 * MIB);
    expect(found(0)).toBe(0);
    links['/proc/70/fd/0'] = '/dev/null';
    expect(found(1000)).toBe(0);
    Object.assign(files, late.files);
    Object.assign(links, late.links);
    expect(found(2000)).toBe(1);
    for (const path of Object.keys(late.links)) delete links[path];
    links['/proc/70/fd/0'] = '/dev/null';
    expect(found(40_000)).toBe(0);
    Object.assign(links, late.links);
    expect(found(42_000)).toBe(0);
    expect(found(56_000)).toBe(1);
  });

  it('a compositor’s few MiB are no use of a card, a model’s are', () => {
    const small = client(70, 5, 3, 4 * MIB, 'gnome-shell');
    const big = client(71, 6, 4, 400 * MIB);
    const of = (...parts: readonly ReturnType<typeof client>[]) =>
      processScanner(
        memoryTree(
          Object.assign({}, ...parts.map(({ files }) => files)),
          Object.assign({}, ...parts.map(({ links }) => links)),
        ),
        4096,
        () => new Set(),
      ).scan(0, cards).openCards;
    expect([...of(small)]).toEqual([]);
    expect([...of(small, big)]).toEqual(['0000:2d:00.0']);
  });
});

describe('a simulated card', () => {
  const once = (reader: ReturnType<typeof simulatedReader>, nowMs: number): Reading =>
    reader.read({ nowMs, processes: true, openCards: null }) as Reading;

  it('is re-read each turn, and a half-written file keeps the last reading and its age', () => {
    let text: string | null =
      '{"name":"S","totalBytes":100,"usedBytes":40,"gttUsedBytes":3,"processes":[{"pid":5,"name":"x","bytes":7,"type":"G"}]}';
    const reader = simulatedReader(
      () => text,
      '/s',
      'sim:0',
      () => 11,
      500,
    );
    expect(once(reader, 1)).toMatchObject({
      devices: [{ usedBytes: 40, freeBytes: 60, gttUsedBytes: 3, takenAtMs: 1 }],
      processes: [{ pid: 5, bytes: 7, type: 'G', startTimeTicks: 11 }],
    });
    text = '{"name":"S","totalBytes":100,"usedBy';
    expect(once(reader, 2).devices).toMatchObject([{ usedBytes: 40, takenAtMs: 1 }]);
    text = '{"name":"S","totalBytes":100,"usedBytes":50}';
    expect(once(reader, 3).devices).toMatchObject([{ usedBytes: 50, takenAtMs: 3 }]);
  });

  it('that was never whole has an error', () => {
    const reading = once(
      simulatedReader(
        () => null,
        '/s',
        'sim:0',
        () => null,
        500,
      ),
      1,
    );
    expect(reading.devices[0]).toMatchObject({ totalBytes: null, usedBytes: null });
    expect(reading.devices[0]?.error).toContain('/s');
  });

  it.each(['-5', '101', 'NaN', '1e300', '"40"'])('with %s in use is unknown, and says so', (used) => {
    const text = `{"name":"S","totalBytes":100,"usedBytes":${used}}`;
    const reading = once(
      simulatedReader(
        () => text,
        '/s',
        'sim:0',
        () => null,
        500,
      ),
      1,
    );
    expect(reading.devices).toMatchObject([{ totalBytes: 100, usedBytes: null, freeBytes: null }]);
    expect(reading.troubles).toMatchObject([{ code: 'simulated-figure', deviceId: 'sim:0' }]);
    expect(reading.troubles[0]?.message).toMatch(/usedBytes.*\/s\.$/);
  });

  it('an honest unknown is no trouble', () => {
    expect(parseSimulatedCard('{"totalBytes":100,"usedBytes":null}')).toMatchObject({
      usedBytes: null,
      faults: [],
    });
  });

  it('rows of processes that can’t be are left out', () => {
    const rows =
      '[{"pid":-4,"bytes":1},{"pid":0},{"pid":9e9},{"pid":7,"bytes":1e300},{"pid":8,"bytes":-1},{"pid":9},{"pid":10,"bytes":5},3]';
    const card = parseSimulatedCard(`{"totalBytes":100,"processes":${rows}}`);
    expect(card?.processes.map(({ pid, bytes }) => [pid, bytes])).toEqual([
      [9, null],
      [10, 5],
    ]);
    expect(card?.faults).toHaveLength(6);
  });

  it('takes no figure that can’t be', () => {
    expect(parseSimulatedCard('{"totalBytes":10,"usedBytes":11,"busyPercent":300}')).toMatchObject({
      usedBytes: null,
      busyPercent: null,
    });
    expect(parseSimulatedCard('[]')).toBeNull();
  });
});
