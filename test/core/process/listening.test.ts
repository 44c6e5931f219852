import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listeningSockets } from '../../../electron/core/process/listening.ts';
import { parseListening } from '../../../electron/core/process/procfs-text.ts';

const HEADER =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';

function row(at: number, state: string): string {
  const port = (8000 + at).toString(16).toUpperCase().padStart(4, '0');
  return `${String(at).padStart(4)}: 0100007F:${port} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${5000 + at} 1 0000000000000000 100 0 0 10 0                     `;
}

describe('listening sockets of a network namespace', () => {
  let folder = '';
  const table = (name: string, states: readonly string[]): void =>
    writeFileSync(
      join(folder, name),
      `${[HEADER, ...states.map((state, at) => row(at, state))].join('\n')}\n`,
    );
  const ports = (): readonly number[] => listeningSockets(folder).map(({ port }) => port);
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'net-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('are all of both tables, however many there are', () => {
    table(
      'tcp',
      Array.from({ length: 40 }, () => '0A'),
    );
    table('tcp6', ['0A']);
    expect(ports()).toEqual([...Array.from({ length: 40 }, (_, at) => 8000 + at), 8000]);
  });

  it('are read up to the first connection: behind it the kernel has none, and would search on', () => {
    table('tcp', [
      ...Array.from({ length: 9 }, () => '0A'),
      '01',
      ...Array.from({ length: 90 }, () => '06'),
      '0A',
    ]);
    expect(ports()).toEqual(Array.from({ length: 9 }, (_, at) => 8000 + at));
  });

  it('of IPv6 are not looked for where the namespace says that it has no such socket', () => {
    table('tcp6', ['0A']);
    writeFileSync(join(folder, 'sockstat6'), 'TCP6: inuse 0\nUDP6: inuse 3\n');
    expect(ports()).toEqual([]);
    writeFileSync(join(folder, 'sockstat6'), 'TCP6: inuse 1\nUDP6: inuse 3\n');
    expect(ports()).toEqual([8000]);
  });

  it('are none where nothing can be read', () => {
    rmSync(folder, { recursive: true });
    expect(ports()).toEqual([]);
  });

  it('are on this machine those of the whole tables, with one of ours among them', async () => {
    const server: Server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const whole = (): readonly string[] =>
      ['/proc/net/tcp', '/proc/net/tcp6']
        .filter((path) => existsSync(path))
        .flatMap((path) => parseListening(readFileSync(path, 'latin1')))
        .map(({ port, inode }) => `${port} ${inode}`);
    try {
      const address = server.address();
      const port = typeof address === 'object' ? address?.port : undefined;
      const [before, found, after] = [whole(), listeningSockets('/proc/net'), whole()];
      expect(found.map((socket) => socket.port)).toContain(port);
      // Other programs come and go meanwhile.
      const kept = before.filter((socket) => after.includes(socket));
      expect(found.map((socket) => `${socket.port} ${socket.inode}`)).toEqual(expect.arrayContaining(kept));
    } finally {
      server.close();
    }
  });
});
