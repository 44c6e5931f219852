import type { ProcReader } from '../../process/procfs.ts';

export interface Relative {
  readonly pid: number;
  readonly startTimeTicks: number;
}

/**
 * All that descends from `root`, itself left out, zombies too: they hold nothing any more. What was left
 * by its parent counts while `root` is the one that such processes go to (a child subreaper, prctl(2)).
 */
export function descendants(proc: Pick<ProcReader, 'pids' | 'stat'>, root: number): readonly Relative[] {
  const children = new Map<
    number,
    { readonly pid: number; readonly startTimeTicks: number; readonly state: string }[]
  >();
  for (const pid of proc.pids()) {
    const stat = proc.stat(pid);
    if (stat === null) continue;
    children.set(stat.parentPid, [...(children.get(stat.parentPid) ?? []), { ...stat }]);
  }
  const found: Relative[] = [];
  let level = children.get(root) ?? [];
  while (level.length > 0) {
    for (const one of level) {
      if (one.state !== 'Z') found.push({ pid: one.pid, startTimeTicks: one.startTimeTicks });
    }
    level = level.flatMap((one) => children.get(one.pid) ?? []);
  }
  return found;
}
