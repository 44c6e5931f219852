import http from 'node:http';
import net from 'node:net';
import { Agent } from 'undici';
import { openExchange } from '../../electron/core/gateway/exchange.ts';
import type { Forwarded } from '../../electron/core/gateway/forward.ts';
import { forward } from '../../electron/core/gateway/forward.ts';
import { requestHeaders } from '../../electron/core/gateway/headers.ts';
import { bodyFor } from '../../electron/core/gateway/send-locally.ts';

export interface RawUpstream extends AsyncDisposable {
  readonly port: number;
  /** What each connection has sent, in order. */
  readonly received: readonly string[];
  /** Connections that were closed by the other side. */
  closed(): number;
}

/** An upstream that says exactly what a test has it say, bytes and all. */
export async function rawUpstream(
  answer: (socket: net.Socket, request: string) => void,
): Promise<RawUpstream> {
  const received: string[] = [];
  const sockets = new Set<net.Socket>();
  let closed = 0;
  const server = net.createServer((socket) => {
    sockets.add(socket);
    const index = received.push('') - 1;
    socket.on('data', (chunk) => {
      const first = received[index] === '';
      received[index] += chunk.toString('latin1');
      if (first) answer(socket, received[index] ?? '');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      closed += 1;
      sockets.delete(socket);
    });
  });
  const port = await listen(server);
  return {
    port,
    received,
    closed: () => closed,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export interface ForwardingProxy extends AsyncDisposable {
  readonly port: number;
  readonly ends: readonly Forwarded[];
  /** Whether the client's answer had ended when the upstream was said to be done. */
  readonly endedAfter: readonly boolean[];
}

/** `forward` between a client and that upstream, with nothing else before it. */
export async function forwardingProxy(upstreamPort: number): Promise<ForwardingProxy> {
  const dispatcher = new Agent({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const ends: Forwarded[] = [];
  const endedAfter: boolean[] = [];
  const server = http.createServer((request, response) => {
    const exchange = openExchange(request, response, null, performance.now(), null);
    const { body, contentLength } = bodyFor(exchange, null);
    void forward(dispatcher, {
      unsaid: null,
      origin: `http://127.0.0.1:${upstreamPort}`,
      method: request.method ?? 'GET',
      path: request.url ?? '/',
      headers: requestHeaders(request.rawHeaders, { contentLength }),
      body,
      own: { 'x-landlord-route': 'local' },
      response,
      departure: exchange.departure,
      isLost: null,
      begun: null,
      monotonicMs: () => performance.now(),
      ended: () => endedAfter.push(response.writableEnded),
    }).then((end) => {
      ends.push(end);
      if (end.kind === 'refused' && !response.headersSent) response.writeHead(502).end();
    });
  });
  const port = await listen(server);
  return {
    port,
    ends,
    endedAfter,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await dispatcher.destroy();
    },
  };
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  /** As they stand on the wire behind the body: name, value. */
  readonly trailers: readonly string[];
  /** The body came to its proper end. */
  readonly whole: boolean;
}

/** One request, its answer's bytes as they came. */
export function rawRequest(
  port: number,
  options: {
    readonly method?: string;
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Buffer;
    readonly onData?: (chunk: Buffer, request: http.ClientRequest) => void;
  } = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', path = '/v1/x', headers = {} } = options;
    const request = http.request(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (answer) => {
        const parts: Buffer[] = [];
        const done = (whole: boolean): void =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            body: Buffer.concat(parts),
            trailers: answer.rawTrailers,
            whole,
          });
        answer.on('data', (chunk: Buffer) => {
          parts.push(chunk);
          options.onData?.(chunk, request);
        });
        answer.on('end', () => done(answer.complete));
        answer.on('error', () => done(false));
      },
    );
    request.on('error', reject);
    request.end(options.body);
  });
}

export async function listen(server: net.Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the system gave no port');
  return address.port;
}
