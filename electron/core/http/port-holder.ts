import { readdir, readFile, readlink } from 'node:fs/promises';
import { secrets } from '../security/secrets.ts';

/**
 * Who listens on a TCP port of this machine, for the message that says why we can't.
 * proc(5): field 2 of /proc/net/tcp is the local address in hex, field 4 the state (0A is LISTEN),
 * field 10 the socket's inode, which `/proc/<pid>/fd` shows as `socket:[inode]`.
 */
export interface PortHolder {
  readonly pid: number;
  readonly command: string;
}

/** null where it can't be told: another user's process, another system. */
export async function findPortHolder(port: number): Promise<PortHolder | null> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map(readOrEmpty));
  const inodes = new Set(tables.flatMap((table) => listeningInodes(table, port)));
  if (inodes.size === 0) return null;
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const descriptor of descriptors) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '');
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode === undefined || !inodes.has(inode)) continue;
      const argv = (await readOrEmpty(`/proc/${pid}/cmdline`)).split('\0').filter((part) => part !== '');
      const name = (await readOrEmpty(`/proc/${pid}/comm`)).trim();
      return { pid: Number(pid), command: argv.length > 0 ? secrets.hide(argv.join(' ')) : name };
    }
  }
  return null;
}

/** The inodes of sockets that listen on `port`, from the text of /proc/net/tcp or tcp6. */
export function listeningInodes(table: string, port: number): readonly string[] {
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(
      (fields) => fields[3] === '0A' && Number.parseInt(fields[1]?.split(':').at(-1) ?? '', 16) === port,
    )
    .map((fields) => fields[9] ?? '')
    .filter((inode) => /^[1-9]\d*$/.test(inode));
}

async function readOrEmpty(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
