import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** A request's head that is not whole after this is given up; its body may take any time. */
export const HEAD_LIMIT_MS = 30_000;

/** Left for the log, the children, the ledger socket's clients, and files. */
const OTHER_FILES = 700;
const MOST = 2_000;
const LEAST = 16;
const LINGER_BYTES = 4 * 1024 * 1024;
const LINGER_MS = 2_000;
const LINGER_LOOK_MS = 50;

/** How many connections a listener may hold: each may need a second one, to a backend. */
export function connectionLimit(openFiles: number | null): number {
  if (openFiles === null) return 256;
  const room = openFiles > 2 * OTHER_FILES ? openFiles - OTHER_FILES : openFiles / 4;
  return Math.max(LEAST, Math.min(MOST, Math.floor(room / 2)));
}

/** How many files this process may have open (proc(5), limits); null where that can't be told. */
export function openFilesLimit(): number | null {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return found === undefined ? null : Number(found);
  } catch {
    return null;
  }
}

/** Requests that a client sends before it has the answer to the one before; most never send any. */
const MOST_AHEAD = 8;

/**
 * Answers a listener's requests, with its connections under a limit, so that programs that open thousands and ask
 * nothing shut nobody out. Who goes for a newcomer: the one that has asked nothing for the longest; where all ask
 * something, the one that has been sending its body for the longest; where all are being answered, the
 * newcomer itself. One connection's requests are answered one after the other: Node would begin all that one
 * sends ahead at once, and sixty megabytes of them took a gigabyte and twenty thousand files.
 * What is returned is told of each connection that has become a websocket: it asks nothing any more, and is in use.
 */
export function answerWithin(
  server: Server,
  answer: RequestListener,
  limit = connectionLimit(openFilesLimit()),
): (webSocket: Socket) => void {
  const connections = new Map<Socket, Connection>();
  let changes = 0;
  const loser = (newcomer: Socket): Socket => {
    let quietest: Connection | null = null;
    let sending: Connection | null = null;
    for (const one of connections.values()) {
      const { socket, request, since } = one;
      if (socket === newcomer || one.isWebSocket) continue;
      if (request === null) {
        if (quietest === null || since < quietest.since) quietest = one;
      } else if (!request.complete && (sending === null || since < sending.since)) sending = one;
    }
    return (quietest ?? sending)?.socket ?? newcomer;
  };
  const becomes = (connection: Connection, request: IncomingMessage | null): void => {
    connection.request = request;
    changes += 1;
    connection.since = changes;
  };
  const begin = (connection: Connection, ...[request, response]: Parameters<RequestListener>): void => {
    becomes(connection, request);
    response.on('close', () => {
      const { socket } = connection;
      if (socket.destroyed) return;
      if (!request.complete) cutOff(request, socket);
      const next = connection.ahead?.shift();
      if (next !== undefined) begin(connection, ...next);
      else becomes(connection, null);
    });
    answer(request, response);
  };
  server.on('connection', (socket) => {
    changes += 1;
    connections.set(socket, { socket, request: null, since: changes, ahead: null, isWebSocket: false });
    socket.once('close', () => connections.delete(socket));
    if (connections.size > limit) loser(socket).destroy();
  });
  server.on('request', (request, response) => {
    const connection = connections.get(request.socket);
    // Let go already, with more of what it had sent to come.
    if (connection === undefined || connection.socket.destroyed) return;
    if (connection.request === null) {
      begin(connection, request, response);
      return;
    }
    connection.ahead ??= [];
    if (connection.ahead.push([request, response]) > MOST_AHEAD) connection.socket.destroy();
  });
  return (webSocket) => {
    const connection = connections.get(webSocket);
    if (connection !== undefined) connection.isWebSocket = true;
  };
}

/** One for as long as it is open: to move it from one Set to another took 15 µs of a request (V8 makes them smaller and larger). */
interface Connection {
  readonly socket: Socket;
  /** That it asks for now; null: it is quiet. */
  request: IncomingMessage | null;
  /** Grows with each connection that begins to ask or falls quiet. */
  since: number;
  ahead: Parameters<RequestListener>[] | null;
  isWebSocket: boolean;
}

/**
 * One that has its answer, a refusal, and goes on sending: Node would read all of it. It has a moment to
 * read the answer first, since a connection that is reset takes the answer with it.
 */
function cutOff(request: IncomingMessage, socket: Socket): void {
  const readBefore = socket.bytesRead;
  let looks = 0;
  const timer = setInterval(() => {
    looks += 1;
    const isOver = request.complete || socket.destroyed;
    const isEnough = socket.bytesRead - readBefore > LINGER_BYTES || looks * LINGER_LOOK_MS > LINGER_MS;
    if (!isOver && !isEnough) return;
    clearInterval(timer);
    if (!isOver) socket.destroy();
  }, LINGER_LOOK_MS);
  timer.unref();
}

/** What is no HTTP is told so, and its connection is over, whether it closes its side or not. */
export function refuseNonsense(error: Error, socket: Duplex): void {
  // Each further piece of it comes here too.
  if (!socket.writable) return;
  const status = STATUS[('code' in error && String(error.code)) || ''] ?? '400 Bad Request';
  socket.write(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  if (socket instanceof Socket) socket.destroySoon();
  else socket.destroy();
}

/** Codes of Node's HTTP parser (nodejs.org, http, event clientError). */
const STATUS: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};
