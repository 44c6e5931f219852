import net from 'node:net';
import { describe, expect, it } from 'vitest';
import { addInodes, peersOf } from '../../../electron/core/gateway/peers.ts';
import { listen } from '../../support/upstream.ts';

describe('the processes behind many connections', () => {
  it('are found together, and one that is not there is nobody', async () => {
    const server = net.createServer();
    const port = await listen(server);
    const sockets = await Promise.all(
      Array.from(
        { length: 20 },
        () =>
          new Promise<net.Socket>((resolve) => {
            const socket = net.connect(port, '127.0.0.1', () => resolve(socket));
          }),
      ),
    );
    const connections = sockets.map((socket) => ({ port, peerPort: socket.localPort ?? 0 }));
    expect(peersOf([...connections, { port, peerPort: 1 }])).toEqual([
      ...connections.map(() => process.pid),
      null,
    ]);
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  it('are told apart by both ports, and only where they are connected', () => {
    const inodes = new Map<string, string>();
    addInodes(
      inodes,
      [
        '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
        '   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 111 1',
        '   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 222 1',
        '   2: 0100007F:C351 0100007F:1F90 06 00000000:00000000 00:00000000 00000000  1000        0 0 1',
        '   3: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 333 1',
      ].join('\n'),
    );
    expect([...inodes]).toEqual([
      ['8080 50000', '111'],
      ['50000 8080', '222'],
    ]);
  });
});
