import { setTimeout as sleep } from 'node:timers/promises';
import { procfs } from '../process/procfs.ts';

/** A process as it was when it was seen; another one with its pid is not it. */
export interface Seen {
  readonly pid: number;
  readonly startTimeTicks: number;
}

export function see(pid: number): Seen | null {
  const stat = procfs().stat(pid);
  return stat === null ? null : { pid, startTimeTicks: stat.startTimeTicks };
}

export function isAlive(seen: Seen): boolean {
  const stat = procfs().stat(seen.pid);
  return stat !== null && stat.startTimeTicks === seen.startTimeTicks && stat.state !== 'Z';
}

export function childrenOf(parentPid: number): readonly Seen[] {
  const proc = procfs();
  return proc.pids().flatMap((pid) => {
    const stat = proc.stat(pid);
    return stat?.parentPid === parentPid ? [{ pid, startTimeTicks: stat.startTimeTicks }] : [];
  });
}

/** false: it is gone already. Only ever used on children of the demo's own router. */
export function signal(seen: Seen, name: NodeJS.Signals): boolean {
  if (!isAlive(seen)) return false;
  try {
    return process.kill(seen.pid, name);
  } catch {
    return false;
  }
}

/** Resolves once all are gone, or when the limit is over. */
export async function gone(processes: readonly Seen[], limitMs: number): Promise<void> {
  const end = performance.now() + limitMs;
  while (processes.some(isAlive) && performance.now() < end) await sleep(10);
}

/**
 * Holds a load up for as long as a large model takes to be read: the small stand-in of it would be
 * there in a moment. The process is stopped, and goes on after `forMs`.
 */
export function holdUp(pid: number, forMs: number): void {
  const seen = see(pid);
  if (seen === null || !signal(seen, 'SIGSTOP')) return;
  setTimeout(() => signal(seen, 'SIGCONT'), forMs).unref();
}
