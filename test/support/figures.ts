import { readdirSync, readFileSync } from 'node:fs';
import { procfs } from '../../electron/core/process/procfs.ts';

/** Prints one measured figure, so that every run of the tests shows it. Nothing is judged by it. */
export function figure(what: string, value: string): void {
  console.log(`figure: ${what}: ${value}`);
}

/** `median 2.1 ms, worst 4.0 ms of 20` */
export function spread(timesMs: readonly number[]): string {
  const sorted = [...timesMs].sort((one, other) => one - other);
  const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  const worst = sorted.at(-1) ?? Number.NaN;
  return `median ${milliseconds(median)}, worst ${milliseconds(worst)} of ${sorted.length}`;
}

export function milliseconds(ms: number): string {
  return ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

export interface ProcessCost {
  readonly pid: number;
  readonly cpuMs: number;
  readonly residentBytes: number;
  /** Shared pages counted in part, so that processes can be added up. */
  readonly proportionalBytes: number;
}

/** What a living process has used so far; throws when it can't be read. */
export function costOf(pid: number): ProcessCost {
  const stat = procfs().stat(pid);
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  if (stat === null) throw new Error(`process ${pid} can't be read`);
  return {
    pid,
    cpuMs: stat.cpuTicks * 10,
    residentBytes: kibibytes(rollup, 'Rss'),
    proportionalBytes: kibibytes(rollup, 'Pss'),
  };
}

function kibibytes(rollup: string, field: string): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(rollup)?.[1];
  if (found === undefined) throw new Error(`${field} is not in smaps_rollup`);
  return Number(found) * 1024;
}

/** Pids of a process's children, whichever of its threads started them (proc(5)). */
export function childrenOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
      .split(' ')
      .filter((word) => word !== '')
      .map(Number),
  );
}
