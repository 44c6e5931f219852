import type { ModelStatus } from '../../../shared/state.ts';
import type { Clock } from '../clock.ts';
import type { Effects } from './effects.ts';
import {
  type FreeReading,
  freedBytes,
  type Operation,
  type Outcome,
  settled,
  type UnloadCause,
} from './operation.ts';

/** What the executor looks at to see how its operations fare; plain reads, no side effects. */
export interface ExecutorView {
  status(modelId: string): ModelStatus | null;
  heldBytes(modelId: string): number | null;
  deviceOf(modelId: string): string | null;
  free(deviceId: string | null): FreeReading;
  /** True when nothing else loads or leaves on that device, so that its free figure speaks of this model alone. */
  undisturbed(deviceId: string | null, modelId: string): boolean;
  /** True when what is known by now would have another model leave in its place. */
  isOvertaken(operation: Operation): boolean;
}

export interface UnloadWish {
  readonly modelId: string;
  readonly cause: UnloadCause;
  readonly requireIdle: boolean;
  readonly reason: string;
  readonly numbers: Readonly<Record<string, number | null>>;
  readonly forModelId: string | null;
}

/** An unload that has not ended by then is told as stuck, and given up as ours after the second. */
const STUCK_MS = 30_000;
const GIVE_UP_MS = 300_000;

/** How long an unload may wait for conversations to be saved: where memory is wanted at once, not at all or for a moment. */
const PARK_LIMIT_MS: Readonly<Record<UnloadCause, number>> = {
  race: 0,
  hard_floor: 0,
  floor: 3_000,
  max_big: 15_000,
  batch_only: 5_000,
  make_room: 15_000,
  sleep: 30_000,
  ttl: 30_000,
  drain: 15_000,
  person: 15_000,
};

/**
 * Carries decisions out, one operation a model, and follows each until its memory is back.
 * `advance` is called by the control loop after every input; nothing here keeps time by itself.
 */
export class Executor {
  readonly #operations = new Map<string, Operation>();
  readonly #effects: Effects;
  readonly #view: ExecutorView;
  readonly #clock: Clock;
  readonly #onOutcome: (outcome: Outcome) => void;
  /** Asks the loop for another step, after an answer that came between its inputs. */
  readonly #wake: () => void;

  constructor(options: {
    readonly effects: Effects;
    readonly view: ExecutorView;
    readonly clock: Clock;
    readonly onOutcome: (outcome: Outcome) => void;
    readonly wake: () => void;
  }) {
    this.#effects = options.effects;
    this.#view = options.view;
    this.#clock = options.clock;
    this.#onOutcome = options.onOutcome;
    this.#wake = options.wake;
  }

  operation(modelId: string): Operation | null {
    return this.#operations.get(modelId) ?? null;
  }

  operations(): readonly Operation[] {
    return [...this.#operations.values()];
  }

  /** Starts an unload; false when one is already on its way for this model. */
  unload(wish: UnloadWish): boolean {
    if (this.#operations.has(wish.modelId)) return false;
    const deviceId = this.#view.deviceOf(wish.modelId);
    const operation: Operation = {
      modelId: wish.modelId,
      deviceId,
      cause: wish.cause,
      reason: wish.reason,
      numbers: wish.numbers,
      forModelId: wish.forModelId,
      startedAtMs: this.#clock.monotonicMs(),
      freeBeforeBytes: this.#view.free(deviceId).freeBytes,
      heldBytes: this.#view.heldBytes(wish.modelId),
      phase: wish.requireIdle ? 'confirming' : 'requested',
      requestedAtMs: null,
      armed: null,
      signalable: null,
      signalNote: null,
      killedAtMs: null,
      goneAtMs: null,
      lastFreeBytes: null,
      lastSampleAtMs: null,
      steadySamples: 0,
      disturbed: false,
      stuckTold: false,
    };
    this.#operations.set(wish.modelId, operation);
    void (wish.requireIdle ? this.#confirm(operation) : this.#request(operation));
    return true;
  }

  /** Signals the process of a model whose unload is on its way; false when there is nothing proven to signal. */
  kill(modelId: string): boolean {
    const operation = this.#operations.get(modelId);
    if (operation === undefined || operation.phase !== 'requested' || operation.armed === null) return false;
    operation.phase = 'killing';
    operation.killedAtMs = this.#clock.monotonicMs();
    void this.#signal(operation, operation.armed);
    return true;
  }

  /** Nothing more is done about this one; what was asked of its backend stays asked. */
  forget(modelId: string): void {
    this.#operations.get(modelId)?.armed?.[Symbol.dispose]();
    this.#operations.delete(modelId);
  }

  /** Looks at every operation again: gone, settled, stuck. */
  advance(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const operation of [...this.#operations.values()]) {
      operation.disturbed ||= !this.#view.undisturbed(operation.deviceId, operation.modelId);
      if (operation.phase === 'requested' || operation.phase === 'killing')
        this.#lookForGone(operation, nowMs);
      if (operation.phase === 'settling') this.#lookForSettled(operation, nowMs);
    }
  }

  /** Ends every reaper; what was asked of a backend stays asked. */
  stop(): void {
    for (const operation of this.#operations.values()) operation.armed?.[Symbol.dispose]();
    this.#operations.clear();
  }

  async #confirm(operation: Operation): Promise<void> {
    const answer = await this.#effects.confirmIdle(operation.modelId);
    if (!this.#current(operation)) return;
    // A person's order to empty the device is for servers that answer nothing, too.
    const goesOn = operation.cause === 'drain' && answer.busy === null;
    if (answer.busy !== false && !goesOn) {
      const detail = answer.busy === null ? `can't tell whether it is idle: ${answer.why}` : answer.detail;
      return this.#end(operation, { type: 'busy', operation, detail });
    }
    // While it is saved it may be used again, so that it is asked once more.
    const isParked =
      !goesOn && (await this.#effects.park?.(operation.modelId, PARK_LIMIT_MS[operation.cause])) === true;
    if (isParked) {
      if (!this.#current(operation)) return;
      const still = await this.#effects.confirmIdle(operation.modelId);
      if (!this.#current(operation)) return;
      if (still.busy !== false) {
        this.#effects.unpark?.(operation.modelId);
        const detail = still.busy === null ? `can't tell whether it is idle: ${still.why}` : still.detail;
        return this.#end(operation, { type: 'busy', operation, detail });
      }
    }
    if (!this.#current(operation)) return;
    if (this.#view.isOvertaken(operation)) {
      if (isParked) this.#effects.unpark?.(operation.modelId);
      return this.#end(operation, { type: 'busy', operation, detail: 'another was used less lately' });
    }
    operation.phase = 'requested';
    await this.#request(operation);
  }

  async #request(operation: Operation): Promise<void> {
    operation.requestedAtMs = this.#clock.monotonicMs();
    const asked = this.#effects.unload(operation.modelId);
    if (operation.cause === 'race' || operation.cause === 'drain') void this.#arm(operation);
    const answer = await asked;
    if (!this.#current(operation)) return;
    // A server that refuses to unload can still be signalled; without that, the wish has failed.
    if (!answer.ok && operation.cause !== 'race' && operation.cause !== 'drain')
      return this.#end(operation, { type: 'failed', operation, message: answer.error.message });
    this.#effects.sampleSoon();
    this.#wake();
  }

  async #arm(operation: Operation): Promise<void> {
    const armed = await this.#effects.arm(operation.modelId);
    if (!this.#current(operation)) {
      if (armed.ok) armed.value[Symbol.dispose]();
      return;
    }
    operation.signalable = armed.ok;
    if (armed.ok) operation.armed = armed.value;
    else {
      operation.signalNote = armed.error.message;
      const left = this.#hasLeft(operation);
      if (!left) this.#onOutcome({ type: 'signal_refused', operation, message: armed.error.message });
    }
    this.#wake();
  }

  async #signal(operation: Operation, armed: NonNullable<Operation['armed']>): Promise<void> {
    const answer = await armed.kill();
    if (!this.#current(operation)) return;
    if (!answer.ok) {
      operation.signalable = false;
      operation.signalNote = answer.error.message;
      if (operation.phase === 'killing') {
        operation.phase = 'requested';
        operation.killedAtMs = null;
      }
      if (!this.#hasLeft(operation))
        this.#onOutcome({ type: 'signal_refused', operation, message: answer.error.message });
    } else if (answer.value.goneAfterMs !== null) {
      this.#markGone(operation);
      this.#effects.refresh(operation.modelId);
    }
    this.#effects.sampleSoon();
    this.#wake();
  }

  #lookForGone(operation: Operation, nowMs: number): void {
    if (this.#hasLeft(operation)) {
      if (operation.goneAtMs === null) void this.#confirmGone(operation);
      return;
    }
    const waitedMs = nowMs - (operation.requestedAtMs ?? operation.startedAtMs);
    if (waitedMs > STUCK_MS && !operation.stuckTold) {
      operation.stuckTold = true;
      this.#onOutcome({ type: 'stuck', operation, waitedMs });
    }
    if (waitedMs > GIVE_UP_MS)
      this.#end(operation, { type: 'failed', operation, message: 'it did not leave within five minutes' });
  }

  #hasLeft(operation: Operation): boolean {
    const status = this.#view.status(operation.modelId);
    return status === null || status === 'unloaded' || status === 'failed';
  }

  /** The server says it is gone; the kernel has the last word where it can be asked. */
  async #confirmGone(operation: Operation): Promise<void> {
    const gone = await this.#effects.processGone(operation.modelId);
    if (!this.#current(operation) || operation.goneAtMs !== null) return;
    if (gone === false) {
      this.#effects.sampleSoon();
      return;
    }
    this.#markGone(operation);
    this.#wake();
  }

  #markGone(operation: Operation): void {
    operation.goneAtMs ??= this.#clock.monotonicMs();
    operation.phase = 'settling';
    this.#effects.sampleSoon();
  }

  #lookForSettled(operation: Operation, nowMs: number): void {
    const reading = this.#view.free(operation.deviceId);
    if (!settled(operation, reading, nowMs)) {
      this.#effects.sampleSoon();
      return;
    }
    this.#end(operation, {
      type: 'left',
      operation,
      freedBytes: freedBytes(operation, reading),
      tookMs: (operation.goneAtMs ?? nowMs) - (operation.requestedAtMs ?? operation.startedAtMs),
      killed: operation.killedAtMs !== null,
    });
  }

  #current(operation: Operation): boolean {
    return this.#operations.get(operation.modelId) === operation;
  }

  #end(operation: Operation, outcome: Outcome): void {
    this.#operations.delete(operation.modelId);
    operation.armed?.[Symbol.dispose]();
    this.#onOutcome(outcome);
    this.#wake();
  }
}
