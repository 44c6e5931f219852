import { connect, createServer, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import type { Passed } from './tap.ts';

/** The proxy of `tap.ts`, in a thread of its own: what the test does meanwhile must not count as time on the wire. */
const serverPort: number = workerData.serverPort;

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ host: '127.0.0.1', port: serverPort, noDelay: true });
  passOn(client, upstream, 'to the server');
  passOn(upstream, client, 'from the server');
});
server.listen(serverPort, '127.0.0.2', () => parentPort?.postMessage('listening'));

function passOn(from: Socket, to: Socket, direction: Passed['direction']): void {
  from.on('data', (bytes: Buffer) => {
    const atMs = Number(process.hrtime.bigint()) / 1e6;
    to.write(bytes);
    const passed: Passed = { direction, text: bytes.toString('latin1'), atMs };
    parentPort?.postMessage(passed);
  });
  from.on('end', () => to.end());
  from.on('error', () => to.destroy());
  from.on('close', () => to.destroy());
}
