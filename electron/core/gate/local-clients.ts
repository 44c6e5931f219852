import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { commandOf } from './inspect.ts';
import { processIds } from './kernel-locks.ts';
import type { LocalClient } from './lane-bypassed.ts';

/**
 * Inodes of sockets connected to a port, from /proc/net/tcp and tcp6 (proc_net_tcp(5)); state 01 is
 * ESTABLISHED. `ownPort`: of one socket alone, by its own port; null: of all.
 */
export function connectedInodes(
  text: string,
  port: number,
  ownPort: number | null = null,
): readonly string[] {
  const ending = (of: number): string => `:${of.toString(16).toUpperCase().padStart(4, '0')}`;
  return text.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    const [, local, remote, state] = fields;
    const inode = fields[9];
    if (local === undefined || remote === undefined || inode === undefined || state !== '01') return [];
    if (ownPort !== null && !local.endsWith(ending(ownPort))) return [];
    return remote.endsWith(ending(port)) && /^\d+$/.test(inode) && inode !== '0' ? [inode] : [];
  });
}

/** Processes of this machine that talk to a port, apart from `except`; those of other users may be missing. */
export function localClients(port: number, except: ReadonlySet<number> = new Set()): readonly LocalClient[] {
  return owners(port, null)
    .filter((pid) => !except.has(pid))
    .map((pid) => ({ pid, command: commandOf(pid) }));
}

/** The local process at the other end of a connection to our `port`, by its own port there; null: not to be seen. */
export function peerProcess(port: number, peerPort: number): number | null {
  return owners(port, peerPort)[0] ?? null;
}

function owners(port: number, ownPort: number | null): readonly number[] {
  const inodes = new Set(
    ['tcp', 'tcp6'].flatMap((table) => connectedInodes(readText(`/proc/net/${table}`), port, ownPort)),
  );
  return inodes.size === 0 ? [] : processIds().filter((pid) => hasSocket(pid, inodes));
}

function hasSocket(pid: number, inodes: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1];
      return inode !== undefined && inodes.has(inode);
    });
  } catch {
    return false;
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
