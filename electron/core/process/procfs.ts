import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { memoryVariables } from '../ledger/footprint/environment-flags.ts';
import { unitOfCgroup } from './control-group.ts';
import type { ProcessFacts, ServerQuery } from './identity.ts';
import { listeningSockets } from './listening.ts';
import {
  environValue,
  flagValue,
  type ProcStat,
  parseCmdline,
  parsePss,
  parseStat,
  parseStatmResident,
  parseUid,
  socketInode,
} from './procfs-text.ts';
import { isModelRunner, serverProgram } from './programs.ts';

/** USER_HZ is 100 on every architecture Linux runs Electron on; clock ticks in /proc are in it. */
const MS_PER_TICK = 10;

const AT_PAGESZ = 6n;
let knownPageBytes: number | null = null;

/** Page size from the auxiliary vector (getauxval(3)): 4, 16 or 64 KiB on arm64. */
function machinePageBytes(): number {
  knownPageBytes ??= readPageBytes();
  return knownPageBytes;
}

function readPageBytes(): number {
  try {
    const words = readFileSync('/proc/self/auxv');
    for (let at = 0; at + 16 <= words.length; at += 16) {
      if (words.readBigUInt64LE(at) === AT_PAGESZ) return Number(words.readBigUInt64LE(at + 8));
    }
  } catch {
    // Not Linux, or /proc is not mounted: nothing of it will be read then.
  }
  return 4096;
}

/**
 * Reads /proc. Reads of a process stuck in a driver may block (its cmdline and environ need its
 * memory lock), so only short-lived children and the sampler child use this. Unreadable is null.
 */
export interface ProcReader {
  readonly pageBytes: number;
  /** Every pid there is now. */
  pids(): readonly number[];
  stat(pid: number): ProcStat | null;
  /** argv; null where it can't be read, empty for a kernel thread or a zombie. */
  command(pid: number): readonly string[] | null;
  /** Resident bytes; null when the process is gone. */
  residentBytes(pid: number): number | null;
  /** Proportional bytes; costs a walk of the page tables. null without permission. */
  proportionalBytes(pid: number): number | null;
  /** Facts of those that exist, in the order asked for. */
  facts(pids: readonly number[]): readonly ProcessFacts[];
  /** Processes that have `--port <port>` on their command line or listen on that port; without a port, those that name the file. */
  find(query: ServerQuery): readonly ProcessFacts[];
  /** Inference servers of kinds we know, and what they started, by their command lines. */
  servers(): readonly ProcessFacts[];
}

/** `root` is where proc is mounted; tests give a tree of plain files. */
export function procfs(root = '/proc', pageBytes = machinePageBytes()): ProcReader {
  const text = (path: string): string | null => {
    try {
      return readFileSync(`${root}/${path}`, 'utf8');
    } catch {
      return null;
    }
  };
  const list = (path: string): readonly string[] | null => {
    try {
      return readdirSync(`${root}/${path}`);
    } catch {
      return null;
    }
  };

  const pids = (): readonly number[] =>
    (list('') ?? []).flatMap((entry) => (/^\d+$/.test(entry) ? [Number(entry)] : []));

  const stat = (pid: number): ProcStat | null => {
    const found = text(`${pid}/stat`);
    return found === null ? null : parseStat(found);
  };

  const command = (pid: number): readonly string[] | null => {
    const found = text(`${pid}/cmdline`);
    return found === null ? null : parseCmdline(found);
  };

  /** Port by socket inode, in the network namespace of `pid`; a container's sockets are in its own. */
  const listeningIn = (pid: number | null): ReadonlyMap<string, number> => {
    const base = pid === null ? 'net' : `${pid}/net`;
    return new Map(listeningSockets(`${root}/${base}`).map(({ inode, port }) => [inode, port]));
  };

  const socketsOf = (pid: number): readonly string[] | null => {
    const entries = list(`${pid}/fd`);
    if (entries === null) return null;
    const inodes: string[] = [];
    for (const entry of entries) {
      try {
        const inode = socketInode(readlinkSync(`${root}/${pid}/fd/${entry}`));
        if (inode !== null) inodes.push(inode);
      } catch {
        // Closed since the directory was read.
      }
    }
    return inodes;
  };

  const namespaceOf = (pid: number): string => {
    try {
      return readlinkSync(`${root}/${pid}/ns/net`);
    } catch {
      return `of ${pid}`;
    }
  };

  const portsOf = (
    pid: number,
    tables: Map<string, ReadonlyMap<string, number>>,
  ): readonly number[] | null => {
    const inodes = socketsOf(pid);
    if (inodes === null) return null;
    if (inodes.length === 0) return [];
    const namespace = namespaceOf(pid);
    const ports = tables.get(namespace) ?? listeningIn(pid);
    tables.set(namespace, ports);
    const found = inodes.flatMap((inode) => ports.get(inode) ?? []);
    return [...new Set(found)].sort((a, b) => a - b);
  };

  const factsOf = (pid: number, tables: Map<string, ReadonlyMap<string, number>>): ProcessFacts | null => {
    const seen = stat(pid);
    if (seen === null) return null;
    const environ = text(`${pid}/environ`);
    const routerPort = environ === null ? null : environValue(environ, 'LLAMA_SERVER_ROUTER_PORT');
    const variables = environ === null ? [] : memoryVariables(environ);
    return {
      pid,
      startTimeTicks: seen.startTimeTicks,
      parentPid: seen.parentPid,
      parentStartTimeTicks: seen.parentPid > 0 ? (stat(seen.parentPid)?.startTimeTicks ?? null) : null,
      uid: parseUid(text(`${pid}/status`) ?? ''),
      command: command(pid),
      listeningPorts: portsOf(pid, tables),
      routerPort: routerPort !== null && /^\d{1,5}$/.test(routerPort) ? Number(routerPort) : null,
      ...(variables.length === 0 ? {} : { variables }),
      cpuMs: seen.cpuTicks * MS_PER_TICK,
      state: seen.state,
    };
  };

  // One reading for all who share a network: a busy machine's table has thousands of rows.
  const facts = (wanted: readonly number[]): readonly ProcessFacts[] => {
    const tables = new Map<string, ReadonlyMap<string, number>>();
    return wanted.flatMap((pid) => factsOf(pid, tables) ?? []);
  };

  const listens = (pid: number, inodes: ReadonlySet<string>): boolean =>
    inodes.size > 0 && (socketsOf(pid)?.some((inode) => inodes.has(inode)) ?? false);

  const find = (query: ServerQuery): readonly ProcessFacts[] => {
    const inodes = new Set<string>();
    for (const [inode, port] of listeningIn(null)) if (port === query.port) inodes.add(inode);
    const { modelFile } = query;
    const matching = pids().filter((pid) => {
      const argv = command(pid);
      const named = argv !== null && flagValue(argv, '--port') === String(query.port);
      if (query.port === 0 && modelFile !== undefined) return argv?.some((word) => word.endsWith(modelFile));
      return named || listens(pid, inodes);
    });
    return facts(matching);
  };

  const isAlone = ({ pid, parentPid }: ProcessFacts): boolean => {
    const isAdopted = parentPid === 1 || stat(parentPid)?.comm === 'systemd';
    return isAdopted && unitOfCgroup(text(`${pid}/cgroup`) ?? '') === null;
  };

  const servers = (): readonly ProcessFacts[] =>
    facts(
      pids().filter((pid) => {
        const argv = command(pid);
        return argv !== null && argv.length > 0 && (serverProgram(argv) !== null || isModelRunner(argv));
      }),
    ).map((server) => ({ ...server, isAlone: isAlone(server) }));

  return {
    pageBytes,
    pids,
    stat,
    command,
    residentBytes: (pid) => parseStatmResident(text(`${pid}/statm`) ?? '', pageBytes),
    proportionalBytes: (pid) => parsePss(text(`${pid}/smaps_rollup`) ?? ''),
    facts,
    find,
    servers,
  };
}
