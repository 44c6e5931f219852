import type { RequestRecord } from '../events/request-record.ts';
import type { TurnClass } from '../gate/sidecar.ts';
import type { Outcome } from './outcome.ts';
import { usageOf } from './tail.ts';

/** A request that is over, before anybody has looked at what it was. It holds on to nothing of its connection. */
export interface Ending {
  readonly outcome: Outcome;
  readonly model: string | null;
  readonly agent: string | null;
  readonly class: TurnClass;
  readonly isStream: boolean;
  readonly arrivedAtMs: number;
  readonly waitedMs: number;
  readonly endedAtMs: number;
  /** Wall time of its end. */
  readonly endedAtEpochMs: number;
}

/** `savedPromptMs`: of its prompt, by its model and the end of its answer. */
export function recordOf(
  ending: Ending,
  savedPromptMs: (model: string, tail: string) => number | null,
): RequestRecord {
  const { outcome, model, arrivedAtMs, endedAtMs } = ending;
  const { firstByteAtMs, tail } = outcome;
  const { promptTokens, generatedTokens, generatedMs } = usageOf(tail);
  const streamedMs = ending.isStream && firstByteAtMs !== null ? endedAtMs - firstByteAtMs : null;
  return {
    atMs: Math.round(ending.endedAtEpochMs - (endedAtMs - arrivedAtMs)),
    model,
    backend: outcome.backend,
    agent: ending.agent,
    class: ending.class,
    route: outcome.route,
    reason: outcome.reason,
    status: outcome.status,
    promptTokens,
    generatedTokens,
    generatedMs: generatedMs ?? streamedMs,
    waitedMs: Math.round(ending.waitedMs),
    firstByteMs: firstByteAtMs === null ? null : Math.round(firstByteAtMs - arrivedAtMs),
    totalMs: Math.round(endedAtMs - arrivedAtMs),
    savedPromptMs: outcome.route === 'local' && model !== null ? savedPromptMs(model, tail) : null,
  };
}

/** Looking at many in one go costs a fraction of what each costs between two requests. */
const SETTLED_EVERY_MS = 100;
const MOST_WAITING = 32;

/** Requests that are over, looked at some at a time and in their order: off the way of those that come next. */
export class Endings {
  readonly #look: (ending: Ending) => void;
  #waiting: Ending[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(look: (ending: Ending) => void) {
    this.#look = look;
  }

  add(ending: Ending): void {
    this.#waiting.push(ending);
    if (this.#waiting.length >= MOST_WAITING) this.settle();
    else this.#timer ??= setTimeout(() => this.settle(), SETTLED_EVERY_MS);
  }

  /** For whoever wants to know all that has ended. */
  settle(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const ending of waiting) this.#look(ending);
  }
}
