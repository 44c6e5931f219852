import type { NvidiaGpu, NvidiaProcess, NvidiaTrouble } from './nvidia.ts';
import { parseNvidiaSmiComputeAppsCsv, parseNvidiaSmiGpuCsv } from './nvidia-smi-csv.ts';
import { type NvidiaReport, parseNvidiaSmiXml } from './nvidia-smi-xml.ts';
import { nvidiaSmiTrouble, nvidiaTroublesIn } from './nvidia-trouble.ts';
import type { ToolRun } from './tool-run.ts';

export type RunSmi = (args: readonly string[]) => Promise<ToolRun>;

export type SmiAnswer =
  | { readonly ok: true; readonly report: NvidiaReport }
  | { readonly ok: false; readonly trouble: NvidiaTrouble };

const GPU_COLUMNS = [
  ...['index', 'uuid', 'pci.bus_id', 'name'],
  ...['memory.total', 'memory.reserved', 'memory.used', 'memory.free'],
  ...['utilization.gpu', 'display_active', 'mig.mode.current'],
];
const APP_COLUMNS = ['gpu_bus_id', 'gpu_uuid', 'pid', 'process_name', 'used_memory'];

/** Once the XML was of no use it is left out of this many questions: a run may take a second of the driver's time. */
const QUESTIONS_WITHOUT_XML = 20;

/**
 * Asks nvidia-smi: first its XML (`-q -x`), which lists desktop programs and MIG instances. Where
 * that can't be read, is not supported, or lacks a card's memory (very old drivers, vGPU guests, cut
 * output), the CSV queries; fields this nvidia-smi does not know are left out from then on. A failure
 * that is the driver's is the answer at once, and so is a run that did not end: it would only happen again.
 */
export function smiQuestions(run: RunSmi): () => Promise<SmiAnswer> {
  let gpuColumns = GPU_COLUMNS;
  let appColumns = APP_COLUMNS;
  let withoutXml = 0;

  /** Rows for the columns that are known, or null when the query does not work. */
  const query = async (
    flag: string,
    columns: readonly string[],
  ): Promise<{ readonly answer: ToolRun; readonly columns: string[] }> => {
    let known = [...columns];
    for (;;) {
      const answer = await run([`--${flag}=${known.join(',')}`, '--format=csv,noheader,nounits']);
      const unknown = unknownField(answer.output);
      const fewer = known.filter((name) => name !== unknown);
      if (unknown === null || fewer.length === known.length || fewer.length === 0) {
        return { answer, columns: known };
      }
      known = fewer;
    }
  };

  const askCsv = async (): Promise<SmiAnswer> => {
    const asked = await query('query-gpu', gpuColumns);
    const { gpus, troubles } = parseNvidiaSmiGpuCsv(asked.answer.output, asked.columns);
    if (asked.answer.exitCode !== 0 || gpus.length === 0) return failureOf(asked.answer);
    gpuColumns = asked.columns;
    const apps = await query('query-compute-apps', appColumns);
    if (apps.answer.exitCode === 0) appColumns = apps.columns;
    const rows = apps.answer.exitCode === 0 ? apps.answer.output : '';
    const { processes } = parseNvidiaSmiComputeAppsCsv(rows, apps.columns);
    const placed = processes.map((process) => ({ ...process, pciAddress: addressOf(process, gpus) }));
    return { ok: true, report: { driverVersion: null, gpus, processes: placed, troubles } };
  };

  return async () => {
    if (withoutXml > 0) {
      withoutXml -= 1;
      const answer = await askCsv();
      if (!answer.ok) withoutXml = 0;
      return answer;
    }
    const answer = await run(['-q', '-x']);
    const xml = parseNvidiaSmiXml(answer.output);
    if (answer.exitCode === 0 && isWhole(xml)) return { ok: true, report: xml };
    const isDrivers = answer.exitCode !== 0 && nvidiaTroublesIn(answer.output).length > 0;
    if (answer.exitCode === null || isDrivers || DRIVER_CODES.has(answer.exitCode)) return failureOf(answer);
    const csv = await askCsv();
    if (csv.ok) {
      withoutXml = xml.gpus.length === 0 ? QUESTIONS_WITHOUT_XML : 0;
      return { ok: true, report: merged(xml, csv.report) };
    }
    // A card without its figures is still a card, and is told as such.
    if (answer.exitCode === 0 && xml.gpus.length > 0) return { ok: true, report: xml };
    return answer.exitCode === 0 ? csv : failureOf(answer);
  };
}

/** nvidia-smi's exit codes that speak of the driver or a card, not of how it was asked. */
const DRIVER_CODES: ReadonlySet<number> = new Set([4, 6, 8, 9, 10, 12, 15]);

function failureOf(answer: ToolRun): SmiAnswer {
  return { ok: false, trouble: nvidiaSmiTrouble(answer.exitCode, answer.output) };
}

function isWhole(report: NvidiaReport): boolean {
  return report.gpus.length > 0 && report.gpus.every((gpu) => gpu.memoryAnswer !== 'missing');
}

/** `Field "mig.mode.current" is not a valid field to query.` */
function unknownField(output: string): string | null {
  return /field "([\w.]+)" is not a valid field to query/i.exec(output)?.[1] ?? null;
}

function addressOf(process: NvidiaProcess, gpus: readonly NvidiaGpu[]): string | null {
  return (
    process.pciAddress ??
    gpus.find((gpu) => gpu.uuid !== null && gpu.uuid === process.gpuUuid)?.pciAddress ??
    (gpus.length === 1 ? (gpus[0]?.pciAddress ?? null) : null)
  );
}

/** The XML's cards and programs, with the CSV's memory where the XML has none. */
function merged(xml: NvidiaReport, csv: NvidiaReport): NvidiaReport {
  if (xml.gpus.length === 0) return csv;
  const gpus = xml.gpus.map((gpu) => {
    if (gpu.memoryAnswer !== 'missing') return gpu;
    const other = csv.gpus.find((entry) => entry.pciAddress !== null && entry.pciAddress === gpu.pciAddress);
    if (other === undefined) return gpu;
    const { totalBytes, reservedBytes, usedBytes, freeBytes, memoryAnswer } = other;
    return {
      ...gpu,
      ...{ totalBytes, reservedBytes, usedBytes, freeBytes, memoryAnswer },
      busyPercent: gpu.busyPercent ?? other.busyPercent,
    };
  });
  const missing = csv.gpus.filter(
    (gpu) => gpu.pciAddress !== null && !gpus.some((entry) => entry.pciAddress === gpu.pciAddress),
  );
  return {
    ...xml,
    gpus: [...gpus, ...missing],
    processes: xml.processes.length > 0 ? xml.processes : csv.processes,
  };
}
