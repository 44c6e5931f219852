import { readFileSync, readlinkSync } from 'node:fs';
import { errnoOf } from '../errno.ts';
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

/**
 * Whether that very process has ended. False also where it can't be told: of another user's whom /proc
 * hides (hidepid), and inside a pid namespace, where a process outside has no number.
 */
export function isGone({
  pid,
  startTime,
}: {
  readonly pid: number;
  readonly startTime: number | null;
}): boolean {
  if (!seesAllProcesses()) return false;
  const now = startTimeOf(pid);
  if (now !== null) return startTime !== null && now !== startTime;
  try {
    process.kill(pid, 0);
    return false;
  } catch (thrown) {
    return errnoOf(thrown) === 'ESRCH';
  }
}

/** include/uapi/linux/nsfs.h: PID_NS_INIT_INO, the inode of the first pid namespace. */
const FIRST_PID_NAMESPACE = 'pid:[4026531836]';

let seesAll: boolean | null = null;

/** A process is in one pid namespace for as long as it lives (pid_namespaces(7)). */
export function seesAllProcesses(): boolean {
  seesAll ??= isInFirst();
  return seesAll;
}

function isInFirst(): boolean {
  try {
    return readlinkSync('/proc/self/ns/pid') === FIRST_PID_NAMESPACE;
  } catch {
    return false;
  }
}
