import { procfs } from '../../electron/core/process/procfs.ts';

/** Those of them that run; a zombie does not. */
export function alive(pids: readonly number[]): readonly number[] {
  const proc = procfs();
  return pids.filter((pid) => {
    const stat = proc.stat(pid);
    return stat !== null && stat.state !== 'Z';
  });
}
