import { describe, expect, it } from 'vitest';
import { migUsedBytes, type NvidiaGpu } from '../../../electron/core/devices/nvidia.ts';
import { decideNvidiaMemory } from '../../../electron/core/devices/nvidia-memory.ts';
import { nvidiaSmiTrouble } from '../../../electron/core/devices/nvidia-trouble.ts';
import { type ParsedPart, parsePart, splitCapture } from '../../support/captures.ts';
import { evidenceFiles, readEvidence } from '../../support/evidence.ts';
import { driverVersionIn } from '../../support/nvidia-smi-table.ts';

const MIB = 1024 * 1024;
const FOLDER = 'nvidia-smi';

function partsOf(file: string): readonly ParsedPart[] {
  return splitCapture(readEvidence(FOLDER, file)).map(parsePart);
}

function only<K extends ParsedPart['kind']>(
  parts: readonly ParsedPart[],
  kind: K,
): Extract<ParsedPart, { kind: K }> {
  const found = parts.find((part): part is Extract<ParsedPart, { kind: K }> => part.kind === kind);
  if (found === undefined) throw new Error(`no ${kind} part`);
  return found;
}

function livesInSystemMemory(gpu: NvidiaGpu): boolean {
  const facts = { ...gpu, name: gpu.name ?? '', tegraHost: false, setting: null, answer: gpu.memoryAnswer };
  return decideNvidiaMemory(facts).kind === 'host';
}

/** What each file says, read off the file by eye.  */
const CHECKS: Readonly<Record<string, (file: string) => void>> = {
  '01-rtx4080s-linux-wayland-idle.txt': (file) => {
    const parts = partsOf(file);
    expect(only(parts, 'gpu-csv').gpus).toMatchObject([
      {
        index: 0,
        name: 'NVIDIA GeForce RTX 4080 SUPER',
        totalBytes: 16376 * MIB,
        reservedBytes: 434 * MIB,
        usedBytes: 596 * MIB,
        freeBytes: 15348 * MIB,
        busyPercent: 0,
        memoryBusyPercent: 23,
        displayActive: true,
        driverModel: null,
        migEnabled: null,
      },
    ]);
    expect(only(parts, 'apps-csv').processes).toMatchObject([
      { pid: 2165, name: '/usr/bin/kwin_wayland', bytes: 25 * MIB, pciAddress: '0000:01:00.0' },
    ]);
    const { report } = only(parts, 'table');
    expect(report.driverVersion).toBe('595.71.05');
    expect(report.gpus).toMatchObject([
      { pciAddress: '0000:01:00.0', usedBytes: 596 * MIB, totalBytes: 16376 * MIB, displayActive: true },
    ]);
    expect(report.processes.map(({ pid, type, bytes }) => [pid, type, bytes])).toEqual([
      [2165, 'C+G', 25 * MIB],
      [2496, 'G', 200 * MIB],
      [2620, 'G', 4 * MIB],
      [2954, 'G', 120 * MIB],
      [3527, 'G', 3 * MIB],
    ]);
  },
  '03-rtx2080s-windows-wddm.txt': (file) => {
    const parts = partsOf(file);
    expect(only(parts, 'gpu-csv').gpus).toMatchObject([
      {
        totalBytes: 8192 * MIB,
        usedBytes: 702 * MIB,
        freeBytes: 7286 * MIB,
        driverModel: 'WDDM',
        displayActive: false,
      },
    ]);
    const apps = only(parts, 'apps-csv').processes;
    expect(apps).toHaveLength(10);
    expect(apps.every((app) => app.bytes === null)).toBe(true);
    expect(apps[5]).toMatchObject({
      pid: 4680,
      name: 'C:\\Program Files\\NVIDIA Corporation\\NVIDIA GeForce Experience\\NVIDIA Share.exe',
      pciAddress: '0000:0c:00.0',
    });
    const { report } = only(parts, 'table');
    expect(report.gpus).toMatchObject([
      { driverModel: 'WDDM', usedBytes: 702 * MIB, totalBytes: 8192 * MIB },
    ]);
    expect(report.processes).toHaveLength(10);
    expect(report.processes.every((row) => row.bytes === null && row.type === 'C+G')).toBe(true);
    expect(report.processes[8]).toMatchObject({ pid: 20372, name: '...m Files\\NZXT CAM\\NZXT CAM.exe' });
  },
  '05-rtx2080s-linux-610.txt': (file) => {
    const parts = partsOf(file);
    expect(driverVersionIn(readEvidence(FOLDER, file).split('$ nvidia-smi --query')[0] ?? '')).toBe(
      '610.57.04',
    );
    expect(only(parts, 'gpu-csv').gpus).toMatchObject([
      {
        totalBytes: 8192 * MIB,
        reservedBytes: 400 * MIB,
        usedBytes: 815 * MIB,
        freeBytes: 6978 * MIB,
        busyPercent: 8,
      },
    ]);
    expect(only(parts, 'apps-csv').processes.map(({ pid, bytes }) => [pid, bytes])).toEqual([
      [28512, 370 * MIB],
      [28511, 230 * MIB],
    ]);
    const { report } = only(parts, 'table');
    expect(report.driverVersion).toBe('610.57.04');
    expect(report.processes.map(({ pid, type, name, bytes }) => [pid, type, name, bytes])).toEqual([
      [1720, 'G', '/usr/bin/gnome-shell', 173 * MIB],
      [4556, 'G', '/usr/bin/Xwayland', 3 * MIB],
      [28511, 'C', 'ffmpeg', 230 * MIB],
      [28512, 'C', 'ffmpeg', 370 * MIB],
    ]);
  },
  '07-h200-mig.txt': (file) => {
    const parts = partsOf(file);
    expect(only(parts, 'gpu-csv').gpus).toMatchObject([
      {
        name: 'NVIDIA H200',
        totalBytes: 143771 * MIB,
        usedBytes: 16959 * MIB,
        freeBytes: 126199 * MIB,
        busyPercent: null,
        migEnabled: true,
      },
    ]);
    const { report } = only(parts, 'table');
    expect(report.gpus).toHaveLength(1);
    expect(report.gpus[0]).toMatchObject({
      usedBytes: 16959 * MIB,
      totalBytes: 143771 * MIB,
      busyPercent: null,
    });
    expect(
      report.gpus[0]?.mig.map((row) => [row.gpuInstanceId, row.computeInstanceId, row.usedBytes]),
    ).toEqual([
      [2, 0, 16925 * MIB],
      [2, 1, 16925 * MIB],
      [3, 0, 17 * MIB],
      [9, 0, 9 * MIB],
      [10, 0, 9 * MIB],
    ]);
    // The first two rows are one instance: 16925 + 17 + 9 + 9.
    expect(migUsedBytes(report.gpus[0]?.mig ?? [])).toBe(16960 * MIB);
    expect(
      report.processes.map(({ pid, gpuInstanceId, computeInstanceId, bytes }) => [
        pid,
        gpuInstanceId,
        computeInstanceId,
        bytes,
      ]),
    ).toEqual([
      [12249, 2, 1, 2194 * MIB],
      [12250, 2, 1, 1170 * MIB],
      [12267, 2, 1, 13526 * MIB],
    ]);
  },
  '09-l40s-ecc.txt': (file) => {
    const parts = partsOf(file);
    expect(only(parts, 'gpu-csv').gpus).toMatchObject([
      { totalBytes: 46068 * MIB, usedBytes: 0, freeBytes: 45460 * MIB, busyPercent: 100 },
    ]);
    expect(only(parts, 'text').report.gpus).toMatchObject([
      { totalBytes: 46068 * MIB, reservedBytes: 609 * MIB, usedBytes: 0, freeBytes: 45460 * MIB },
    ]);
  },
  '11-rtx2080-windows-q-x.xml': (file) => {
    const { report } = only(partsOf(file), 'xml');
    expect(report.driverVersion).toBe('516.59');
    expect(report.gpus).toMatchObject([
      {
        name: 'NVIDIA GeForce RTX 2080',
        pciAddress: null,
        totalBytes: 8192 * MIB,
        reservedBytes: 182 * MIB,
        usedBytes: 862 * MIB,
        freeBytes: 7147 * MIB,
        busyPercent: 2,
        driverModel: 'WDDM',
      },
    ]);
    expect(report.processes.map(({ pid, bytes, type }) => [pid, bytes, type])).toEqual(
      [7724, 10808, 11556, 12452, 12636, 13120].map((pid) => [pid, null, 'C+G']),
    );
    expect(report.processes.map(({ name }) => name === null)).toEqual([
      false,
      true,
      false,
      false,
      true,
      true,
    ]);
  },
  '13-rtx3080-v12-cmdline.xml': (file) => {
    const { report } = only(partsOf(file), 'xml');
    expect(report.gpus).toMatchObject([
      {
        totalBytes: 10240 * MIB,
        usedBytes: 1128 * MIB,
        freeBytes: 8938 * MIB,
        reservedBytes: 173 * MIB,
        busyPercent: 0,
      },
    ]);
    expect(report.processes.map(({ pid, type, bytes }) => [pid, type, bytes])).toEqual([
      [835, 'G', 550 * MIB],
      [1481, 'G', 18 * MIB],
      [2214, 'G', 79 * MIB],
      [4044, 'G', 541 * MIB],
      [42416, 'G', 159 * MIB],
    ]);
    expect(report.processes[2]?.name).toMatch(
      /^\/opt\/microsoft\/msedge\/msedge --type=gpu-process .*,i,3110/,
    );
  },
  '15-quadro-p400-v11.xml': (file) => {
    const { report } = only(partsOf(file), 'xml');
    expect(report.driverVersion).toBe('418.43');
    expect(report.gpus).toMatchObject([
      {
        name: 'Quadro P400',
        totalBytes: 1998 * MIB,
        usedBytes: 0,
        freeBytes: 1998 * MIB,
        reservedBytes: null,
      },
    ]);
    expect(report.processes).toEqual([]);
  },
  '17-gb10-query-na.txt': (file) => {
    const { gpus } = only(partsOf(file), 'gpu-csv');
    expect(gpus).toMatchObject([
      { index: 0, name: 'NVIDIA GB10', totalBytes: null, usedBytes: null, freeBytes: null },
    ]);
    expect(gpus.every(livesInSystemMemory)).toBe(true);
  },
  '19-gb10-compute-apps-do-report.txt': (file) => {
    const parts = partsOf(file);
    expect(only(parts, 'gpu-csv').gpus).toMatchObject([
      { totalBytes: null, usedBytes: null, memoryBusyPercent: 0 },
    ]);
    expect(only(parts, 'apps-csv').processes).toMatchObject([
      { pid: 114687, name: '/usr/local/bin/python', bytes: 19135 * MIB },
    ]);
  },
  '21-jetson-orin-table.txt': (file) => {
    const { report } = only(partsOf(file), 'table');
    expect(report.driverVersion).toBeNull();
    expect(report.gpus).toMatchObject([
      {
        index: 0,
        name: 'Orin (nvgpu)',
        pciAddress: null,
        totalBytes: null,
        usedBytes: null,
        busyPercent: null,
        displayActive: null,
      },
    ]);
    expect(report.gpus.every(livesInSystemMemory)).toBe(true);
  },
  '23-wsl2-rtx4070ti-super.txt': (file) => {
    const parts = partsOf(file);
    expect(only(parts, 'gpu-csv').gpus).toMatchObject([
      { name: 'NVIDIA GeForce RTX 4070 Ti SUPER', totalBytes: 16376 * MIB, usedBytes: 14360 * MIB },
    ]);
    expect(only(parts, 'apps-csv').processes).toMatchObject([{ pid: 79, bytes: null }]);
  },
  '25-driver-not-running-exit9.txt': (file) => {
    const trouble = nvidiaSmiTrouble(9, readEvidence(FOLDER, file));
    expect(trouble.code).toBe('nvidia-driver-not-running');
    expect(trouble.message).toContain('modprobe');
    expect(partsOf(file).every((part) => part.kind === 'unknown')).toBe(true);
  },
  '27-err-fan-recovery-action.txt': (file) => {
    const { report } = only(partsOf(file), 'table');
    expect(report.gpus).toMatchObject([
      { index: 13, pciAddress: '0000:c9:00.0', usedBytes: 1 * MIB, totalBytes: 20475 * MIB, busyPercent: 0 },
      { index: 14, pciAddress: '0000:cc:00.0', usedBytes: 1 * MIB, totalBytes: 20475 * MIB, busyPercent: 93 },
    ]);
    expect(report.troubles.map(({ code }) => code)).toEqual(['nvidia-sensor-error']);
  },
  '29-not-supported-vs-na.txt': (file) => {
    const { gpus } = only(partsOf(file), 'gpu-csv');
    expect(gpus.map((gpu) => [gpu.totalBytes, gpu.freeBytes, gpu.usedBytes, gpu.busyPercent])).toEqual([
      [2004 * MIB, 2004 * MIB, 0, 0],
      [2004 * MIB, 2004 * MIB, 0, 0],
    ]);
  },
  '31-hybrid-laptop-idle-dgpu.txt': (file) => {
    const { report } = only(partsOf(file), 'table');
    expect(report.gpus).toMatchObject([
      {
        index: 0,
        pciAddress: '0000:01:00.0',
        usedBytes: 2 * MIB,
        totalBytes: 8151 * MIB,
        displayActive: false,
      },
    ]);
    expect(report.processes).toEqual([]);
  },
  '33-multi-gpu-same-pid-two-cards.txt': (file) => {
    const { report } = only(partsOf(file), 'table');
    expect(report.processes.map(({ gpuIndex, pid, type, bytes }) => [gpuIndex, pid, type, bytes])).toEqual([
      [0, 10734, 'C', 160 * MIB],
      [0, 58661, 'G', 3 * MIB],
      [1, 10734, 'C', 160 * MIB],
      [2, 18243, 'G', 64 * MIB],
      [2, 22720, 'G', 34 * MIB],
    ]);
  },
  '35-geforce-410m-v9-partial.xml': (file) => {
    const { report } = only(partsOf(file), 'xml');
    expect(report.driverVersion).toBe('390.157');
    expect(report.gpus).toMatchObject([
      {
        name: 'GeForce 410M',
        pciAddress: '0000:01:00.0',
        displayActive: null,
        totalBytes: null,
        usedBytes: null,
      },
    ]);
  },
};

const files = evidenceFiles(FOLDER);
if (files.length > 0) {
  describe('saved nvidia-smi outputs give the figures that stand in them', () => {
    for (const [file, check] of Object.entries(CHECKS)) {
      if (files.includes(file)) it(file, () => check(file));
    }
    // Files added beside these are read as well: whatever they hold, use is never above the total.
    for (const file of files.filter((name) => CHECKS[name] === undefined)) {
      it(`${file} (not worked out by hand): used is within total`, () => {
        for (const part of partsOf(file)) {
          const gpus =
            part.kind === 'gpu-csv'
              ? part.gpus
              : 'report' in part && 'gpus' in part.report
                ? part.report.gpus
                : [];
          for (const gpu of gpus)
            expect(gpu.usedBytes ?? 0).toBeLessThanOrEqual(gpu.totalBytes ?? Number.POSITIVE_INFINITY);
        }
      });
    }
  });
}

describe('a saved session', () => {
  it('is split at its prompts, and each output goes to the parser of its command', () => {
    const session = [
      '# source: this test',
      '$ nvidia-smi --query-gpu=index,name,memory.total,memory.used --format=csv,noheader,nounits',
      '0, NVIDIA GeForce RTX 3060, 12288, 1024',
      '1, NVIDIA GB10, [N/A], [N/A]',
      '$ nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv,noheader,nounits',
      '4242, /opt/app with, comma/bin, 512',
    ].join('\n');
    const parts = splitCapture(session).map(parsePart);
    expect(only(parts, 'gpu-csv').gpus).toMatchObject([
      { index: 0, totalBytes: 12288 * MIB, usedBytes: 1024 * MIB },
      { index: 1, totalBytes: null, usedBytes: null },
    ]);
    expect(only(parts, 'apps-csv').processes).toMatchObject([
      { pid: 4242, name: '/opt/app with, comma/bin', bytes: 512 * MIB },
    ]);
  });
});
