import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nvidiaSmiReader } from '../../../electron/core/devices/nvidia-smi-reader.ts';
import { loadNvml, type NvmlBinding, type NvmlLoad } from '../../../electron/core/devices/nvml-binding.ts';
import {
  cardBusyPercent,
  cardDisplayActive,
  cardMemory,
  cardMig,
  cardName,
  cardProcesses,
} from '../../../electron/core/devices/nvml-card.ts';
import {
  decodeMemoryV1,
  decodeMemoryV2,
  decodeProcesses,
  encodeMemoryV2Request,
} from '../../../electron/core/devices/nvml-layout.ts';
import { nvmlReader } from '../../../electron/core/devices/nvml-reader.ts';
import type { CardFacts, DeviceReader, Reading } from '../../../electron/core/devices/reader.ts';
import type { ToolRun } from '../../../electron/core/devices/tool-run.ts';
import { readFixture } from '../../support/evidence.ts';
import { memoryTree } from '../../support/memory-tree.ts';

const GIB = 1024 ** 3;
const NOT_AVAILABLE = 2n ** 64n - 1n;

function u64(...values: readonly bigint[]): Buffer {
  const buffer = Buffer.alloc(values.length * 8);
  for (const [at, value] of values.entries()) buffer.writeBigUInt64LE(value, at * 8);
  return buffer;
}

describe('NVML structs', () => {
  it('asks for version 2 of the memory struct as nvml.h builds it', () => {
    const request = encodeMemoryV2Request();
    expect([request.length, request.readUInt32LE(0)]).toEqual([40, 0x02000028]);
  });

  it('reads memory of both versions at their own offsets', () => {
    expect(decodeMemoryV2(u64(0x02000028n, 100n, 5n, 60n, 35n))).toEqual({
      totalBytes: 100,
      reservedBytes: 5,
      freeBytes: 60,
      usedBytes: 35,
    });
    expect(decodeMemoryV1(u64(100n, 60n, 40n))).toEqual({
      totalBytes: 100,
      reservedBytes: null,
      freeBytes: 60,
      usedBytes: 40,
    });
  });

  it('"not available" is unknown: never 17179869184 GiB, never 0', () => {
    expect(decodeMemoryV2(u64(0n, 100n, 0n, NOT_AVAILABLE, NOT_AVAILABLE))).toMatchObject({
      freeBytes: null,
      usedBytes: null,
    });
    expect(decodeProcesses(u64(7n, NOT_AVAILABLE, 0n), 1, 24)).toEqual([{ pid: 7, bytes: null }]);
    expect(decodeMemoryV2(u64(0n, 100n, 0n, 0n, 101n)).usedBytes).toBeNull();
  });

  it('reads no more rows than the buffer holds', () => {
    expect(decodeProcesses(u64(7n, 1n, 0n, 8n, 2n, 0n), 9, 24).map(({ pid }) => pid)).toEqual([7, 8]);
  });
});

interface FakeNvml extends NvmlBinding {
  readonly calls: string[];
  codes: Record<string, number>;
  used: bigint;
  called: string;
  /** GPU instance, total and used of each MIG device; null: not split. */
  instances: readonly (readonly [number, bigint, bigint])[] | null;
  rows: Record<string, readonly (readonly [number, bigint])[]>;
}

function fakeNvml(): FakeNvml {
  const answer = (fake: FakeNvml, name: string): number => {
    fake.calls.push(name);
    return fake.codes[name] ?? 0;
  };
  const fake: FakeNvml = {
    calls: [],
    codes: {},
    used: 3n * BigInt(GIB),
    called: 'Fake 9000',
    instances: null,
    rows: {},
    init: () => answer(fake, 'init'),
    shutdown: () => answer(fake, 'shutdown'),
    handleByPci: (address) => ({ code: answer(fake, `handle ${address}`), handle: 1n }),
    name: (_, out) => {
      out.write(`${fake.called}\0`);
      return answer(fake, 'name');
    },
    mig: {
      mode: (_, out) => {
        out.writeUInt32LE(fake.instances === null ? 0 : 1, 0);
        return 0;
      },
      most: (_, out) => {
        out.writeUInt32LE(7, 0);
        return 0;
      },
      handleAt: (_, index) =>
        index < (fake.instances?.length ?? 0)
          ? { code: 0, handle: 100n + BigInt(index) }
          : { code: 6, handle: 0n },
      gpuInstanceId: (handle, out) => {
        out.writeUInt32LE(fake.instances?.[Number(handle) - 100]?.[0] ?? 0, 0);
        return 0;
      },
    },
    memoryV2: (handle, out) => {
      const instance = handle >= 100n ? fake.instances?.[Number(handle) - 100] : undefined;
      if (instance !== undefined) {
        u64(0n, instance[1], 0n, instance[1] - instance[2], instance[2]).copy(out);
        return 0;
      }
      u64(0n, 8n * BigInt(GIB), 0n, 8n * BigInt(GIB) - fake.used, fake.used).copy(out);
      return answer(fake, 'memoryV2');
    },
    memoryV1: (_, out) => {
      u64(8n * BigInt(GIB), 5n * BigInt(GIB), 3n * BigInt(GIB)).copy(out);
      return answer(fake, 'memoryV1');
    },
    utilization: (_, out) => {
      out.writeUInt32LE(12, 0);
      return answer(fake, 'utilization');
    },
    displayActive: (_, out) => {
      out.writeUInt32LE(1, 0);
      return answer(fake, 'displayActive');
    },
    processes: (kind, version, _, count, out) => {
      const code = answer(fake, `${kind} v${version}`);
      if (code !== 0) return code;
      const rows = fake.rows[kind] ?? [];
      const stride = version === 1 ? 16 : 24;
      const room = count.readUInt32LE(0);
      count.writeUInt32LE(rows.length, 0);
      if (room < rows.length) return 7;
      rows.forEach(([pid, bytes], at) => {
        out.writeUInt32LE(pid, at * stride);
        out.writeBigUInt64LE(bytes, at * stride + 8);
      });
      return 0;
    },
  };
  return fake;
}

describe('one card through NVML', () => {
  it('falls back to older calls where the driver lacks the newer', () => {
    const nvml = fakeNvml();
    nvml.codes = { memoryV2: 13, 'compute v3': 13, 'compute v2': 13, 'graphics v3': 13 };
    nvml.rows = { compute: [[4, 10n]], graphics: [[5, 20n]] };
    expect(cardMemory(nvml, 1n)).toMatchObject({
      ok: true,
      value: { totalBytes: 8 * GIB, usedBytes: 3 * GIB },
    });
    expect(cardProcesses(nvml, 1n)).toEqual([
      { pid: 4, bytes: 10, type: 'C' },
      { pid: 5, bytes: 20, type: 'G' },
    ]);
  });

  it('what is not supported or not permitted is never a figure', () => {
    const nvml = fakeNvml();
    nvml.codes = { memoryV2: 3, memoryV1: 3, utilization: 3, 'compute v3': 4, 'graphics v3': 4 };
    expect(cardMemory(nvml, 1n)).toEqual({ ok: false, code: 3 });
    expect(cardBusyPercent(nvml, 1n)).toBeNull();
    expect(cardProcesses(nvml, 1n)).toBeNull();
    nvml.codes = { memoryV2: 15 };
    expect(cardMemory(nvml, 1n)).toEqual({ ok: false, code: 15 });
  });

  it('a process in both lists is one, with the larger figure', () => {
    const nvml = fakeNvml();
    nvml.rows = { compute: [[4, 10n]], graphics: [[4, 12n]] };
    expect(cardProcesses(nvml, 1n)).toEqual([{ pid: 4, bytes: 12, type: 'C+G' }]);
  });

  it('more processes than there was room for are asked for again', () => {
    const nvml = fakeNvml();
    nvml.rows = { compute: Array.from({ length: 300 }, (_, at) => [at + 1, 1n] as const) };
    expect(cardProcesses(nvml, 1n)).toHaveLength(300);
  });
});

const CARD: CardFacts = {
  id: 'pci:0000:0a:00.0',
  kind: 'nvidia',
  name: 'NVIDIA GPU 10de:2204',
  pciAddress: '0000:0a:00.0',
  path: '/sys/class/drm/card0',
  memory: 'discrete',
  drivesDisplay: null,
  maySuspend: false,
  notes: [],
};
const NAMES = { name: (pid: number) => `p${pid}`, startTimeTicks: () => 9 };
const STATUS = '/sys/class/drm/card0/device/power/runtime_status';

function request(
  nowMs: number,
  open: readonly string[] = [],
): { nowMs: number; processes: boolean; openCards: ReadonlySet<string> } {
  return { nowMs, processes: true, openCards: new Set(open) };
}

describe('NVIDIA cards', () => {
  const setUp = (
    change: Partial<CardFacts> = {},
    load?: () => NvmlLoad,
    fallback: DeviceReader | null = null,
  ) => {
    const nvml = fakeNvml();
    const files: Record<string, string> = {
      [STATUS]: 'active\n',
      '/proc/meminfo': 'MemTotal: 1000 kB\nMemAvailable: 400 kB\n',
    };
    const reader = nvmlReader(
      memoryTree(files),
      [{ ...CARD, ...change }],
      load ?? (() => ({ ok: true, nvml })),
      fallback,
      NAMES,
      500,
    );
    return { nvml, files, reader };
  };

  it('are read with their processes', async () => {
    const { nvml, reader } = setUp();
    nvml.rows = { compute: [[77, BigInt(GIB)]] };
    const reading = await reader.read(request(1));
    expect(reading.devices).toMatchObject([
      {
        id: CARD.id,
        name: 'Fake 9000',
        totalBytes: 8 * GIB,
        usedBytes: 3 * GIB,
        freeBytes: 5 * GIB,
        busyPercent: 12,
        drivesDisplay: true,
        source: 'nvml',
        error: null,
      },
    ]);
    expect(reading.processes).toMatchObject([
      { pid: 77, name: 'p77', startTimeTicks: 9, bytes: GIB, type: 'C' },
    ]);
  });

  it('without memory of their own are unified: MemTotal and MemAvailable, and it is said', async () => {
    const { nvml, reader } = setUp();
    nvml.called = 'NVIDIA GB10';
    nvml.codes = { memoryV2: 3, memoryV1: 3 };
    const { devices } = await reader.read(request(1));
    expect(devices).toMatchObject([
      { kind: 'unified', memory: 'unified', totalBytes: 1024000, freeBytes: 409600, source: 'meminfo' },
    ]);
    expect(devices[0]?.notes.join()).toContain('system');
  });

  it.each([
    [3, 'nvidia-memory-unsupported', 'unified'],
    [4, 'nvidia-no-permission', 'group'],
    [13, 'nvidia-memory-unreadable', 'update the driver'],
  ])(
    'of their own memory that answer %s are unknown, never the machine’s RAM',
    async (code, trouble, advice) => {
      const { nvml, reader } = setUp();
      nvml.codes = { memoryV2: code, memoryV1: code };
      for (const at of [1, 500, 1000]) {
        const reading = await reader.read(request(at));
        expect(reading.devices).toMatchObject([
          { memory: 'discrete', kind: 'nvidia', totalBytes: null, usedBytes: null, freeBytes: null },
        ]);
        expect(reading.devices[0]?.error).toContain(advice);
        expect(reading.troubles).toMatchObject([{ code: trouble, deviceId: CARD.id }]);
      }
    },
  );

  it('that the settings call unified live in the system’s memory, and those they call discrete never', async () => {
    const unified = setUp({ memory: 'unified', memorySetting: 'unified' });
    unified.nvml.codes = { memoryV2: 3, memoryV1: 3 };
    expect((await unified.reader.read(request(1))).devices).toMatchObject([
      { memory: 'unified', totalBytes: 1024000, error: null },
    ]);
    const discrete = setUp({ memorySetting: 'discrete' });
    discrete.nvml.called = 'NVIDIA GB10';
    discrete.nvml.codes = { memoryV2: 3, memoryV1: 3 };
    expect((await discrete.reader.read(request(1))).devices[0]?.error).not.toBeNull();
  });

  it('split by MIG and refused to this user are read from their instances, each once', async () => {
    const { nvml, reader } = setUp();
    nvml.codes = { memoryV2: 4, memoryV1: 4 };
    const gib = BigInt(GIB);
    nvml.instances = [
      [2, 4n * gib, 3n * gib],
      [2, 4n * gib, 3n * gib],
      [5, 2n * gib, gib],
    ];
    const { devices, troubles } = await reader.read(request(1));
    expect(devices).toMatchObject([
      { memory: 'discrete', totalBytes: 6 * GIB, usedBytes: 4 * GIB, freeBytes: 2 * GIB, error: null },
    ]);
    expect(devices[0]?.notes.join()).toContain('MIG');
    expect(troubles).toEqual([]);
    nvml.called = 'NVIDIA GB10';
    nvml.codes = { memoryV2: 3, memoryV1: 3 };
    nvml.instances = [];
    expect((await reader.read(request(2))).devices[0]?.memory).toBe('discrete');
  });

  it('that sleep are not touched, and NVML is shut down for them', async () => {
    const { nvml, files, reader } = setUp();
    await reader.read(request(1));
    files[STATUS] = 'suspended\n';
    nvml.calls.length = 0;
    const { devices } = await reader.read(request(2));
    expect(devices).toMatchObject([{ power: 'suspended', totalBytes: null, usedBytes: null, error: null }]);
    expect(nvml.calls).toEqual(['shutdown']);
    await reader.read(request(3));
    expect(nvml.calls).toEqual(['shutdown']);
  });

  it('that may sleep and that nobody uses are left alone until somebody does', async () => {
    const { nvml, reader } = setUp({ maySuspend: true });
    await reader.read(request(1));
    expect(nvml.calls).toEqual([]);
    expect((await reader.read(request(2, [CARD.pciAddress]))).devices[0]?.usedBytes).toBe(3 * GIB);
    await reader.read(request(3));
    expect(nvml.calls.at(-1)).toBe('shutdown');
  });

  it('that fail mid-run have an error that says what to do, and are tried again from the start', async () => {
    const { nvml, reader } = setUp();
    await reader.read(request(0));
    nvml.codes = { memoryV2: 15 };
    const lost = await reader.read(request(500));
    expect(lost.devices[0]).toMatchObject({ usedBytes: null, totalBytes: null });
    expect(lost.devices[0]?.error).toMatch(/restart/);
    expect(lost.troubles[0]).toMatchObject({ code: 'nvidia-gpu-lost', deviceId: CARD.id });
    nvml.codes = {};
    expect((await reader.read(request(900))).devices[0]?.error).not.toBeNull();
    expect((await reader.read(request(2000))).devices[0]).toMatchObject({ usedBytes: 3 * GIB, error: null });
  });

  it('a driver that is not up at the start is not given up on', async () => {
    const { nvml, reader } = setUp();
    nvml.codes = { init: 9 };
    expect((await reader.read(request(0))).troubles[0]?.code).toBe('nvidia-driver-not-running');
    nvml.codes = {};
    expect((await reader.read(request(100))).devices[0]?.error).toMatch(/modprobe/);
    expect((await reader.read(request(1500))).devices[0]?.usedBytes).toBe(3 * GIB);
  });

  it('nvidia-smi stands in while NVML can’t be loaded', async () => {
    const runs: ToolRun[] = [{ exitCode: 0, output: readFixture('devices/smi-full.xml') }];
    const card = { ...CARD, id: 'pci:0000:17:00.0', pciAddress: '0000:17:00.0' };
    const tree = memoryTree({});
    const smi = nvidiaSmiReader(tree, [card], async () => runs[0] ?? { exitCode: 9, output: '' }, NAMES);
    const { reader } = setUp(card, () => ({ ok: false, why: 'no such file' }), smi);
    await reader.read(request(0));
    await new Promise((resolve) => setImmediate(resolve));
    const reading = await reader.read(request(500));
    expect(reading.devices).toMatchObject([
      { id: card.id, source: 'nvidia-smi', usedBytes: 3020 * 1024 ** 2, takenAtMs: 0 },
    ]);
    expect(reading.processes.map(({ pid, bytes }) => [pid, bytes])).toContainEqual([70, 2900 * 1024 ** 2]);
  });
});

describe('nvidia-smi runs', () => {
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('a failure at boot is tried again with growing gaps and never remembered for ever', async () => {
    let count = 0;
    const answers: ToolRun[] = [
      {
        exitCode: 9,
        output: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
      },
      { exitCode: 9, output: '' },
      { exitCode: 0, output: readFixture('devices/smi-full.xml') },
    ];
    const run = async (): Promise<ToolRun> => answers[Math.min(count++, 2)] ?? { exitCode: null, output: '' };
    const reader = nvidiaSmiReader(memoryTree({}), [], run, NAMES);
    const at = async (nowMs: number): Promise<Reading> => {
      await reader.read(request(nowMs));
      await settle();
      return reader.read(request(nowMs));
    };
    expect((await at(0)).troubles[0]?.code).toBe('nvidia-driver-not-running');
    expect(count).toBe(1);
    await at(2000);
    expect(count).toBe(1);
    await at(3000);
    expect(count).toBe(2);
    await at(6500);
    expect(count).toBe(2);
    expect((await at(9500)).devices.map(({ usedBytes }) => usedBytes)).toEqual([3020 * 1024 ** 2, null]);
  });

  it('is not run at all while a card sleeps, because it would wake it', async () => {
    let count = 0;
    const run = async (): Promise<ToolRun> => ({ exitCode: 0, output: String(count++) });
    const reader = nvidiaSmiReader(memoryTree({ [STATUS]: 'suspended\n' }), [CARD], run, NAMES);
    const { devices } = await reader.read(request(0));
    expect(devices).toMatchObject([{ power: 'suspended', error: null }]);
    expect(count).toBe(0);
  });
});

function hasCompiler(): boolean {
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe('NVML through koffi', () => {
  it('a library that is not there is an answer, not an exception', () => {
    expect(loadNvml('libno-such-nvml.so.1')).toMatchObject({ ok: false });
  });

  it('calls a library lacks answer "function not found"', () => {
    const loaded = loadNvml('libc.so.6');
    if (!loaded.ok) throw new Error(loaded.why);
    expect(loaded.nvml.init()).toBe(13);
    expect(loaded.nvml.memoryV2(1n, Buffer.alloc(40))).toBe(13);
  });

  // With a C compiler at hand the calls go through a real library with NVML's layouts.
  if (hasCompiler()) {
    let folder = '';
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'nvml-'));
      const source = fileURLToPath(new URL('../../fixtures/devices/stand-in-nvml.c', import.meta.url));
      execFileSync('gcc', ['-shared', '-fPIC', '-w', '-o', join(folder, 'stand-in.so'), source]);
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    it('buffers and handles cross the boundary as the C side lays them out', () => {
      const loaded = loadNvml(join(folder, 'stand-in.so'));
      if (!loaded.ok) throw new Error(loaded.why);
      const { nvml } = loaded;
      expect(nvml.handleByPci('0000:0a:00.0').code).toBe(1);
      expect(nvml.init()).toBe(0);
      expect(nvml.handleByPci('0000:0b:00.0').code).toBe(6);
      const { code, handle } = nvml.handleByPci('0000:0a:00.0');
      expect(code).toBe(0);
      expect(cardName(nvml, handle)).toBe('Stand-in 4000');
      expect(cardMemory(nvml, handle)).toEqual({
        ok: true,
        value: {
          totalBytes: 8 * GIB,
          reservedBytes: 100000000,
          freeBytes: 5000000000,
          usedBytes: 3489934592,
        },
      });
      expect(cardBusyPercent(nvml, handle)).toBe(37);
      expect(cardDisplayActive(nvml, handle)).toBe(true);
      const rows = cardProcesses(nvml, handle) ?? [];
      expect(rows).toHaveLength(100);
      expect(rows.slice(0, 3)).toEqual([
        { pid: 500, bytes: 1000000, type: 'C+G' },
        { pid: 501, bytes: null, type: 'C' },
        { pid: 502, bytes: 1000002, type: 'C' },
      ]);
      expect(cardMig(nvml, handle)).toEqual({ enabled: false, instances: [] });
      expect(nvml.shutdown()).toBe(0);
    });

    it('the instances of a card split by MIG are read through their own handles', () => {
      const loaded = loadNvml(join(folder, 'stand-in.so'));
      if (!loaded.ok) throw new Error(loaded.why);
      const { nvml } = loaded;
      nvml.init();
      const { handle } = nvml.handleByPci('0000:0c:00.0');
      expect(cardMemory(nvml, handle)).toEqual({ ok: false, code: 4 });
      const { enabled, instances } = cardMig(nvml, handle);
      expect(enabled).toBe(true);
      expect(instances.map((row) => [row.gpuInstanceId, row.totalBytes, row.usedBytes])).toEqual([
        [2, 2e9, 2e8],
        [2, 2e9, 2e8],
        [5, 5e9, 5e8],
      ]);
      nvml.shutdown();
    });
  }
});
