import { basename } from 'node:path/posix';
import type { ProcessFacts, Proof, ServerQuery } from './identity.ts';
import { flagValue } from './procfs-text.ts';

/** What is read of a process again and again: one line each of /proc/<pid>/stat and schedstat. */
export interface ProcessTimes extends Pick<ProcessFacts, 'pid' | 'startTimeTicks' | 'cpuMs' | 'state'> {
  /** CPU time of its first thread alone, to the microsecond; missing or null: the kernel does not tell. */
  readonly firstThreadMs?: number | null;
}

/** Where process facts come from: the sampler child in the product, /proc itself in tests. */
export interface ServerInspector {
  /**
   * Every process that listens on `query.port` or names it after `--port`; none is no error.
   * Costs a walk over /proc: asked when a server is new, not on a cadence.
   */
  find(query: ServerQuery): Promise<readonly ProcessFacts[]>;
  /** Those of `pids` that still live, with all their marks. */
  facts(pids: readonly number[]): Promise<readonly ProcessFacts[]>;
  /**
   * Those of `pids` that still live, asked about once a second. Where it is missing `facts` is asked,
   * which walks the kernel's whole socket table for each process: milliseconds instead of microseconds.
   */
  times?(pids: readonly number[]): Promise<readonly ProcessTimes[]>;
}

/**
 * Whether exactly one of `facts` is the server that `query` means (rule 10).
 *
 * A router's child must carry its port and its alias on its command line, listen on that port, be a
 * child of the router's own process, and name no other router in its environment. A plain server
 * must listen on its port and be a llama-server by its command, since a container's proxy listens in
 * the place of what it stands for. `router` is the process found for the router; null: not found.
 */
export function proveServer(
  facts: readonly ProcessFacts[],
  query: ServerQuery,
  router: ProcessFacts | null,
): Proof {
  const named = facts.filter((process) => isAlive(process) && isNamed(process, query));
  if (named.length === 0) return unproven(query, whyNoneIsNamed(facts, query));
  const portOf = (process: ProcessFacts): number => query.port || portNamedBy(process);
  if (named.every((process) => process.listeningPorts === null)) {
    return unproven(query, `the open ports of process ${pidList(named)} can't be read: another user runs it`);
  }
  const listening = named.filter((process) => process.listeningPorts?.includes(portOf(process)) === true);
  const [process] = listening;
  if (process === undefined) {
    return unproven(
      query,
      `process ${pidList(named)} names ${query.port > 0 ? `port ${query.port}` : 'a port'} but does not listen on it here, as one in a container or one that is starting`,
    );
  }
  if (listening.length > 1) {
    return unproven(query, `processes ${pidList(listening)} all match`);
  }
  if (query.routerPort === null) {
    // A container's proxy in front of another server's namespace: which of them answers can't be told.
    const other = facts.find(
      (one) => isAlive(one) && one.pid !== process.pid && one.listeningPorts?.includes(query.port) === true,
    );
    if (other !== undefined) return unproven(query, `process ${other.pid} listens on that port too`);
  }
  if (query.pid !== undefined && query.pid !== process.pid) {
    return unproven(query, `its server tells process ${query.pid}, but ${process.pid} has that port`);
  }
  const command = process.command;
  if (command === null) return unproven(query, `the command line of process ${process.pid} can't be read`);
  if (query.routerPort !== null) {
    const objection = parentObjection(process, query.routerPort, router, query.ownerName ?? 'the router');
    if (objection !== null) return unproven(query, objection);
  }
  return {
    proven: true,
    facts: process,
    identity: {
      pid: process.pid,
      startTimeTicks: process.startTimeTicks,
      command,
      ...(process.variables === undefined ? {} : { variables: process.variables }),
      port: portOf(process),
      parentPid: process.parentPid,
      parentStartTimeTicks: process.parentStartTimeTicks ?? router?.startTimeTicks ?? null,
    },
  };
}

/** Why a process that names the right port and alias is still not this router's child; null: it is. */
function parentObjection(
  process: ProcessFacts,
  routerPort: number,
  router: ProcessFacts | null,
  owner: string,
): string | null {
  if (router === null) {
    return `${owner}'s own process was not found on port ${routerPort}, so process ${process.pid} can't be shown to be its child`;
  }
  if (process.parentPid !== router.pid) {
    return `process ${process.pid} is a child of ${process.parentPid}, not of ${owner} (${router.pid})`;
  }
  if (process.parentStartTimeTicks !== null && process.parentStartTimeTicks !== router.startTimeTicks) {
    return `the parent of process ${process.pid} is not ${owner} that runs now`;
  }
  if (process.startTimeTicks < router.startTimeTicks) {
    return `process ${process.pid} is older than ${owner} that runs now`;
  }
  // Absent in older builds; present, it must agree.
  if (process.routerPort !== null && process.routerPort !== routerPort) {
    return `process ${process.pid} belongs to the router on port ${process.routerPort}, not ${routerPort}`;
  }
  return null;
}

/**
 * The router's own process, from what was found for its port: the one llama-server, or program that
 * `isOwner` knows, that listens there. null: none, or several.
 */
export function routerProcess(
  facts: readonly ProcessFacts[],
  port: number,
  isOwner: (command: readonly string[]) => boolean = isLlamaServer,
): ProcessFacts | null {
  const listening = facts.filter(
    (process) =>
      isAlive(process) &&
      process.listeningPorts?.includes(port) === true &&
      process.command !== null &&
      isOwner(process.command),
  );
  const [only] = listening;
  return only !== undefined && listening.length === 1 ? only : null;
}

/**
 * The process a server most likely is, where it can't be proven: good enough to read its CPU time,
 * never to send it a signal.
 */
export function likelyServer(facts: readonly ProcessFacts[], query: ServerQuery): ProcessFacts | null {
  const named = facts.filter((process) => isAlive(process) && isNamed(process, query));
  const [only] = named;
  return only !== undefined && named.length === 1 ? only : null;
}

/** `llama-server …`, `llama serve …` or a copy under a name that begins so; paths and `.exe` do not matter. */
export function isLlamaServer(command: readonly string[]): boolean {
  const name = basename(command[0] ?? '');
  return /^llama-server/.test(name) || (/^llama(?:\.exe)?$/.test(name) && command[1] === 'serve');
}

function isAlive(process: ProcessFacts): boolean {
  return process.state !== 'Z' && process.state !== 'X';
}

function isNamed(process: ProcessFacts, query: ServerQuery): boolean {
  if (process.command === null) return false;
  const { modelFile } = query;
  if (modelFile !== undefined && !process.command.some((word) => word.endsWith(modelFile))) return false;
  if (modelFile !== undefined && query.port === 0) return portNamedBy(process) > 0;
  if (query.routerPort === null && query.alias === null) {
    // A plain server may take its port from the environment or a default: what it listens on says it.
    const names = flagValue(process.command, '--port') === String(query.port);
    return isLlamaServer(process.command) && (names || process.listeningPorts?.includes(query.port) === true);
  }
  if (flagValue(process.command, '--port') !== String(query.port)) return false;
  if (query.alias === null) return true;
  const aliases = flagValue(process.command, '--alias', '-a');
  return aliases !== null && (aliases === query.alias || aliases.split(',').includes(query.alias));
}

/** 0: its command line names none. */
function portNamedBy(process: ProcessFacts): number {
  const port = Number(flagValue(process.command ?? [], '--port', '-port') ?? 0);
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : 0;
}

function whyNoneIsNamed(facts: readonly ProcessFacts[], query: ServerQuery): string {
  const others = facts.filter(isAlive);
  if (query.port === 0) {
    return `no process has ${query.modelFile ?? 'its file'} on its command line, as when it runs in a container`;
  }
  const [listener] = others.filter((process) => process.listeningPorts?.includes(query.port) === true);
  if (listener !== undefined) {
    const name = basename(listener.command?.[0] ?? 'unknown');
    return `what listens on port ${query.port} is process ${listener.pid} (${name}), not this server itself`;
  }
  if (others.some((process) => process.command === null)) {
    return "the command lines of other users' processes can't be read";
  }
  return query.alias === null && query.routerPort !== null
    ? `no process carries --port ${query.port}, as when it runs in a container`
    : query.alias === null
      ? `no process listens on port ${query.port}, as when it runs in a container or on another machine`
      : `no process carries --port ${query.port} and --alias ${query.alias}, as when it runs in a container`;
}

function pidList(processes: readonly ProcessFacts[]): string {
  return processes.map((process) => process.pid).join(', ');
}

function unproven(query: ServerQuery, reason: string): Proof {
  const name = query.alias ?? (query.port === 0 ? `The server of ${query.modelFile ?? 'it'}` : 'The server');
  const what = query.port === 0 ? name : `${name} on port ${query.port}`;
  return { proven: false, why: `${what} has no proven process: ${reason}. No signal will be sent to it.` };
}
