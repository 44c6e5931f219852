import { stripSourceLines } from '../../electron/core/devices/capture-text.ts';
import { type DrmClient, parseFdinfo } from '../../electron/core/devices/fdinfo.ts';
import type { NvidiaGpu, NvidiaProcess } from '../../electron/core/devices/nvidia.ts';
import {
  parseNvidiaSmiComputeAppsCsv,
  parseNvidiaSmiGpuCsv,
} from '../../electron/core/devices/nvidia-smi-csv.ts';
import { type NvidiaReport, parseNvidiaSmiXml } from '../../electron/core/devices/nvidia-smi-xml.ts';
import { parseRocmSmi, type RocmReport } from '../../electron/core/devices/rocm-smi.ts';
import type { ReadText } from '../../electron/core/devices/sysfs.ts';
import { type AmdgpuTopCard, parseAmdgpuTop } from './amdgpu-top.ts';
import { parseNvidiaSmiTable } from './nvidia-smi-table.ts';
import { parseNvidiaSmiText } from './nvidia-smi-text.ts';

/** One command of a saved session and what it printed; `command` is empty for output without a prompt. */
export interface CapturePart {
  readonly command: string;
  readonly output: string;
}

/** Splits a saved session at its `$ command` lines. */
export function splitCapture(text: string): readonly CapturePart[] {
  const parts: CapturePart[] = [];
  let command = '';
  let lines: string[] = [];
  const finish = (): void => {
    if (lines.join('').trim() !== '' || command !== '') parts.push({ command, output: lines.join('\n') });
  };
  for (const line of stripSourceLines(text).split('\n')) {
    if (line.startsWith('$ ')) {
      finish();
      command = line.slice(2);
      lines = [];
    } else lines.push(line);
  }
  finish();
  return parts;
}

export type ParsedPart =
  | { readonly kind: 'gpu-csv'; readonly gpus: readonly NvidiaGpu[] }
  | { readonly kind: 'apps-csv'; readonly processes: readonly NvidiaProcess[] }
  | { readonly kind: 'table'; readonly report: NvidiaReport }
  | { readonly kind: 'text'; readonly report: NvidiaReport }
  | { readonly kind: 'xml'; readonly report: NvidiaReport }
  | { readonly kind: 'rocm'; readonly report: RocmReport }
  | { readonly kind: 'amdgpu-top'; readonly cards: readonly AmdgpuTopCard[] }
  | { readonly kind: 'fdinfo'; readonly client: DrmClient | null }
  | { readonly kind: 'unknown' };

/** Picks the parser by the command, and by the shape of the output where there is none. */
export function parsePart({ command, output }: CapturePart): ParsedPart {
  const columns = (flag: string): readonly string[] => {
    const asked = new RegExp(`--${flag}=(\\S+)`).exec(command)?.[1] ?? '';
    return /^[\w.,]+$/.test(asked) && !asked.includes('...') ? asked.split(',') : [];
  };
  if (command.includes('--query-gpu=')) {
    return { kind: 'gpu-csv', gpus: parseNvidiaSmiGpuCsv(output, columns('query-gpu')).gpus };
  }
  if (command.includes('--query-compute-apps=')) {
    const found = parseNvidiaSmiComputeAppsCsv(output, columns('query-compute-apps'));
    return { kind: 'apps-csv', processes: found.processes };
  }
  if (output.includes('<nvidia_smi_log')) return { kind: 'xml', report: parseNvidiaSmiXml(output) };
  if (/^nvidia-smi\s+-q\b/.test(command) || /FB Memory Usage/.test(output)) {
    return { kind: 'text', report: parseNvidiaSmiText(output) };
  }
  if (/^\s*\|.*\|\s*$/m.test(output)) return { kind: 'table', report: parseNvidiaSmiTable(output) };
  if (/drm-driver/.test(output)) return { kind: 'fdinfo', client: parseFdinfo(output) };
  if (/"Total fdinfo"|"Total VRAM"/.test(output))
    return { kind: 'amdgpu-top', cards: parseAmdgpuTop(output) };
  if (/^device,|"card\d+"|^GPU\[\d+\]|low-power state/m.test(output)) {
    return { kind: 'rocm', report: parseRocmSmi(output) };
  }
  return { kind: 'unknown' };
}

/**
 * The files of a saved sysfs tree: `path: value` lines, `== path` blocks, and `$ cat path` answers.
 * `<file absent …>` stands for a file that is not there.
 */
export function sysfsCapture(text: string): {
  readonly readText: ReadText;
  readonly cards: readonly string[];
} {
  const files = new Map<string, string>();
  let block: string | null = null;
  for (const line of stripSourceLines(text).split('\n')) {
    const head = /^(?:== |\$ cat )(\S+)\s*$/.exec(line);
    const pair = /^(\/sys\/\S+): (.*)$/.exec(line);
    if (head?.[1] !== undefined) {
      block = head[1];
      files.set(block, '');
    } else if (pair?.[1] !== undefined) {
      block = null;
      if (!pair[2]?.startsWith('<file absent')) files.set(pair[1], `${pair[2] ?? ''}\n`);
    } else if (block !== null) files.set(block, `${files.get(block) ?? ''}${line}\n`);
  }
  const cards = [...files.keys()].flatMap((path) => /^\/sys\/class\/drm\/card\d+/.exec(path)?.[0] ?? []);
  return { readText: (path) => files.get(path) ?? null, cards: [...new Set(cards)] };
}
