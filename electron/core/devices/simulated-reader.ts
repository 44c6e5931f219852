import { parsePercent, plausibleBytes } from './quantity.ts';
import type { DeviceReader, Reading } from './reader.ts';
import { isRecord, parseJson } from './rocm-smi.ts';
import type { DeviceSample, ProcessMemory } from './sample.ts';
import type { ReadText } from './sysfs.ts';

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
}

/** null: not a whole file (its writer is at it), so that the reader keeps what it had. */
export function parseSimulatedCard(text: string): SimulatedCard | null {
  const value = parseJson(text);
  if (!isRecord(value)) return null;
  const bytes = (field: unknown): number | null =>
    typeof field === 'number' && Number.isSafeInteger(field) ? plausibleBytes(field) : null;
  const flag = (field: unknown): boolean | null => (typeof field === 'boolean' ? field : null);
  const totalBytes = bytes(value.totalBytes);
  const rows: readonly unknown[] = Array.isArray(value.processes) ? value.processes : [];
  return {
    name: typeof value.name === 'string' ? value.name : 'Simulated card',
    totalBytes,
    usedBytes: plausibleBytes(bytes(value.usedBytes), totalBytes),
    gttUsedBytes: bytes(value.gttUsedBytes),
    busyPercent: typeof value.busyPercent === 'number' ? parsePercent(String(value.busyPercent)) : null,
    drivesDisplay: flag(value.drivesDisplay),
    evictionUnderWay: 'evictionUnderWay' in value ? flag(value.evictionUnderWay) : undefined,
    processes: rows.filter(isRecord).flatMap((row) =>
      typeof row.pid === 'number' && Number.isInteger(row.pid)
        ? [
            {
              pid: row.pid,
              name: typeof row.name === 'string' ? row.name : `process ${row.pid}`,
              bytes: bytes(row.bytes),
              type: row.type === 'C' || row.type === 'G' || row.type === 'C+G' ? row.type : null,
            },
          ]
        : [],
    ),
  };
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
      last = { devices: [sampleOf(card, id, nowMs, periodMs, null)], processes: rows, troubles: [] };
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
