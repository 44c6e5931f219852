import type { Clock } from '../clock.ts';

/** CLOCK_BOOTTIME runs on while the machine sleeps and CLOCK_MONOTONIC does not; a jump of one against the other is a resume. */
const JUMP_MS = 2_000;

/** Sees that the machine was suspended, without asking anyone. */
export class WakeWatch {
  readonly #bootMs: () => number;
  readonly #clock: Clock;
  #offsetMs: number;
  #resumedAtMs: number | null = null;
  #suspendedMs = 0;

  constructor(bootMs: () => number, clock: Clock) {
    this.#bootMs = bootMs;
    this.#clock = clock;
    this.#offsetMs = bootMs() - clock.monotonicMs();
  }

  /** True when the machine has resumed since the last look. */
  look(): boolean {
    const offsetMs = this.#bootMs() - this.#clock.monotonicMs();
    const jumpMs = offsetMs - this.#offsetMs;
    if (jumpMs < JUMP_MS) return false;
    this.#offsetMs = offsetMs;
    this.#suspendedMs = jumpMs;
    this.#resumedAtMs = this.#clock.monotonicMs();
    return true;
  }

  /** Monotonic ms of the last resume; null: none since we run. */
  get resumedAtMs(): number | null {
    return this.#resumedAtMs;
  }

  get suspendedMs(): number {
    return this.#suspendedMs;
  }
}
