import { fail, type Result } from '../../../shared/errors.ts';
import type { CallMessage, EngineCalls, EngineOp, ToEngine } from './messages.ts';

interface Waiter {
  answer(result: Result<unknown>): void;
  tell(told: unknown): void;
}

/** Calls that one child was asked and has not answered yet. */
export class Waiting {
  readonly #send: (message: ToEngine) => void;
  readonly #waiters = new Map<number, Waiter>();
  #nextId = 1;
  #ended: string | null = null;

  constructor(send: (message: ToEngine) => void) {
    this.#send = send;
  }

  /** An aborted `signal` cancels the call; its answer is still the child's. */
  ask<Op extends EngineOp>(
    op: Op,
    ask: EngineCalls[Op]['ask'],
    signal?: AbortSignal,
    onTell?: (told: EngineCalls[Op]['tell']) => void,
  ): Promise<Result<EngineCalls[Op]['answer']>> {
    if (this.#ended !== null) return Promise.resolve(fail('engine_ended', this.#ended));
    if (signal?.aborted === true)
      return Promise.resolve(fail('cancelled', 'It was cancelled before it began.'));
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve) => {
      const cancel = (): void => this.#send({ type: 'cancel', id });
      this.#waiters.set(id, {
        answer: (result) => {
          signal?.removeEventListener('abort', cancel);
          // The child answers each call by the type its op has in `EngineCalls`.
          resolve(result as Result<EngineCalls[Op]['answer']>);
        },
        tell: (told) => onTell?.(told as EngineCalls[Op]['tell']),
      });
      signal?.addEventListener('abort', cancel, { once: true });
      const message = { type: 'call', id, op, ask } as const;
      this.#send(message as CallMessage);
    });
  }

  told(id: number, told: unknown): void {
    this.#waiters.get(id)?.tell(told);
  }

  answered(id: number, result: Result<unknown>): void {
    const waiter = this.#waiters.get(id);
    this.#waiters.delete(id);
    waiter?.answer(result);
  }

  /** Answers all that wait, and whoever asks from now on, with `engine_ended`. */
  end(why: string): void {
    this.#ended = why;
    const waiters = [...this.#waiters.values()];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.answer(fail('engine_ended', why));
  }
}
