import { procfs } from './procfs.ts';
import type { ProcessTimes } from './proof.ts';

/** USER_HZ is 100 on every architecture (proc(5), sysconf(_SC_CLK_TCK)). */
const MS_PER_TICK = 10;

/**
 * CPU times of those of `pids` that still live, from one line of /proc/<pid>/stat each: some 20 µs, and
 * unlike cmdline and environ it needs no lock that a process stuck in a driver may hold.
 */
export async function processTimes(pids: readonly number[]): Promise<readonly ProcessTimes[]> {
  const proc = procfs();
  return pids.flatMap((pid) => {
    const stat = proc.stat(pid);
    if (stat === null) return [];
    const { startTimeTicks, cpuTicks, state } = stat;
    return [{ pid, startTimeTicks, cpuMs: cpuTicks * MS_PER_TICK, state }];
  });
}
