import { readFile } from 'node:fs/promises';
import { isErrno } from './atomic-file.ts';

/** `runtime.json`: who holds the runtime lock. Advisory: the lock alone decides. */
export interface RuntimeRecord {
  readonly schema: typeof RUNTIME_RECORD_SCHEMA;
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat, so that a reused pid is not taken for it; null where there is no /proc. */
  readonly startTimeTicks: number | null;
  /** null until it listens. */
  readonly url: string | null;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly version: string;
}

export const RUNTIME_RECORD_SCHEMA = 'vram-landlord/runtime/1';

/** null when the text is not such a record (half-written by another program, an older shape). */
export function parseRuntimeRecord(text: string): RuntimeRecord | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const fields: Readonly<Record<string, unknown>> = { ...value };
  const { pid, startTimeTicks, url, startedAt, version } = fields;
  if (fields.schema !== RUNTIME_RECORD_SCHEMA) return null;
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return null;
  if (startTimeTicks !== null && typeof startTimeTicks !== 'number') return null;
  if (url !== null && typeof url !== 'string') return null;
  if (typeof startedAt !== 'string' || typeof version !== 'string') return null;
  return { schema: RUNTIME_RECORD_SCHEMA, pid, startTimeTicks, url, startedAt, version };
}

/** Field 22 of proc(5)'s stat line: the command in field 2 may hold spaces and brackets, so count from its end. */
export function startTimeOfStat(stat: string): number | null {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[19]);
  return fields[19] !== undefined && Number.isSafeInteger(ticks) ? ticks : null;
}

export async function readRuntimeRecord(runtimeFile: string): Promise<RuntimeRecord | null> {
  try {
    return parseRuntimeRecord(await readFile(runtimeFile, 'utf8'));
  } catch {
    return null;
  }
}

/** null where there is no such process, or no /proc. */
export async function readStartTime(pid: number): Promise<number | null> {
  try {
    return startTimeOfStat(await readFile(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return null;
  }
}

/** Whether the process that wrote the record still runs; null where that can't be told. */
export async function isRecordAlive(record: RuntimeRecord): Promise<boolean | null> {
  if (record.startTimeTicks !== null) return (await readStartTime(record.pid)) === record.startTimeTicks;
  try {
    process.kill(record.pid, 0);
    return null;
  } catch (error) {
    return isErrno(error, 'ESRCH') ? false : null;
  }
}
