import { parsePercent, plausibleBytes } from './quantity.ts';
import type { DeviceReader, Reading } from './reader.ts';
import { isRecord, parseJson } from './rocm-smi.ts';
import type { DeviceSample, ProcessMemory } from './sample.ts';
import type { ReadText } from './sysfs.ts';
import { shortName } from './wording.ts';

/** What the demo's and the tests' card file holds: see DeviceSetting `simulated`. */
export interface SimulatedCard {
  readonly name: string;
  readonly totalBytes: number | null;
  readonly usedBytes: number | null;
  readonly gttUsedBytes: number | null;
  readonly busyPercent: number | null;
  readonly drivesDisplay: boolean | null;
  readonly evictionUnderWay: boolean | null | undefined;
  readonly processes: readonly Pick<ProcessMemory, 'pid' | 'name' | 'bytes' | 'type'>[];
  /** What can't be in the file, and so is unknown; parts of sentences. */
  readonly faults: readonly string[];
}

/** A simulated program has no process, so its pid may be one that the kernel never gives out (pid_t is 32 bits wide). */
const MOST_PID = 2 ** 31 - 1;

/** null: not a whole file (its writer is at it), so that the reader keeps what it had. */
export function parseSimulatedCard(text: string): SimulatedCard | null {
  const value = parseJson(text) ?? parseJson(quoteNonNumbers(text));
  if (!isRecord(value)) return null;
  const faults: string[] = [];
  const bytes = (key: string, mostBytes: number | null): number | null => {
    const field = value[key];
    const found = plausibleFigure(field, mostBytes);
    if (found === null && field !== undefined && field !== null) {
      faults.push(`${key} is ${shown(field)}, which can’t be`);
    }
    return found;
  };
  const flag = (field: unknown): boolean | null => (typeof field === 'boolean' ? field : null);
  const totalBytes = bytes('totalBytes', null);
  const rows: readonly unknown[] = Array.isArray(value.processes) ? value.processes : [];
  return {
    name: typeof value.name === 'string' ? shortName(value.name, 'Simulated card') : 'Simulated card',
    totalBytes,
    usedBytes: bytes('usedBytes', totalBytes),
    gttUsedBytes: bytes('gttUsedBytes', null),
    busyPercent: typeof value.busyPercent === 'number' ? parsePercent(String(value.busyPercent)) : null,
    drivesDisplay: flag(value.drivesDisplay),
    evictionUnderWay: 'evictionUnderWay' in value ? flag(value.evictionUnderWay) : undefined,
    processes: rows.flatMap((row, at) => {
      const process = processOf(row, totalBytes);
      if (process === null) faults.push(`row ${at + 1} of processes is ${shown(row)}, which can’t be`);
      return process === null ? [] : [process];
    }),
    faults,
  };
}

function processOf(row: unknown, totalBytes: number | null): SimulatedCard['processes'][number] | null {
  if (!isRecord(row)) return null;
  const { pid } = row;
  if (typeof pid !== 'number' || !Number.isInteger(pid) || pid < 1 || pid > MOST_PID) return null;
  const bytes = plausibleFigure(row.bytes, totalBytes);
  if (bytes === null && row.bytes !== undefined && row.bytes !== null) return null;
  return {
    pid,
    name: typeof row.name === 'string' ? row.name : `process ${pid}`,
    bytes,
    type: row.type === 'C' || row.type === 'G' || row.type === 'C+G' ? row.type : null,
  };
}

function plausibleFigure(field: unknown, mostBytes: number | null): number | null {
  return typeof field === 'number' && Number.isSafeInteger(field) ? plausibleBytes(field, mostBytes) : null;
}

/** Writers in other languages put out NaN and Infinity, which are no JSON. */
function quoteNonNumbers(text: string): string {
  return text.replaceAll(/:\s*(-?(?:NaN|Infinity))\b/g, ':"$1"');
}

function shown(field: unknown): string {
  return (typeof field === 'string' ? field : (JSON.stringify(field) ?? 'nothing')).slice(0, 80);
}

/** Re-reads the file each turn. A half-written one keeps the last reading and its time, so that it grows stale by itself. */
export function simulatedReader(
  readText: ReadText,
  path: string,
  id: string,
  startTimeOf: (pid: number) => number | null,
  periodMs: number,
): DeviceReader {
  let last: Reading | null = null;
  const missing = (nowMs: number): Reading => {
    const error = `The simulated card’s file can’t be read or is not whole: ${path}.`;
    return {
      devices: [sampleOf(null, id, nowMs, periodMs, error)],
      processes: [],
      troubles: [{ code: 'simulated-unreadable', message: error, deviceId: id }],
    };
  };
  return {
    read: ({ nowMs, processes }) => {
      const text = readText(path);
      const card = text === null ? null : parseSimulatedCard(text);
      if (card === null) return last === null ? missing(nowMs) : { ...last, processes: [] };
      const rows = processes
        ? card.processes.map(
            (row): ProcessMemory => ({
              ...row,
              startTimeTicks: startTimeOf(row.pid),
              deviceId: id,
              gttBytes: null,
              source: 'nvml',
            }),
          )
        : [];
      const troubles = card.faults.slice(0, 1).map((fault) => ({
        code: 'simulated-figure',
        message: `${card.name}: in its file ${fault}; it counts as unknown, and nothing is decided on it. Correct ${path}.`,
        deviceId: id,
      }));
      last = { devices: [sampleOf(card, id, nowMs, periodMs, null)], processes: rows, troubles };
      return last;
    },
    close: () => {},
  };
}

function sampleOf(
  card: SimulatedCard | null,
  id: string,
  takenAtMs: number,
  periodMs: number,
  error: string | null,
): DeviceSample {
  const totalBytes = card?.totalBytes ?? null;
  const usedBytes = card?.usedBytes ?? null;
  return {
    id,
    kind: 'simulated',
    memory: 'discrete',
    name: card?.name ?? 'Simulated card',
    pciAddress: null,
    drivesDisplay: card?.drivesDisplay ?? null,
    power: 'active',
    totalBytes,
    usedBytes,
    freeBytes: totalBytes === null || usedBytes === null ? null : totalBytes - usedBytes,
    gttTotalBytes: null,
    gttUsedBytes: card?.gttUsedBytes ?? null,
    hostAvailableBytes: null,
    busyPercent: card?.busyPercent ?? null,
    ...(card?.evictionUnderWay === undefined ? {} : { evictionUnderWay: card.evictionUnderWay }),
    source: 'simulated',
    takenAtMs,
    periodMs,
    notes: [],
    error,
  };
}
