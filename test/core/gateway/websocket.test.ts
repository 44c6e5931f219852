import { createHash } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Fronts } from '../../../electron/core/gateway/front.ts';
import { backendSetting } from '../../support/backend-setting.ts';
import { freePort } from '../../support/llama-server.ts';
import { until } from '../../support/router.ts';
import { listen, rawUpstream } from '../../support/upstream.ts';

const over: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of over.splice(0)) await end();
});

/** A front port of that backend; what is no websocket is answered with `plain`. */
async function frontOf(backendPort: number): Promise<{ readonly port: number; readonly fronts: Fronts }> {
  const port = await freePort();
  const fronts = new Fronts(
    { handle: async (_request, response) => void response.end('plain') },
    () => undefined,
  );
  over.push(() => fronts.stop());
  await fronts.set([backendSetting({ url: `http://127.0.0.1:${backendPort}`, front: port })]);
  return { port, fronts };
}

/** A server whose websocket says back what it hears, in frames of less than 126 bytes (RFC 6455 §5.2). */
async function echo(): Promise<{ readonly port: number; open(): number }> {
  const sockets = new Set<net.Socket>();
  const server = http.createServer();
  server.on('upgrade', (request, socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('end', () => socket.end());
    socket.on('close', () => sockets.delete(socket));
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash('sha1').update(key).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.on('data', (frame: Buffer) => {
      const length = (frame[1] ?? 0) & 0x7f;
      const mask = frame.subarray(2, 6);
      const said = frame.subarray(6, 6 + length).map((byte, index) => byte ^ (mask[index % 4] ?? 0));
      if (((frame[0] ?? 0) & 0x0f) === 1) socket.write(Buffer.concat([Buffer.from([0x81, length]), said]));
      else socket.end();
    });
  });
  over.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port: await listen(server), open: () => sockets.size };
}

/** Sends it as it is, and resolves with all that came until the other side is done. */
function said(port: number, lines: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(`${lines.join('\r\n')}\r\n\r\n`));
    let text = '';
    socket.on('data', (part) => {
      text += part.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text));
  });
}

function asking(port: number, ...more: readonly string[]): readonly string[] {
  return [
    'GET /ws?a=%20b HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    ...more,
  ];
}

describe('a websocket at a front port', () => {
  it('speaks with its backend, and ends with either side', async () => {
    const backend = await echo();
    const { port, fronts } = await frontOf(backend.port);
    const open = async (): Promise<WebSocket> => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/llm`);
      await new Promise((resolve, reject) => {
        socket.addEventListener('open', resolve);
        socket.addEventListener('error', reject);
      });
      return socket;
    };
    const socket = await open();
    const heard = new Promise((resolve) => socket.addEventListener('message', ({ data }) => resolve(data)));
    socket.send('hello');
    expect(await heard).toBe('hello');
    socket.close();
    await until(() => backend.open() === 0, 5_000, 'the backend to be left');
    const other = await open();
    const closed = new Promise((resolve) => other.addEventListener('close', resolve));
    await fronts.stop();
    await closed;
    await until(() => backend.open() === 0, 5_000, 'the backend to be left');
  });

  it('reaches the backend as it was asked for, and an answer that declines it comes back', async () => {
    await using backend = await rawUpstream((socket) =>
      socket.end('HTTP/1.1 404 Gone Fishing\r\nX-Why: no\r\nContent-Length: 2\r\n\r\nno'),
    );
    const { port } = await frontOf(backend.port);
    const answer = await said(port, asking(port, 'X-A: 1', 'x-landlord-session: me', 'X-A: 2'));
    expect(answer).toBe(
      'HTTP/1.1 404 Gone Fishing\r\nX-Why: no\r\nContent-Length: 2\r\nconnection: close\r\n\r\nno',
    );
    expect(backend.received.join('')).toBe(
      [
        'GET /ws?a=%20b HTTP/1.1',
        `host: 127.0.0.1:${backend.port}`,
        'Connection: Upgrade',
        'Upgrade: websocket',
        'X-A: 1',
        'X-A: 2',
        '\r\n',
      ].join('\r\n'),
    );
  });

  it('is refused to a page of another origin, and told where nobody answers', async () => {
    await using backend = await rawUpstream((socket) => socket.destroy());
    const { port } = await frontOf(backend.port);
    expect(await said(port, asking(port, 'Origin: https://evil.example'))).toMatch(/^HTTP\/1\.1 403 /);
    expect(backend.received).toEqual([]);
    expect(await said(port, asking(port))).toMatch(/^HTTP\/1\.1 502 /);
  });

  it('is no other upgrade: a client that offers HTTP/2 is answered in HTTP/1.1', async () => {
    const { port } = await frontOf(1);
    const offer = [
      'GET /v1/models HTTP/1.1',
      `Host: 127.0.0.1:${port}`,
      'Connection: Upgrade, HTTP2-Settings, close',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABk',
    ];
    expect(await said(port, offer)).toMatch(/plain/);
  });
});
