import type { Clock } from '../clock.ts';

/** CLOCK_BOOTTIME runs on while the machine sleeps and CLOCK_MONOTONIC does not; a jump of one against the other is a resume. */
const JUMP_MS = 2_000;

/** Sees that the machine was suspended, without asking anyone. */
export class WakeWatch {
  readonly #bootMs: () => number;
  readonly #clock: Clock;
  #lastBootMs: number;
  #offsetMs: number;
  #resumedAtMs: number | null = null;
  #suspendedMs = 0;

  constructor(bootMs: () => number, clock: Clock) {
    this.#bootMs = bootMs;
    this.#clock = clock;
    this.#lastBootMs = bootMs();
    this.#offsetMs = this.#lastBootMs - clock.monotonicMs();
  }

  /** True when the machine has resumed since the last look. */
  look(): boolean {
    this.#lastBootMs = this.#bootMs();
    const offsetMs = this.#lastBootMs - this.#clock.monotonicMs();
    const jumpMs = offsetMs - this.#offsetMs;
    if (jumpMs < JUMP_MS) return false;
    this.#offsetMs = offsetMs;
    this.#suspendedMs = jumpMs;
    this.#resumedAtMs = this.#clock.monotonicMs();
    return true;
  }

  /** Since boot, suspends included, as of the last look: each reading opens a file. */
  get bootMs(): number {
    return this.#lastBootMs;
  }

  /** Monotonic ms of the last resume; null: none since we run. */
  get resumedAtMs(): number | null {
    return this.#resumedAtMs;
  }

  get suspendedMs(): number {
    return this.#suspendedMs;
  }
}
