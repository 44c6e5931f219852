import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { commandOf } from './inspect.ts';
import { processIds } from './kernel-locks.ts';
import type { LocalClient } from './lane-bypassed.ts';

/** Inodes of sockets connected to a port, from /proc/net/tcp and tcp6 (proc_net_tcp(5)); state 01 is ESTABLISHED. */
export function connectedInodes(text: string, port: number): readonly string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  return text.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    const [, , remote, state] = fields;
    const inode = fields[9];
    if (remote === undefined || inode === undefined || state !== '01') return [];
    return remote.endsWith(`:${wanted}`) && /^\d+$/.test(inode) && inode !== '0' ? [inode] : [];
  });
}

/** Processes of this machine that talk to a port, apart from `except`; those of other users may be missing. */
export function localClients(port: number, except: ReadonlySet<number> = new Set()): readonly LocalClient[] {
  const inodes = new Set(
    ['tcp', 'tcp6'].flatMap((table) => connectedInodes(readText(`/proc/net/${table}`), port)),
  );
  if (inodes.size === 0) return [];
  return processIds()
    .filter((pid) => !except.has(pid) && hasSocket(pid, inodes))
    .map((pid) => ({ pid, command: commandOf(pid) }));
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
