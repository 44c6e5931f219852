import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import { processIds } from '../gate/kernel-locks.ts';

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
  const inodes = new Map<string, string>();
  for (const table of ['tcp', 'tcp6']) addInodes(inodes, readText(`/proc/net/${table}`));
  const wanted = connections.map(({ port, peerPort }) => inodes.get(`${peerPort} ${port}`) ?? null);
  const pids = new Map<string, number>();
  const missing = new Set(wanted.filter((inode) => inode !== null));
  for (const pid of processIds()) {
    if (missing.size === 0) break;
    for (const inode of socketsOf(pid)) if (missing.delete(inode)) pids.set(inode, pid);
  }
  return wanted.map((inode) => (inode === null ? null : (pids.get(inode) ?? null)));
}

/** By `own port, other port`, from /proc/net/tcp and tcp6 (proc_net_tcp(5)); state 01 is ESTABLISHED. */
export function addInodes(inodes: Map<string, string>, text: string): void {
  for (const line of text.split('\n')) {
    const [, local, remote, state, , , , , , inode] = line.trim().split(/\s+/);
    if (state !== '01' || inode === undefined || inode === '0') continue;
    inodes.set(`${portOf(local)} ${portOf(remote)}`, inode);
  }
}

function portOf(address: string | undefined): number {
  return Number.parseInt(address?.split(':')[1] ?? '', 16);
}

function socketsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap(
      (fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1] ?? [],
    );
  } catch {
    return [];
  }
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

interface Asked {
  readonly socket: Socket;
  readonly resolve: (pid: number | null) => void;
}

let asked: Asked[] = [];
/** No walk begins before this (performance.now): as long as one took, others are served. */
let restsUntilMs = 0;

/** The process at the other end; all that are asked for while one walk rests are found in the next. */
export function peerOf(socket: Socket): Promise<number | null> {
  return new Promise((resolve) => {
    if (asked.length === 0) {
      const restMs = restsUntilMs - performance.now();
      if (restMs > 0) setTimeout(findAll, restMs);
      else setImmediate(findAll);
    }
    asked.push({ socket, resolve });
  });
}

function findAll(): void {
  const all = asked;
  asked = [];
  const fromMs = performance.now();
  const found = peersOf(
    all.map(({ socket }) => ({ port: socket.localPort ?? 0, peerPort: socket.remotePort ?? 0 })),
  );
  const nowMs = performance.now();
  restsUntilMs = nowMs + (nowMs - fromMs);
  for (const [index, one] of all.entries()) one.resolve(found[index] ?? null);
}
