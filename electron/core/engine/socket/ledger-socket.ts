import { chmod, lstat, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { homedir } from 'node:os';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import { type Clock, systemClock } from '../../clock.ts';
import { isErrno } from '../../state-dir/atomic-file.ts';
import type { AgentDesk } from '../desk/desk-api.ts';
import { errorLine } from './answer.ts';
import { Connection, type ConnectionLimits } from './connection.ts';

export interface LedgerSocketOptions {
  readonly path: string;
  readonly desk: AgentDesk;
  readonly clock?: Clock;
  readonly limits?: Partial<SocketLimits>;
}

export interface SocketLimits extends ConnectionLimits {
  /** Beyond them the longest idle client makes way; where none is idle, the new one is refused. */
  readonly clients: number;
}

const DEFAULT_LIMITS: SocketLimits = {
  lineBytes: 256 * 1024,
  waitingLines: 64,
  stalledMs: 60_000,
  idleMs: 3_600_000,
  probeMs: 500,
  clients: 512,
};

/** sockaddr_un.sun_path has 108 bytes with its NUL (unix(7)). */
const LONGEST_PATH_BYTES = 107;
const ASK_LIMIT_MS = 1_000;
const SWEEP_MS = 30_000;
const BACKLOG = 511;

export interface LedgerSocket {
  readonly path: string;
  stop(): Promise<void>;
}

/**
 * Listens on the ledger socket (design §5.4), which only its owner may open. The file of a runtime that
 * was killed is replaced, that of one that runs is not.
 *
 * Errors: `already_running`, `storage_failed`.
 */
export async function openLedgerSocket(options: LedgerSocketOptions): Promise<Result<LedgerSocket>> {
  const { path, desk } = options;
  const clock = options.clock ?? systemClock;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  if (Buffer.byteLength(path) > LONGEST_PATH_BYTES)
    return fail(
      'storage_failed',
      `The path of the ledger socket is too long for the system (${Buffer.byteLength(path)} bytes, ${LONGEST_PATH_BYTES} at most): ${path}. Choose a shorter --state-dir; all else works.`,
    );
  const freed = await freePath(path);
  if (!freed.ok) return freed;
  const clients = new Set<Connection>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    if (clients.size >= limits.clients) {
      const idlest = [...clients].filter((one) => one.isIdle).sort((a, b) => a.lastAtMs - b.lastAtMs)[0];
      if (idlest === undefined) {
        socket.on('error', () => undefined);
        socket.end(
          `${errorLine('busy', `${limits.clients} clients are connected and none is idle: try again later.`)}\n`,
        );
        socket.destroySoon();
        return;
      }
      clients.delete(idlest);
      idlest.end(
        'Another client needs this place, and you asked nothing for the longest time. Connect again.',
      );
    }
    const client = new Connection(socket, desk, limits, homedir(), () => clock.monotonicMs());
    clients.add(client);
    socket.on('close', () => clients.delete(client));
  });
  const listening = await listen(server, path);
  if (!listening.ok) return listening;
  const sweep = setInterval(
    () => {
      const nowMs = clock.monotonicMs();
      for (const client of clients)
        if (client.isIdle && nowMs - client.lastAtMs > limits.idleMs)
          client.end('Nothing was asked here for a long time. Connect again.');
    },
    Math.min(SWEEP_MS, limits.idleMs),
  );
  sweep.unref();
  return ok({
    path,
    async stop() {
      clearInterval(sweep);
      for (const client of clients) client.end('VRAM Landlord is being stopped.');
      // Node takes the file away with the server.
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  });
}

async function listen(server: Server, path: string): Promise<Result<void>> {
  // bind(2) happens within the call, so there is no moment in which others could connect.
  const before = process.umask(0o177);
  try {
    const up = new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ path, backlog: BACKLOG }, () => {
        server.off('error', reject);
        resolve();
      });
    });
    process.umask(before);
    await up;
    await chmod(path, 0o600);
  } catch (thrown) {
    return fail('storage_failed', `The ledger socket ${path} can't be made (${messageOf(thrown)}).`);
  } finally {
    process.umask(before);
  }
  server.on('error', () => undefined);
  return ok(undefined);
}

/** Takes away what a dead runtime left; what is no socket, or answers, stays. */
async function freePath(path: string): Promise<Result<void>> {
  try {
    const found = await lstat(path);
    if (!found.isSocket())
      return fail(
        'storage_failed',
        `${path} is in the way of the ledger socket and is no socket: move it away.`,
      );
    if (await isAnswered(path))
      return fail(
        'already_running',
        `Another program listens on ${path}: stop it, or choose another --state-dir.`,
      );
    await unlink(path);
    return ok(undefined);
  } catch (thrown) {
    if (isErrno(thrown, 'ENOENT')) return ok(undefined);
    return fail('storage_failed', `${path} can't be replaced (${messageOf(thrown)}).`);
  }
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const done = (answered: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answered);
    };
    // Whoever listens but is too busy to answer is there all the same.
    const timer = setTimeout(() => done(true), ASK_LIMIT_MS);
    socket.on('connect', () => done(true));
    socket.on('error', (thrown) => done(!isErrno(thrown, 'ECONNREFUSED') && !isErrno(thrown, 'ENOENT')));
  });
}
