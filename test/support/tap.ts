import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Bytes that passed, and the monotonic time at which they came in. */
export interface Passed {
  readonly direction: 'to the server' | 'from the server';
  readonly text: string;
  readonly atMs: number;
}

export interface Tap extends AsyncDisposable {
  readonly url: string;
  /** Forgets what has passed so far. */
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
  let passed: Passed[] = [];
  const worker = new Worker(new URL('./tap-worker.ts', import.meta.url), { workerData: { serverPort } });
  await once(worker, 'message');
  worker.on('message', (one: Passed) => passed.push(one));
  return {
    url: `http://127.0.0.2:${serverPort}`,
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
      await worker.terminate();
    },
  };
}
