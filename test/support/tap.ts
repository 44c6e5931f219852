import { connect, createServer, type Socket } from 'node:net';

/** Bytes that passed, by `performance.now()` of the moment they came in. */
export interface Passed {
  readonly direction: 'to the server' | 'from the server';
  readonly text: string;
  readonly atMs: number;
}

export interface Tap extends AsyncDisposable {
  readonly url: string;
  /** Everything that passed since the last `clear`. */
  readonly passed: readonly Passed[];
  clear(): void;
  /** When a line with all these words first passed that way since `clear`; null: not yet. */
  firstAtMs(direction: Passed['direction'], ...words: readonly string[]): number | null;
}

/**
 * A proxy that passes bytes on as they come and notes when: what a wire tap would see. It has the
 * server's own port on another address of the loopback, so that whoever looks for the process behind
 * that port still finds the server.
 */
export async function tap(serverPort: number): Promise<Tap> {
  const sockets = new Set<Socket>();
  let passed: Passed[] = [];
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: '127.0.0.1', port: serverPort, noDelay: true });
    const join = (from: Socket, to: Socket, direction: Passed['direction']): void => {
      sockets.add(from);
      from.on('data', (bytes: Buffer) => {
        const atMs = performance.now();
        to.write(bytes);
        passed.push({ direction, text: bytes.toString('latin1'), atMs });
      });
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    };
    join(client, upstream, 'to the server');
    join(upstream, client, 'from the server');
  });
  await new Promise<void>((resolve) => server.listen(serverPort, '127.0.0.2', resolve));
  return {
    url: `http://127.0.0.2:${serverPort}`,
    get passed() {
      return passed;
    },
    clear() {
      passed = [];
    },
    firstAtMs: (direction, ...words) =>
      passed.find(
        (one) =>
          one.direction === direction &&
          one.text.split('\n').some((line) => words.every((word) => line.includes(word))),
      )?.atMs ?? null,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
