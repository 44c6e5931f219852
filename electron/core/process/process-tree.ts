import { readdir, readFile } from 'node:fs/promises';
import { parseStat } from './procfs-text.ts';

/** A process, told apart from a later one of the same pid. */
export interface TreeMember {
  readonly pid: number;
  /** Clock ticks since boot; null: not known, so any process of that pid is meant. */
  readonly startTimeTicks: number | null;
}

/** A job of more processes than this is measured by the first of them. */
const MOST = 4096;

/**
 * The processes of `roots` that are still there, and all that descend from them. Children come from
 * /proc/<pid>/task/<tid>/children (proc(5); CONFIG_PROC_CHILDREN, which distributions set): the kernel
 * keeps that list, so nothing of another process is touched. Whoever was left by its parent is found
 * only while it is given as a root itself.
 */
export async function processTree(
  roots: readonly TreeMember[],
  proc = '/proc',
): Promise<readonly TreeMember[]> {
  const found = new Map<number, TreeMember>();
  let level: readonly TreeMember[] = roots;
  while (level.length > 0 && found.size < MOST) {
    const there = (await Promise.all(level.map((member) => present(member, proc)))).filter(
      (member): member is TreeMember => member !== null && !found.has(member.pid),
    );
    for (const member of there) found.set(member.pid, member);
    const children = await Promise.all(there.map((member) => childrenOf(member.pid, proc)));
    level = children
      .flat()
      .filter((pid) => !found.has(pid))
      .map((pid) => ({ pid, startTimeTicks: null }));
  }
  return [...found.values()];
}

async function present(member: TreeMember, proc: string): Promise<TreeMember | null> {
  const stat = parseStat(await readText(`${proc}/${member.pid}/stat`));
  if (stat === null) return null;
  if (member.startTimeTicks !== null && member.startTimeTicks !== stat.startTimeTicks) return null;
  return { pid: member.pid, startTimeTicks: stat.startTimeTicks };
}

async function childrenOf(pid: number, proc: string): Promise<readonly number[]> {
  const threads = await readdir(`${proc}/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    threads.map((thread) => readText(`${proc}/${pid}/task/${thread}/children`)),
  );
  return lists.flatMap((text) => (text.match(/\d+/g) ?? []).map(Number));
}

function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
