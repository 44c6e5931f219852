import { readFileSync } from 'node:fs';
import { parseStat } from '../process/procfs-text.ts';

let own: { readonly pid: number; readonly ticks: number | null } | null = null;

/** When a process began, in clock ticks since boot: with its pid, what a reused pid can't fake. null: gone, or no /proc. */
export function startTimeOf(pid: number): number | null {
  if (own?.pid === pid) return own.ticks;
  const ticks = readStart(pid);
  if (pid === process.pid) own = { pid, ticks };
  return ticks;
}

function readStart(pid: number): number | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.startTimeTicks ?? null;
  } catch {
    return null;
  }
}
