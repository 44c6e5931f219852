import type { TurnClass } from '../gate/sidecar.ts';

/**
 * Who may start on one device. Interactive requests start at once; batch yields to them on any model
 * of the device, waits while one is in flight, and runs no deeper than the interactive ones can bear.
 *
 *   waiting (batch) ──no interactive in flight, depth free──► running ──► done
 *         └──waited longer than `agedMs`: one at a time, interactive or not, so that nobody starves
 */
export interface QueueSnapshot {
  readonly interactive: number;
  readonly batch: number;
  readonly waiting: number;
  /** Batch requests that may run side by side. */
  readonly depth: number;
  /** What a batch worker that talks to a backend directly should do now. */
  readonly yield: boolean;
}

export interface QueueOptions {
  readonly monotonicMs: () => number;
  readonly maxDepth?: number;
  readonly agedMs?: number;
  /** An interactive request of a moment ago: its session is likely to send the next one. */
  readonly lingerMs?: number;
  readonly onChange?: () => void;
}

interface Waiter {
  readonly sinceMs: number;
  readonly start: () => void;
}

const START_DEPTH = 4;
/** The depth grows by one for each this long without an interactive request. */
const GROW_MS = 10_000;

export class DeviceQueue {
  readonly #options: Required<QueueOptions>;
  readonly #waiters = new Set<Waiter>();
  #interactive = 0;
  #batch = 0;
  #aged = 0;
  #depth: number;
  /** Until then (monotonic ms) the next interactive request is expected. */
  #calmAtMs = Number.NEGATIVE_INFINITY;
  #grewAtMs: number;
  #aloneMs: number | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: QueueOptions) {
    this.#options = { maxDepth: 8, agedMs: 10_000, lingerMs: 200, onChange: () => {}, ...options };
    this.#depth = Math.min(START_DEPTH, this.#options.maxDepth);
    this.#grewAtMs = options.monotonicMs();
  }

  snapshot(): QueueSnapshot {
    return {
      interactive: this.#interactive,
      batch: this.#batch,
      waiting: this.#waiters.size,
      depth: this.#depth,
      yield: this.#mustYield(this.#options.monotonicMs()),
    };
  }

  /** In how long batch may go on if nobody comes meanwhile; null: it may now, or an interactive request is in flight. */
  calmInMs(): number | null {
    const inMs = this.#calmAtMs - this.#options.monotonicMs();
    return this.#interactive === 0 && inMs > 0 ? inMs : null;
  }

  /**
   * Resolves when the request may start, null when the signal came first. Dispose when it is over. The
   * signal is asked for only where it has to wait.
   */
  enter(turnClass: TurnClass, leaving: { readonly signal: AbortSignal }): Pass | Promise<Pass | null> {
    if (turnClass === 'interactive') return this.#startInteractive();
    const nowMs = this.#options.monotonicMs();
    this.#grow(nowMs);
    if (this.#waiters.size === 0 && this.#mayStart(nowMs)) return this.#startBatch(false);
    const { signal } = leaving;
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#waiters.delete(waiter);
        this.#options.onChange();
        resolve(null);
      };
      const waiter: Waiter = {
        sinceMs: nowMs,
        start: () => {
          signal.removeEventListener('abort', leave);
          resolve(this.#startBatch(this.#interactive > 0));
        },
      };
      this.#waiters.add(waiter);
      signal.addEventListener('abort', leave, { once: true });
      if (signal.aborted) leave();
      this.#look();
    });
  }

  /**
   * How long an interactive request took to its first token, with `beside` batch requests in flight.
   * More than a fifth over what it takes alone: batch runs half as deep.
   */
  felt(firstByteMs: number, beside: number): void {
    if (beside === 0) {
      this.#aloneMs = this.#aloneMs === null ? firstByteMs : this.#aloneMs * 0.8 + firstByteMs * 0.2;
      return;
    }
    if (this.#aloneMs !== null && firstByteMs <= this.#aloneMs * 1.2) return;
    this.#depth = Math.max(1, Math.floor(this.#depth / 2));
    this.#grewAtMs = this.#options.monotonicMs();
  }

  /** An interactive turn had to go elsewhere: batch makes way until the next one comes, so that it finds room here. */
  expect(forMs: number): void {
    this.#calmAtMs = Math.max(this.#calmAtMs, this.#options.monotonicMs() + forMs);
    this.#options.onChange();
  }

  #startInteractive(): Pass {
    this.#interactive += 1;
    // It has come that was expected.
    this.#calmAtMs = Number.NEGATIVE_INFINITY;
    this.#options.onChange();
    return new Started(this.#batch, () => {
      this.#interactive -= 1;
      this.#calmAtMs = Math.max(this.#calmAtMs, this.#options.monotonicMs() + this.#options.lingerMs);
      this.#ended();
    });
  }

  #startBatch(aged: boolean): Pass {
    this.#batch += 1;
    if (aged) this.#aged += 1;
    return new Started(0, () => {
      this.#batch -= 1;
      if (aged) this.#aged -= 1;
      this.#ended();
    });
  }

  #ended(): void {
    this.#options.onChange();
    this.#look();
  }

  #mustYield(nowMs: number): boolean {
    return this.#interactive > 0 || nowMs < this.#calmAtMs;
  }

  #mayStart(nowMs: number): boolean {
    return !this.#mustYield(nowMs) && this.#batch < this.#depth;
  }

  #grow(nowMs: number): void {
    if (this.#interactive > 0) this.#grewAtMs = nowMs;
    const steps = Math.floor((nowMs - this.#grewAtMs) / GROW_MS);
    if (steps <= 0) return;
    this.#depth = Math.min(this.#options.maxDepth, this.#depth + steps);
    this.#grewAtMs += steps * GROW_MS;
  }

  /** Starts whoever may start now, oldest first. */
  #look(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const nowMs = this.#options.monotonicMs();
    this.#grow(nowMs);
    for (const waiter of this.#waiters) {
      const isAged = nowMs - waiter.sinceMs >= this.#options.agedMs;
      const next = this.#mayStart(nowMs) || (isAged && this.#aged === 0 && this.#batch < this.#depth);
      if (!next) break;
      this.#waiters.delete(waiter);
      waiter.start();
    }
    const [oldest] = this.#waiters;
    if (oldest === undefined) return;
    const agedInMs = oldest.sinceMs + this.#options.agedMs - nowMs;
    const calmInMs = this.#calmAtMs - nowMs;
    const due = [agedInMs, this.#interactive > 0 ? Number.POSITIVE_INFINITY : calmInMs].filter(
      (ms) => ms > 0,
    );
    const inMs = Math.min(GROW_MS, ...due);
    this.#timer = setTimeout(() => this.#look(), Math.ceil(inMs) + 1);
    this.#timer.unref();
  }
}

/** A request that has started; disposed when it is over. */
export interface Pass extends Disposable {
  /** Batch requests that were in flight when it started. */
  readonly beside: number;
}

class Started implements Pass {
  readonly beside: number;
  #end: (() => void) | null;

  constructor(beside: number, end: () => void) {
    this.beside = beside;
    this.#end = end;
  }

  [Symbol.dispose](): void {
    const end = this.#end;
    this.#end = null;
    end?.();
  }
}
