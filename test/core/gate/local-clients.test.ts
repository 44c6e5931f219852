import net from 'node:net';
import { describe, expect, it } from 'vitest';
import { peersOf } from '../../../electron/core/gate/local-clients.ts';
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
});
