import { stripSourceLines } from '../../electron/core/devices/capture-text.ts';
import {
  NO_GPU_FIGURES,
  type NvidiaGpu,
  type NvidiaProcess,
  parseProcessType,
} from '../../electron/core/devices/nvidia.ts';
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
import { driverVersionIn } from './nvidia-smi-table.ts';

type Draft = { -readonly [K in keyof NvidiaGpu]: NvidiaGpu[K] };
type ProcessDraft = { -readonly [K in keyof NvidiaProcess]: NvidiaProcess[K] };

/**
 * Output of `nvidia-smi -q` (the indented text). Sections are told by their headings, so an excerpt
 * that starts in the middle of a card still gives what it holds.
 */
export function parseNvidiaSmiText(text: string): NvidiaReport {
  const body = stripSourceLines(text);
  const gpus: Draft[] = [];
  const processes: ProcessDraft[] = [];
  let section = '';
  let sectionIndent = 0;
  let inMig = false;
  let instance: { gpu: number | null; compute: number | null } = { gpu: null, compute: null };
  const current = (): Draft => {
    const last = gpus.at(-1);
    if (last !== undefined) return last;
    const draft: Draft = { ...NO_GPU_FIGURES, index: 0 };
    gpus.push(draft);
    return draft;
  };
  for (const raw of body.split('\n')) {
    if (raw.trim() === '' || raw.startsWith('$ ') || raw.startsWith('=')) continue;
    const indent = raw.length - raw.trimStart().length;
    const start = /^GPU\s+([0-9A-Fa-f:.]+)\s*$/.exec(raw);
    if (start !== null) {
      gpus.push({ ...NO_GPU_FIGURES, index: gpus.length, pciAddress: parsePciAddress(start[1]) });
      section = '';
      inMig = false;
      continue;
    }
    const pair = /^\s*(\S.*?)\s+:\s*(.*)$/.exec(raw);
    const key = (pair?.[1] ?? raw).trim().toLowerCase();
    const value = pair?.[2]?.trim() ?? '';
    if (pair === null) {
      if (key === 'mig devices' || key === 'mig device') inMig = true;
      else if (inMig && indent <= 4) inMig = false;
      section = key;
      sectionIndent = indent;
      continue;
    }
    if (indent <= sectionIndent && section !== 'processes') section = '';
    if (inMig && indent > 4) continue;
    inMig = false;
    if (key === 'gpu instance id') instance = { gpu: parseCount(value), compute: null };
    else if (key === 'compute instance id') instance = { ...instance, compute: parseCount(value) };
    else if (key === 'process id') {
      const pid = parseCount(value);
      const gpu = current();
      if (pid !== null) processes.push(processOf(gpu, pid, instance));
    } else if (section === 'processes' && processes.length > 0) {
      const process = processes.at(-1);
      if (process !== undefined) processField(process, key, value);
    } else if (gpus.length > 0 || section !== '') field(current(), section, key, value);
  }
  return {
    driverVersion: driverVersionIn(body),
    gpus,
    processes,
    troubles: nvidiaTroublesIn(faultLines(body)),
  };
}

function field(gpu: Draft, section: string, key: string, value: string): void {
  if (section === 'fb memory usage') {
    const bytes = parseBytes(value, MIB);
    if (key === 'total') gpu.totalBytes = bytes;
    else if (key === 'reserved') gpu.reservedBytes = bytes;
    else if (key === 'used') gpu.usedBytes = bytes;
    else if (key === 'free') gpu.freeBytes = bytes;
  } else if (section === 'utilization') {
    if (key === 'gpu') gpu.busyPercent = parsePercent(value);
    else if (key === 'memory') gpu.memoryBusyPercent = parsePercent(value);
  } else if (section === 'mig mode' && key === 'current') gpu.migEnabled = parseSwitch(value);
  else if (section === 'driver model' && key === 'current') gpu.driverModel = parseWord(value);
  else if (key === 'product name') gpu.name = parseWord(value);
  else if (key === 'gpu uuid') gpu.uuid = parseWord(value);
  else if (key === 'display active') gpu.displayActive = parseSwitch(value);
  else if (key === 'bus id') gpu.pciAddress ??= parsePciAddress(value);
}

function processOf(
  gpu: NvidiaGpu,
  pid: number,
  instance: { readonly gpu: number | null; readonly compute: number | null },
): ProcessDraft {
  return {
    gpuIndex: gpu.index,
    gpuUuid: gpu.uuid,
    pciAddress: gpu.pciAddress,
    gpuInstanceId: instance.gpu,
    computeInstanceId: instance.compute,
    pid,
    type: null,
    name: null,
    bytes: null,
  };
}

function processField(process: ProcessDraft, key: string, value: string): void {
  if (key === 'type') process.type = parseProcessType(value);
  else if (key === 'name') process.name = parseWord(value);
  else if (key === 'used gpu memory') process.bytes = parseBytes(value, MIB);
}

/** Process names may hold any words, so they are no evidence of a fault. */
function faultLines(body: string): string {
  return body
    .split('\n')
    .filter((line) => !/^\s*Name\s+:/.test(line))
    .join('\n');
}
