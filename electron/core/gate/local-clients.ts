import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { commandOf } from './inspect.ts';
import { processIds } from './kernel-locks.ts';
import type { LocalClient } from './lane-bypassed.ts';

/** One end of an established connection on this machine. */
export interface SocketEnd {
  readonly port: number;
  readonly peerPort: number;
  readonly inode: string;
}

/** As /proc/net/tcp and tcp6 list them (proc_net_tcp(5)); state 01 is ESTABLISHED. */
export function establishedIn(text: string): readonly SocketEnd[] {
  return text.split('\n').flatMap((line) => {
    const [, local, remote, state, , , , , , inode] = line.trim().split(/\s+/);
    if (state !== '01' || inode === undefined || !/^[1-9]\d*$/.test(inode)) return [];
    return [{ port: portOf(local), peerPort: portOf(remote), inode }];
  });
}

function establishedHere(): readonly SocketEnd[] {
  return ['tcp', 'tcp6'].flatMap((table) => establishedIn(readText(`/proc/net/${table}`)));
}

/** Inodes of the sockets a process has open; none where it may not be looked into. */
function socketsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap(
      (fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1] ?? [],
    );
  } catch {
    return [];
  }
}

/** Processes of this machine that talk to a port, apart from `except`; those of other users may be missing. */
export function localClients(port: number, except: ReadonlySet<number> = new Set()): readonly LocalClient[] {
  const inodes = new Set(
    establishedHere()
      .filter((end) => end.peerPort === port)
      .map((end) => end.inode),
  );
  if (inodes.size === 0) return [];
  return processIds()
    .filter((pid) => !except.has(pid) && socketsOf(pid).some((inode) => inodes.has(inode)))
    .map((pid) => ({ pid, command: commandOf(pid) }));
}

/**
 * The local processes at the other ends of many connections, found in one walk over /proc: a walk for
 * each would stand still for all, where a hundred clients wait for a lane at once.
 */
export interface Connection {
  /** Ours. */
  readonly port: number;
  readonly peerPort: number;
}

/** In the order of `connections`; null: not to be seen. */
export function peersOf(connections: readonly Connection[]): readonly (number | null)[] {
  const inodes = new Map(establishedHere().map((end) => [`${end.port} ${end.peerPort}`, end.inode]));
  const wanted = connections.map(({ port, peerPort }) => inodes.get(`${peerPort} ${port}`) ?? null);
  const pids = new Map<string, number>();
  const missing = new Set(wanted.filter((inode) => inode !== null));
  for (const pid of processIds()) {
    if (missing.size === 0) break;
    for (const inode of socketsOf(pid)) if (missing.delete(inode)) pids.set(inode, pid);
  }
  return wanted.map((inode) => (inode === null ? null : (pids.get(inode) ?? null)));
}

function portOf(address: string | undefined): number {
  return Number.parseInt(address?.split(':')[1] ?? '', 16);
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
