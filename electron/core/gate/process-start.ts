import { readFileSync, readlinkSync } from 'node:fs';
import { parseStat } from '../process/procfs-text.ts';

let self: number | null = null;

/**
 * This process as /proc names it. In a pid namespace that still shows the /proc of the one outside, a
 * process has another number there, and its own is that of a stranger.
 */
export function ownPid(): number {
  self ??= readSelf() ?? process.pid;
  return self;
}

function readSelf(): number | null {
  try {
    const pid = Number(readlinkSync('/proc/self'));
    return Number.isSafeInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}

let own: { readonly pid: number; readonly ticks: number | null } | null = null;

/** When a process began, in clock ticks since boot: with its pid, what a reused pid can't fake. null: gone, or no /proc. */
export function startTimeOf(pid: number): number | null {
  if (own?.pid === pid) return own.ticks;
  const ticks = readStart(pid);
  if (pid === ownPid()) own = { pid, ticks };
  return ticks;
}

function readStart(pid: number): number | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.startTimeTicks ?? null;
  } catch {
    return null;
  }
}
