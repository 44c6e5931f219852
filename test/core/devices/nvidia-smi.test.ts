import { describe, expect, it } from 'vitest';
import { migUsedBytes } from '../../../electron/core/devices/nvidia.ts';
import {
  parseNvidiaSmiComputeAppsCsv,
  parseNvidiaSmiGpuCsv,
} from '../../../electron/core/devices/nvidia-smi-csv.ts';
import { parseNvidiaSmiXml } from '../../../electron/core/devices/nvidia-smi-xml.ts';
import { nvidiaSmiTrouble, nvidiaTroublesIn } from '../../../electron/core/devices/nvidia-trouble.ts';
import { readFixture } from '../../support/evidence.ts';
import { driverVersionIn, parseNvidiaSmiTable } from '../../support/nvidia-smi-table.ts';
import { parseNvidiaSmiText } from '../../support/nvidia-smi-text.ts';

const MIB = 1024 * 1024;
const ASKED = ['index', 'name', 'memory.total', 'memory.used', 'utilization.gpu'];

describe('nvidia-smi CSV', () => {
  it('a process name with commas stays one cell, and its bytes stay its own', () => {
    const { processes } = parseNvidiaSmiComputeAppsCsv(readFixture('devices/smi-apps.csv'));
    expect(processes[0]).toMatchObject({
      pid: 811,
      bytes: 321 * MIB,
      pciAddress: '0000:21:00.0',
      name: '/opt/app/app --type=gpu-process --handle=7,i,99,262144 --names=a, b, c',
    });
  });

  it('what the driver may not or can not tell is unknown, never 0', () => {
    const { processes } = parseNvidiaSmiComputeAppsCsv(readFixture('devices/smi-apps.csv'));
    expect(processes[1]).toMatchObject({ pid: 812, name: null, bytes: null });
    expect(processes[2]).toMatchObject({ pid: 813, bytes: null });
    for (const word of [
      '[N/A]',
      '[Not Supported]',
      '[Unknown Error]',
      '[Insufficient Permissions]',
      'ERR!',
      '',
    ]) {
      const { gpus } = parseNvidiaSmiGpuCsv(`0, Card, ${word}, ${word}, ${word}`, ASKED);
      expect(gpus).toMatchObject([{ totalBytes: null, usedBytes: null, busyPercent: null }]);
    }
  });

  it('a program the driver can’t name has no name', () => {
    const text = 'pid, process_name, used_gpu_memory [MiB]\n1234, [Not Found], 512 MiB\n';
    expect(parseNvidiaSmiComputeAppsCsv(text).processes).toMatchObject([
      { pid: 1234, name: null, bytes: 512 * MIB },
    ]);
  });

  it('reads with units and without, with a header and without', () => {
    const bare = parseNvidiaSmiGpuCsv('1, Card, 100, 7, 3', ASKED).gpus;
    const full = parseNvidiaSmiGpuCsv(
      'index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%]\n1, Card, 100 MiB, 7 MiB, 3 %',
    ).gpus;
    expect(bare).toEqual(full);
    expect(bare).toMatchObject([{ index: 1, totalBytes: 100 * MIB, usedBytes: 7 * MIB, busyPercent: 3 }]);
  });

  it('remarks before, after and instead of rows are no rows', () => {
    const text =
      'WARNING: infoROM is corrupted at gpu 0000:01:00.0\n0, Card, with, comma, 100, 7, 3\nNo running processes found';
    const answer = parseNvidiaSmiGpuCsv(text, ASKED);
    expect(answer.gpus).toMatchObject([{ index: 0, name: 'Card, with, comma', usedBytes: 7 * MIB }]);
    expect(answer.troubles.map(({ code }) => code)).toEqual(['nvidia-inforom']);
    expect(
      parseNvidiaSmiComputeAppsCsv('No running processes found', ['pid', 'used_memory']).processes,
    ).toEqual([]);
    const lost = 'Unable to determine the device handle for GPU0000:02:00.0: Unknown Error';
    expect(parseNvidiaSmiGpuCsv(lost, ['name'])).toMatchObject({
      gpus: [],
      troubles: [{ code: 'nvidia-gpu-lost' }],
    });
  });
});

describe('nvidia-smi table', () => {
  const report = parseNvidiaSmiTable(readFixture('devices/smi-table-390.txt'));

  it('reads tables from before MIG columns', () => {
    expect(report.gpus).toMatchObject([
      {
        index: 0,
        name: 'GeForce GTX 950',
        usedBytes: 412 * MIB,
        totalBytes: 1999 * MIB,
        displayActive: true,
      },
      {
        index: 1,
        name: 'Quadro K600',
        usedBytes: 1 * MIB,
        totalBytes: 978 * MIB,
        displayActive: null,
        busyPercent: null,
      },
    ]);
  });

  it('lists desktop programs, with spaces in their names, under the card they are on', () => {
    expect(
      report.processes.map(({ pid, type, name, bytes, pciAddress }) => [pid, type, name, bytes, pciAddress]),
    ).toEqual([
      [1201, 'G', '/usr/lib/xorg/Xorg', 201 * MIB, '0000:02:00.0'],
      [1302, 'C+G', '/opt/tool with space/bin', 150 * MIB, '0000:02:00.0'],
      [1303, 'C', 'nvidia-cuda-mps-server', 25 * MIB, '0000:02:00.0'],
    ]);
  });

  it('free is not worked out from a table that leaves the reserve out', () => {
    expect(report.gpus[0]?.freeBytes).toBeNull();
  });

  it('the driver version is a version, whatever its label', () => {
    expect(
      driverVersionIn('DRIVER version : Deprecated, see "KMD version" instead\nKMD version : 611.1'),
    ).toBe('611.1');
    expect(driverVersionIn('| NVIDIA-SMI 540.3.0   Driver Version: N/A    CUDA Version: 12.2 |')).toBeNull();
  });
});

describe('nvidia-smi -q -x', () => {
  const report = parseNvidiaSmiXml(`<!-- # source: saved -->\n${readFixture('devices/smi-full.xml')}`);

  it('the card’s own memory is not mixed up with its MIG instances’', () => {
    expect(report.gpus[0]).toMatchObject({
      totalBytes: 24576 * MIB,
      usedBytes: 3020 * MIB,
      migEnabled: true,
    });
  });

  it('a GPU instance shared by two compute instances counts once', () => {
    expect(migUsedBytes(report.gpus[0]?.mig ?? [])).toBe(3012 * MIB);
    expect(
      migUsedBytes([{ gpuInstanceId: 1, computeInstanceId: 0, totalBytes: 5, usedBytes: null }]),
    ).toBeNull();
  });

  it('decodes entities, and takes empty names and refusals as unknown', () => {
    expect(
      report.processes.map(({ pid, name, bytes, pciAddress }) => [pid, name, bytes, pciAddress]),
    ).toEqual([
      [70, 'a & b <c> A', 2900 * MIB, '0000:17:00.0'],
      [71, null, null, '0000:17:00.0'],
      [72, 'old schema', 5 * MIB, '0000:65:00.0'],
    ]);
  });

  it('a sentinel printed as a figure is unknown', () => {
    expect(report.gpus[1]).toMatchObject({
      totalBytes: 4096 * MIB,
      usedBytes: null,
      freeBytes: null,
      displayActive: true,
    });
  });

  it('a card that asks for a reset is told', () => {
    expect(report.troubles.map(({ code }) => code)).toEqual(['nvidia-reset-required']);
  });

  it('a file cut at any point gives figures that are right or none', () => {
    const text = readFixture('devices/smi-full.xml');
    for (let end = 0; end < text.length; end += 7) {
      for (const gpu of parseNvidiaSmiXml(text.slice(0, end)).gpus) {
        expect([null, 24576 * MIB, 4096 * MIB]).toContain(gpu.totalBytes);
      }
    }
  });
});

describe('nvidia-smi -q', () => {
  const report = parseNvidiaSmiText(readFixture('devices/smi-q.txt'));

  it('takes the framebuffer’s figures, not the BAR’s', () => {
    expect(report.gpus).toMatchObject([
      {
        pciAddress: '0000:41:00.0',
        totalBytes: 23034 * MIB,
        usedBytes: 7000 * MIB,
        freeBytes: 15534 * MIB,
        busyPercent: 41,
      },
      { pciAddress: '0000:42:00.0', totalBytes: 23034 * MIB, usedBytes: 1 * MIB },
    ]);
    expect(report.driverVersion).toBe('555.20');
  });

  it('lists each process with its own fields, and takes no fault from a name', () => {
    expect(report.processes.map(({ pid, type, name, bytes }) => [pid, type, name, bytes])).toEqual([
      [900, 'C', '/usr/bin/server : gpu is lost', 6800 * MIB],
      [901, 'G', '/usr/lib/Xorg', null],
    ]);
    expect(report.troubles).toEqual([]);
  });
});

describe('nvidia-smi failures', () => {
  it.each([
    [
      255,
      'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54',
      'nvidia-driver-mismatch',
      /restart/,
    ],
    [9, '', 'nvidia-driver-not-running', /modprobe/],
    [4, 'Failed to initialize NVML: Insufficient Permissions', 'nvidia-no-permission', /group/],
    [6, 'No devices were found', 'nvidia-no-devices', /dmesg/],
    [
      15,
      'Unable to determine the device handle for gpu 0000:02:00.0: GPU is lost.',
      'nvidia-gpu-lost',
      /restart/,
    ],
    [null, '', 'nvidia-smi-no-answer', /terminal/],
    [255, 'Failed to initialize NVML: Unknown Error', 'nvidia-nvml-failed', /container anew/],
    [255, 'Failed to initialize NVML: Not Found', 'nvidia-nvml-failed', /nvidia-smi/],
    [77, 'strange words', 'nvidia-smi-exit-77', /strange words/],
  ])('exit %s says what to do', (exitCode, text, code, advice) => {
    const trouble = nvidiaSmiTrouble(exitCode, text);
    expect(trouble.code).toBe(code);
    expect(trouble.message).toMatch(advice);
  });

  it('a sound answer tells of no trouble', () => {
    expect(nvidiaTroublesIn('GPU Recovery Action : None\nFB Memory Usage')).toEqual([]);
  });
});
