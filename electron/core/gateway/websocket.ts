import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { http, https } from '../node-http.ts';
import { isPlainPath } from './endpoints.ts';
import { upstreamPath } from './fallback.ts';

/** Whether a request is to become a websocket; any other upgrade (h2c, as Java's client offers) is answered as if it were not asked for. */
export function wantsWebSocket({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  return method === 'GET' && headers.upgrade?.trim().toLowerCase() === 'websocket';
}

/** At a front port: LM Studio's own clients use nothing else. */
export interface WebSocketWish {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What came behind the request already. */
  readonly head: Buffer;
  /** The backend's. */
  readonly url: string;
}

/** For the other side to close as well. */
const CLOSE_MS = 5_000;

/**
 * Passes a websocket on as it is, in both directions, with neither lane nor admission: what is said in it
 * is the backend's own. It ends when either side does.
 *
 *   asked ──101──► joined ──one side ends──► over
 *     ├──another answer: it goes to the client as it is──► over
 *     └──no answer: 502──► over
 */
export function passWebSocket({ request, socket, head, url }: WebSocketWish): void {
  const { origin, path } = upstreamPath(url, request.url ?? '/');
  const target = new URL(origin);
  const send = target.protocol === 'https:' ? https.request : http.request;
  const sent = begun(() =>
    send(target, { path, method: 'GET', headers: headersFor(request.rawHeaders, target.host), agent: false }),
  );
  if (sent === null || hasBody(request) || !isPlainPath(request.url ?? '/')) {
    sent?.on('error', () => undefined).destroy();
    refuseUpgrade(socket, 400);
    return;
  }
  const over = (): void => {
    sent.destroy();
    socket.destroy();
  };
  socket.on('error', over);
  socket.on('close', over);
  sent.on('error', () => refuseUpgrade(socket, 502));
  sent.on('response', (answer) => {
    socket.write(`${headOf(answer)}connection: close\r\n\r\n`, 'latin1');
    answer.on('error', over);
    answer.pipe(socket);
  });
  sent.on('upgrade', (answer, upstream, first) => {
    // The request is no more: its error would say nothing of this connection.
    sent.removeAllListeners('error');
    sent.on('error', over);
    upstream.on('error', over);
    upstream.on('close', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
    // Who says no more is not heard any more either: a websocket is closed by both.
    for (const side of [socket, upstream])
      side.once('end', () => {
        setTimeout(() => {
          socket.destroy();
          upstream.destroy();
        }, CLOSE_MS).unref();
      });
    // Its client left before the answer came.
    if (socket.destroyed) {
      upstream.destroy();
      return;
    }
    socket.write(`${headOf(answer)}\r\n`, 'latin1');
    if (first.length > 0) socket.write(first);
    if (head.length > 0) upstream.write(head);
    socket.pipe(upstream);
    upstream.pipe(socket);
  });
  sent.end();
}

/** Says no, and closes whether the other side does or not. */
export function refuseUpgrade(socket: Duplex, status: number): void {
  socket.on('error', () => undefined);
  const text = `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ''}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
  socket.end(text, () => socket.destroy());
}

/** Headers that a parser takes may be none that can be sent: node:http throws, and here nobody would catch it. */
function begun(send: () => ClientRequest): ClientRequest | null {
  try {
    return send();
  } catch {
    return null;
  }
}

/** What follows its head would be taken for the first of what is said in it, or for another request. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** They speak of this connection, or promise what a websocket has none of. */
const LEFT_OUT = new Set(['host', 'expect', 'keep-alive', 'proxy-connection', 'te', 'trailer']);

/** As they came, save whom they are for. */
function headersFor(raw: readonly string[], host: string): string[] {
  const kept = ['host', host];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const lower = name.toLowerCase();
    if (!LEFT_OUT.has(lower) && !lower.startsWith('x-landlord-')) kept.push(name, raw[index + 1] ?? '');
  }
  return kept;
}

/** Status line and headers as they came. A body that came in chunks has lost them, and ends with the connection. */
function headOf({ statusCode = 502, statusMessage = '', rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`];
  const isSwitch = statusCode === 101;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const isOfConnection = ['connection', 'keep-alive', 'transfer-encoding'].includes(name.toLowerCase());
    if (isSwitch || !isOfConnection) lines.push(`${name}: ${rawHeaders[index + 1] ?? ''}`);
  }
  return `${lines.join('\r\n')}\r\n`;
}
