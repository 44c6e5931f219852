import { type KnownProgram, knownProgram } from '../process/known-programs.ts';
import { parseCmdline } from '../process/procfs-text.ts';
import type { ProcessMemory } from './sample.ts';
import type { SysTree } from './sysfs.ts';

interface Named {
  readonly startTimeTicks: number | null;
  readonly program: KnownProgram | null;
  readonly looks: number;
}

/** A process that is just being started is still its launcher: it is looked at this often. */
const LOOKS = 3;

/**
 * Gives processes on a device the names people know them by: a driver knows `python3`, `Main`, `wine64`.
 * Looked at a few times each, in the process that may be held up by a driver.
 */
export function programNames(tree: SysTree): (rows: readonly ProcessMemory[]) => readonly ProcessMemory[] {
  const known = new Map<number, Named>();

  const look = (row: ProcessMemory): KnownProgram | null => {
    const before = known.get(row.pid);
    const isSame = before !== undefined && before.startTimeTicks === row.startTimeTicks;
    if (isSame && (before.program !== null || before.looks >= LOOKS)) return before.program;
    const comm = (tree.readText(`/proc/${row.pid}/comm`) ?? '').trim();
    const argv = parseCmdline(tree.readText(`/proc/${row.pid}/cmdline`) ?? '');
    // A row may name a process of another machine or container: what is read here must be the same.
    const program =
      comm === '' || !isSameName(row.name, comm, argv)
        ? null
        : knownProgram({ comm, argv, cwd: tree.link(`/proc/${row.pid}/cwd`) });
    known.set(row.pid, { startTimeTicks: row.startTimeTicks, program, looks: isSame ? before.looks + 1 : 1 });
    return program;
  };

  return (rows) => {
    const present = new Set(rows.map((row) => row.pid));
    for (const pid of known.keys()) if (!present.has(pid)) known.delete(pid);
    return rows.map((row) => {
      const program = look(row);
      return program === null ? row : { ...row, name: program.name, sort: program.sort };
    });
  };
}

/** The driver gives the program's path, its whole command line, or the kernel's short name. */
function isSameName(name: string, comm: string, argv: readonly string[]): boolean {
  const last = (path: string): string => path.split(/[/\\]/).at(-1) ?? '';
  const short = last((name.startsWith('/') ? name.split(/\s/)[0] : name) ?? '');
  const program = last(argv[0] ?? '');
  const begins = (one: string, other: string): boolean =>
    one !== '' && other !== '' && (one.startsWith(other) || other.startsWith(one));
  return begins(short, comm) || begins(short, program);
}
