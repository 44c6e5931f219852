/**
 * The text formats of proc(5), as pure functions. A text that was cut short or is of another shape
 * gives null, never a guess.
 */
export interface ProcStat {
  readonly pid: number;
  /** Field 2, at most 15 bytes; may hold spaces and parentheses. */
  readonly comm: string;
  /** R, S, D, Z, T, … */
  readonly state: string;
  readonly parentPid: number;
  /** utime + stime in clock ticks. */
  readonly cpuTicks: number;
  /** Field 22, clock ticks since boot. */
  readonly startTimeTicks: number;
}

/** `/proc/<pid>/stat`. The name ends at the LAST parenthesis: it may hold any character itself. */
export function parseStat(text: string): ProcStat | null {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 0 || close < open) return null;
  const pid = Number(text.slice(0, open).trim());
  const fields = text
    .slice(close + 1)
    .trim()
    .split(/\s+/);
  // Field 3 (state) is fields[0], so field n is fields[n - 3].
  const numeric = (field: number): number => Number(fields[field - 3] ?? 'NaN');
  const state = fields[0] ?? '';
  const values = [pid, numeric(4), numeric(14), numeric(15), numeric(22)];
  if (!/^[A-Za-z]$/.test(state) || values.some((value) => !Number.isSafeInteger(value))) return null;
  return {
    pid,
    comm: text.slice(open + 1, close),
    state,
    parentPid: numeric(4),
    cpuTicks: numeric(14) + numeric(15),
    startTimeTicks: numeric(22),
  };
}

/** `/proc/<pid>/cmdline`: argv, NUL-terminated. Empty for a kernel thread or a zombie. */
export function parseCmdline(text: string): readonly string[] {
  if (text === '') return [];
  const parts = text.split('\0');
  if (parts.at(-1) === '') parts.pop();
  return parts;
}

/** Effective user id of `/proc/<pid>/status`; null when the line is not there. */
export function parseUid(text: string): number | null {
  const found = /^Uid:\s*\d+\s+(\d+)\s/m.exec(text);
  return found?.[1] === undefined ? null : Number(found[1]);
}

/** One variable of `/proc/<pid>/environ`; null when it is not set. */
export function environValue(text: string, name: string): string | null {
  const prefix = `${name}=`;
  const entry = text.split('\0').find((line) => line.startsWith(prefix));
  return entry === undefined ? null : entry.slice(prefix.length);
}

/** Resident bytes of `/proc/<pid>/statm` (field 2, in pages). */
export function parseStatmResident(text: string, pageBytes: number): number | null {
  const pages = /^\d+\s+(\d+)\s/.exec(text)?.[1];
  return pages === undefined ? null : Number(pages) * pageBytes;
}

/** Proportional set size of `/proc/<pid>/smaps_rollup`, in bytes: shared pages are divided among their users. */
export function parsePss(text: string): number | null {
  const kib = /^Pss:\s*(\d+)\s*kB$/m.exec(text)?.[1];
  return kib === undefined ? null : Number(kib) * 1024;
}

export interface ListeningSocket {
  readonly port: number;
  readonly inode: string;
}

/** Listening sockets (state 0A) of `/proc/net/tcp` or `/proc/net/tcp6`. */
export function parseListening(text: string): readonly ListeningSocket[] {
  const found: ListeningSocket[] = [];
  for (const line of text.split('\n')) {
    const row = /^\s*\d+:\s+[0-9A-F]+:([0-9A-F]{4})\s+[0-9A-F]+:[0-9A-F]{4}\s+0A\s/i.exec(line);
    if (row?.[1] === undefined) continue;
    // sl, local, remote, st, tx:rx, tr:when, retrnsmt, uid, timeout, inode
    const inode = line.trim().split(/\s+/)[9];
    if (inode !== undefined && /^\d+$/.test(inode)) found.push({ port: Number.parseInt(row[1], 16), inode });
  }
  return found;
}

/** `socket:[12345]` → `12345`; null for anything else a descriptor may point to. */
export function socketInode(link: string): string | null {
  return /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? null;
}

/** Value of a flag in argv, written `--port 8080` or `--port=8080`; the last one wins, as in most parsers. */
export function flagValue(command: readonly string[], ...flags: readonly string[]): string | null {
  let value: string | null = null;
  command.forEach((argument, at) => {
    for (const flag of flags) {
      if (argument === flag) value = command[at + 1] ?? null;
      else if (argument.startsWith(`${flag}=`)) value = argument.slice(flag.length + 1);
    }
  });
  return value;
}
