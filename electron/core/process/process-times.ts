import { readFileSync } from 'node:fs';
import { procfs } from './procfs.ts';
import type { ProcessTimes } from './proof.ts';

/** USER_HZ is 100 on every architecture (proc(5), sysconf(_SC_CLK_TCK)). */
const MS_PER_TICK = 10;

/**
 * CPU times of those of `pids` that still live, from one line of /proc/<pid>/stat and one of
 * schedstat each: some 40 µs, and unlike cmdline and environ they need no lock that a process stuck in a
 * driver may hold.
 */
export async function processTimes(pids: readonly number[]): Promise<readonly ProcessTimes[]> {
  const proc = procfs();
  return pids.flatMap((pid) => {
    const stat = proc.stat(pid);
    if (stat === null) return [];
    const { startTimeTicks, cpuTicks, state } = stat;
    return [{ pid, startTimeTicks, cpuMs: cpuTicks * MS_PER_TICK, state, firstThreadMs: firstThreadMs(pid) }];
  });
}

/**
 * The first number of /proc/<pid>/schedstat: nanoseconds its first thread has run (the kernel's
 * Documentation/scheduler/sched-stats.rst); null where the kernel was built without it
 * or keeps no such account (it then says 0, which no process that lives has).
 */
function firstThreadMs(pid: number): number | null {
  try {
    const match = /^(\d+) \d+ \d+\s*$/.exec(readFileSync(`/proc/${pid}/schedstat`, 'utf8'));
    const ranNs = Number(match?.[1] ?? 0);
    return ranNs > 0 ? ranNs / 1e6 : null;
  } catch {
    return null;
  }
}
