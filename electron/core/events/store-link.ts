import { Worker } from 'node:worker_threads';
import { messageOf } from '../../../shared/errors.ts';
import type {
  AnswerMessage,
  RequestMessage,
  StoreAnswers,
  StoreRequest,
  StoreResult,
} from './store-protocol.ts';

/**
 * One life of the database's worker. Requests are answered in order; when the worker dies, those
 * that wait are answered with a failure and this link is over.
 *
 * A worker thread, by measurement (Node 24, resident): on the main thread SQLite adds 6 MB and each
 * stall of the disk; a worker adds 25 MB, 19 of them for the empty thread; a child process adds 51 MB.
 */
export class StoreLink {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, (result: StoreResult<StoreAnswers[keyof StoreAnswers]>) => void>();
  #sequence = 0;
  #gone: string | null = null;

  constructor(workerUrl: URL) {
    this.#worker = new Worker(workerUrl, {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      // A fact or a page of events is small; what is not must end this thread and not the runtime.
      resourceLimits: { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 2 },
    });
    this.#worker.on('message', (message: AnswerMessage) => {
      const resolve = this.#waiting.get(message.sequence);
      this.#waiting.delete(message.sequence);
      this.#holdLoop();
      resolve?.(message.result);
    });
    this.#worker.once('error', (error) => this.#end(`its thread failed (${messageOf(error)})`));
    this.#worker.once('exit', (code) => this.#end(`its thread ended (code ${code})`));
    this.#holdLoop();
  }

  get isGone(): boolean {
    return this.#gone !== null;
  }

  request<Request extends StoreRequest>(
    request: Request,
  ): Promise<StoreResult<StoreAnswers[Request['type']]>> {
    return new Promise((resolve) => {
      if (this.#gone !== null) {
        resolve({ ok: false, error: { damaged: false, why: this.#gone } });
        return;
      }
      this.#sequence += 1;
      const message: RequestMessage = { sequence: this.#sequence, request };
      // The worker answers a request with its own type's answer; the channel itself carries them all.
      this.#waiting.set(
        this.#sequence,
        resolve as (result: StoreResult<StoreAnswers[keyof StoreAnswers]>) => void,
      );
      this.#holdLoop();
      this.#worker.postMessage(message);
    });
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  /** The process may end while nothing waits for an answer, and not before. */
  #holdLoop(): void {
    if (this.#waiting.size > 0) this.#worker.ref();
    else this.#worker.unref();
  }

  #end(why: string): void {
    this.#gone ??= why;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const resolve of waiting) resolve({ ok: false, error: { damaged: false, why } });
  }
}
