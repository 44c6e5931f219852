import { stripSourceLines } from '../../electron/core/devices/capture-text.ts';
import {
  type MigInstance,
  NO_GPU_FIGURES,
  type NvidiaGpu,
  type NvidiaProcess,
  type NvidiaTrouble,
  parseProcessType,
} from '../../electron/core/devices/nvidia.ts';
import { memoryAnswerOf } from '../../electron/core/devices/nvidia-memory.ts';
import type { NvidiaReport } from '../../electron/core/devices/nvidia-smi-xml.ts';
import { nvidiaTroublesIn } from '../../electron/core/devices/nvidia-trouble.ts';
import {
  MIB,
  parseBytes,
  parseCount,
  parsePciAddress,
  parsePercent,
  parseSwitch,
  parseWord,
} from '../../electron/core/devices/quantity.ts';

/**
 * The table plain `nvidia-smi` prints, of drivers 390 to 610. It is the only text format that lists
 * desktop programs (type G). Long names are cut in it, at their start or end.
 */
export function parseNvidiaSmiTable(text: string): NvidiaReport {
  const body = stripSourceLines(text);
  const gpus: NvidiaGpu[] = [];
  const mig = new Map<number, MigInstance[]>();
  const processes: NvidiaProcess[] = [];
  let pending: NvidiaGpu | null = null;
  let sensorError = false;
  for (const line of body.split('\n')) {
    if (!/^\s*\|/.test(line)) continue;
    const process = processRow(line);
    if (process !== null) {
      processes.push(process);
      continue;
    }
    const cells = line
      .trim()
      .replace(/^\||\|$/g, '')
      .split('|');
    const head = gpuHead(cells);
    if (head !== null) {
      if (pending !== null) gpus.push(pending);
      pending = head;
      continue;
    }
    const row = migRow(cells);
    if (row !== null) mig.set(row.gpuIndex, [...(mig.get(row.gpuIndex) ?? []), row.instance]);
    else if (pending !== null && cells.length >= 3) {
      sensorError ||= cells.some((cell) => cell.includes('ERR!'));
      gpus.push(withFigures(pending, cells));
      pending = null;
    }
  }
  if (pending !== null) gpus.push(pending);
  return {
    driverVersion: driverVersionIn(body),
    gpus: gpus.map((gpu) => ({ ...gpu, mig: gpu.index === null ? [] : (mig.get(gpu.index) ?? []) })),
    processes: processes.map((process) => ({
      ...process,
      pciAddress: gpus.find((gpu) => gpu.index === process.gpuIndex)?.pciAddress ?? null,
    })),
    troubles: [
      ...nvidiaTroublesIn(body.replaceAll(/^\s*\|.*$/gm, '')),
      ...(sensorError ? [SENSOR_ERROR] : []),
    ],
  };
}

/** `ERR!` in a cell: the other figures of that card look sound all the same, and may not be. */
const SENSOR_ERROR: NvidiaTrouble = {
  code: 'nvidia-sensor-error',
  message:
    'A card answers ERR! for one of its sensors: see `nvidia-smi -q` for its recovery action, and restart if it asks for one.',
};

/**
 * Driver version from the banner or from `nvidia-smi --version`. Driver 610 renamed it: its old
 * line reads "Deprecated" and the kernel module's (KMD) version takes its place.
 */
export function driverVersionIn(text: string): string | null {
  const read = (label: string): string | null => {
    const found = new RegExp(`${label}\\s*:\\s*([^|\\n]*?)(?:\\s{2,}|\\s*\\||\\s*$)`, 'im').exec(text);
    const word = parseWord(found?.[1]);
    return word !== null && /^\d/.test(word) ? word : null;
  };
  return read('KMD version') ?? read('driver version');
}

/** `|   0  NVIDIA GeForce RTX 4080 ...    Off |   00000000:01:00.0  On |          N/A |` */
function gpuHead(cells: readonly string[]): NvidiaGpu | null {
  const left = /^\s*(\d+)\s+(\S.*?)\s+(On|Off|N\/A|Enabled|Disabled|WDDM|TCC|MCDM)\s*$/.exec(cells[0] ?? '');
  const middle = /^\s*((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|N\/A)\s+(On|Off|N\/A)\s*$/i.exec(
    cells[1] ?? '',
  );
  if (left === null || middle === null) return null;
  const model = left[3] ?? '';
  return {
    ...NO_GPU_FIGURES,
    index: parseCount(left[1]),
    name: parseWord(left[2]),
    pciAddress: parsePciAddress(middle[1]),
    displayActive: parseSwitch(middle[2]),
    driverModel: ['WDDM', 'TCC', 'MCDM'].includes(model) ? model : null,
  };
}

/** `|  0%   43C    P8    25W /  320W |     596MiB /  16376MiB |      0%      Default |` */
function withFigures(gpu: NvidiaGpu, cells: readonly string[]): NvidiaGpu {
  const [used, total] = (cells[1] ?? '').split('/');
  const totalBytes = total === undefined ? null : parseBytes(total, MIB);
  const usedBytes = total === undefined ? null : parseBytes(used, MIB);
  return {
    ...gpu,
    totalBytes,
    usedBytes,
    memoryAnswer: memoryAnswerOf(total === undefined ? [used?.trim() ?? null] : [total, used ?? null]),
    // The driver's reserve is in neither figure, so free can't be had by subtraction.
    freeBytes: null,
    busyPercent: parsePercent(/^\s*(\d+\s*%)/.exec(cells[2] ?? '')?.[1]),
  };
}

/** `|  0    2   0   0  |    16925MiB / 71424MiB    | 16      0 |  3   0    3    0    3 |` */
function migRow(
  cells: readonly string[],
): { readonly gpuIndex: number; readonly instance: MigInstance } | null {
  const ids = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*$/.exec(cells[0] ?? '');
  const memory = /^\s*(\d+\s*MiB)\s*\/\s*(\d+\s*MiB)\s*$/.exec(cells[1] ?? '');
  if (ids === null || memory === null) return null;
  return {
    gpuIndex: Number(ids[1]),
    instance: {
      gpuInstanceId: parseCount(ids[2]),
      computeInstanceId: parseCount(ids[3]),
      usedBytes: parseBytes(memory[1]),
      totalBytes: parseBytes(memory[2]),
    },
  };
}

/** GI and CI columns came with driver 450; older tables go straight from the card to the pid. */
function processRow(line: string): NvidiaProcess | null {
  const found =
    /^\s*\|\s*(\d+)\s+(?:(N\/A|\d+)\s+(N\/A|\d+)\s+)?(\d+)\s+([CGM](?:\+[CGM])*)\s+(.*?)\s+(\d+\s*MiB|\[?N\/A\]?|\[?Not Supported\]?|\[?Insufficient Permissions\]?|\[?Unknown Error\]?|ERR!)\s*\|?\s*$/.exec(
      line,
    );
  if (found === null) return null;
  return {
    gpuIndex: parseCount(found[1]),
    gpuUuid: null,
    pciAddress: null,
    gpuInstanceId: parseCount(found[2]),
    computeInstanceId: parseCount(found[3]),
    pid: Number(found[4]),
    type: parseProcessType(found[5]),
    name: parseWord(found[6]),
    bytes: parseBytes(found[7], MIB),
  };
}
