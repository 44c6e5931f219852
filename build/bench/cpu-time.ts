import { readdirSync, readFileSync } from 'node:fs';

/** Milliseconds a process and its threads have run (Documentation/scheduler/sched-stats: schedstat, ns); null: not shown. */
export function ranMs(pid: number): number | null {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const ns = tasks.map((task) =>
      Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
    );
    return ns.reduce((sum, one) => sum + one, 0) / 1e6;
  } catch {
    return null;
  }
}

/** What the machine's cores did since a moment, and for whom. */
export interface CpuShares {
  /** Of all cores, 0–1: the bench with its servers, and everybody else. */
  readonly ours: number;
  readonly others: number;
}

/** Begins to count; null: this system does not show it. */
export function cpuShares(): () => CpuShares | null {
  const before = reading();
  return () => {
    const after = reading();
    if (before === null || after === null || after.totalTicks <= before.totalTicks) return null;
    const total = after.totalTicks - before.totalTicks;
    const ours = Math.max(0, after.ourTicks - before.ourTicks) / total;
    return { ours, others: Math.max(0, (after.busyTicks - before.busyTicks) / total - ours) };
  };
}

function reading(): {
  readonly totalTicks: number;
  readonly busyTicks: number;
  readonly ourTicks: number;
} | null {
  try {
    const [first = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
    // proc_stat(5): user nice system idle iowait irq softirq steal; guests are in user already.
    const ticks = first.split(/\s+/).slice(1, 9).map(Number);
    const totalTicks = ticks.reduce((sum, one) => sum + one, 0);
    const idleTicks = (ticks[3] ?? 0) + (ticks[4] ?? 0);
    return { totalTicks, busyTicks: totalTicks - idleTicks, ourTicks: familyTicks(process.pid) };
  } catch {
    return null;
  }
}

function familyTicks(root: number): number {
  const stats = new Map<number, { readonly parent: number; readonly ticks: number }>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8');
      // The program's name stands in parentheses and may hold any character.
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      stats.set(Number(name), {
        parent: Number(fields[1]),
        ticks: Number(fields[11]) + Number(fields[12]),
      });
    } catch {
      // It has ended.
    }
  }
  const isOurs = (pid: number): boolean => {
    for (let at = pid; at > 1; at = stats.get(at)?.parent ?? 0) if (at === root) return true;
    return false;
  };
  return [...stats].reduce((sum, [pid, { ticks }]) => sum + (isOurs(pid) ? ticks : 0), 0);
}
