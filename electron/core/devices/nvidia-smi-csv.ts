import { stripSourceLines } from './capture-text.ts';
import { NO_GPU_FIGURES, type NvidiaGpu, type NvidiaProcess, type NvidiaTrouble } from './nvidia.ts';
import { memoryAnswerOf } from './nvidia-memory.ts';
import { nvidiaTroublesIn } from './nvidia-trouble.ts';
import {
  MIB,
  parseBytes,
  parseCount,
  parsePciAddress,
  parsePercent,
  parseSwitch,
  parseWord,
} from './quantity.ts';

export interface NvidiaGpuCsv {
  readonly gpus: readonly NvidiaGpu[];
  readonly troubles: readonly NvidiaTrouble[];
}

export interface NvidiaProcessCsv {
  readonly processes: readonly NvidiaProcess[];
  readonly troubles: readonly NvidiaTrouble[];
}

/**
 * Output of `nvidia-smi --query-gpu=… --format=csv[,noheader][,nounits]`. `columns` are the fields
 * asked for, in order; they may be left out when the output has its header. Bare memory figures are MiB.
 */
export function parseNvidiaSmiGpuCsv(text: string, columns: readonly string[] = []): NvidiaGpuCsv {
  const table = readTable(text, columns);
  return {
    gpus: table.rows.map((row) => ({
      ...NO_GPU_FIGURES,
      index: parseCount(pick(row, 'index')),
      uuid: parseUuid(pick(row, 'uuid', 'gpu_uuid')),
      pciAddress: parsePciAddress(pick(row, 'pci.bus_id', 'gpu_bus_id')),
      name: parseWord(pick(row, 'name', 'gpu_name')),
      totalBytes: mib(row, 'memory.total'),
      reservedBytes: mib(row, 'memory.reserved'),
      usedBytes: mib(row, 'memory.used'),
      freeBytes: mib(row, 'memory.free'),
      memoryAnswer: memoryAnswerOf(
        ['memory.total', 'memory.used', 'memory.free'].map((name) => pick(row, name)),
      ),
      busyPercent: parsePercent(pick(row, 'utilization.gpu')),
      memoryBusyPercent: parsePercent(pick(row, 'utilization.memory')),
      displayActive: parseSwitch(pick(row, 'display_active')),
      driverModel: parseWord(pick(row, 'driver_model.current')),
      migEnabled: parseSwitch(pick(row, 'mig.mode.current')),
    })),
    troubles: table.troubles,
  };
}

/**
 * Output of `nvidia-smi --query-compute-apps=…`. Desktop programs (type G) are not in it, so its
 * sum says nothing of the desktop. Windows and WSL print `[N/A]` for the bytes: null.
 */
export function parseNvidiaSmiComputeAppsCsv(
  text: string,
  columns: readonly string[] = [],
): NvidiaProcessCsv {
  const table = readTable(text, columns);
  const processes: NvidiaProcess[] = [];
  for (const row of table.rows) {
    const pid = parseCount(pick(row, 'pid'));
    if (pid === null) continue;
    processes.push({
      gpuIndex: null,
      gpuUuid: parseUuid(pick(row, 'gpu_uuid', 'uuid')),
      pciAddress: parsePciAddress(pick(row, 'gpu_bus_id', 'pci.bus_id')),
      gpuInstanceId: null,
      computeInstanceId: null,
      pid,
      type: null,
      name: parseWord(pick(row, 'process_name', 'name')),
      bytes: parseBytes(pick(row, 'used_gpu_memory', 'used_memory'), MIB),
    });
  }
  return { processes, troubles: table.troubles };
}

type Row = ReadonlyMap<string, string>;

interface Table {
  readonly rows: readonly Row[];
  readonly troubles: readonly NvidiaTrouble[];
}

function readTable(text: string, columns: readonly string[]): Table {
  const body = stripSourceLines(text);
  let names = columns.map(columnName);
  const rows: Row[] = [];
  for (const raw of body.split('\n')) {
    const line = raw.trim();
    if (line === '' || line.startsWith('$ ') || isRemark(line)) continue;
    const header = headerOf(line);
    if (header !== null) {
      names = header;
      continue;
    }
    const values = names.length === 0 ? null : splitRow(line, names);
    if (values !== null) rows.push(new Map(names.map((name, at) => [name, values[at] ?? ''])));
  }
  return { rows, troubles: nvidiaTroublesIn(body) };
}

/** What the tool says beside the table; with few columns asked for it would pass as a row. */
function isRemark(line: string): boolean {
  return (
    /^(warning|no running|no devices|failed to|unable to|field "|nvidia-smi has failed|error\b)/i.test(
      line,
    ) || /^---/.test(line)
  );
}

/** `memory.used [MiB]` → `memory.used`. */
function columnName(text: string): string {
  return text
    .trim()
    .replace(/\s*\[[^\]]*\]$/, '')
    .toLowerCase();
}

/** A line is the header when each of its cells is a field's name; a row has a figure, an id or a name with capitals. */
function headerOf(line: string): string[] | null {
  const cells = line.split(',').map((cell) => cell.trim());
  const isName = cells.every((cell) => /^[a-z][a-z0-9_.]*(\s*\[[A-Za-z%°]+\])?$/.test(cell));
  return isName && cells.some((cell) => KNOWN_FIELDS.has(columnName(cell))) ? cells.map(columnName) : null;
}

const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  ...[
    'index',
    'uuid',
    'gpu_uuid',
    'pid',
    'process_name',
    'gpu_name',
    'gpu_bus_id',
    'pci.bus_id',
    'timestamp',
  ],
  ...['memory.total', 'memory.used', 'memory.free', 'memory.reserved', 'used_memory', 'used_gpu_memory'],
  ...['utilization.gpu', 'utilization.memory', 'display_active', 'driver_version', 'mig.mode.current'],
]);

/** Fields whose text may itself hold commas; the first that is asked for takes what is left over. */
const FREE_TEXT = ['process_name', 'name', 'gpu_name', 'vbios_version', 'clocks_event_reasons.active'];

/**
 * Cells of one row. Names are not quoted and may hold commas (a browser's whole command line), so
 * the cells left and right of the free-text one are counted off from the two ends. Anything that
 * does not fit the columns (a warning, "No running processes found") is no row.
 */
function splitRow(line: string, names: readonly string[]): string[] | null {
  const loose = line.split(', ');
  const cells = loose.length >= names.length ? loose : line.split(',');
  const surplus = cells.length - names.length;
  if (surplus < 0) return null;
  let values = cells;
  if (surplus > 0) {
    const free = FREE_TEXT.map((name) => names.indexOf(name)).find((at) => at >= 0) ?? -1;
    if (free < 0) return null;
    const glue = cells === loose ? ', ' : ',';
    values = [
      ...cells.slice(0, free),
      cells.slice(free, free + surplus + 1).join(glue),
      ...cells.slice(free + surplus + 1),
    ];
  }
  const trimmed = values.map((value) => value.trim());
  return names.every((name, at) => fits(name, trimmed[at] ?? '')) ? trimmed : null;
}

/** Whether a cell can be a value of its column: what tells a row from a warning with commas in it. */
function fits(name: string, value: string): boolean {
  if (value === '' || /^\[.*\]$/.test(value) || parseWord(value) === null) return true;
  if (name === 'pid' || name === 'index') return /^\d+$/.test(value);
  if (name === 'uuid' || name === 'gpu_uuid') return /^(GPU|MIG)-/i.test(value);
  if (/^memory\.|^used_(gpu_)?memory$/.test(name)) return /^\d+(\.\d+)?( ?[KMGT]i?B)?$/.test(value);
  return true;
}

function pick(row: Row, ...names: readonly string[]): string | null {
  for (const name of names) {
    const value = row.get(name);
    if (value !== undefined) return value;
  }
  return null;
}

function mib(row: Row, name: string): number | null {
  return parseBytes(pick(row, name), MIB);
}

function parseUuid(text: string | null): string | null {
  const word = parseWord(text);
  return word !== null && /^(GPU|MIG)-/i.test(word) ? word : null;
}
