import type { Clock } from '../clock.ts';
import type { Wishes } from './wishes.ts';

/** A smaller step is a clock that is being slewed (NTP), and comes together with others until it is one. */
export const CLOCK_SET_MS = 2_000;

/**
 * Sees that somebody has set the clock. What people ask for "for two hours" is two hours of the machine's
 * own time (CLOCK_BOOTTIME): it goes on while the machine is suspended, and no clock that is set ends it.
 * It is kept as a date all the same, since it outlives a restart and is shown as one, and that date moves
 * with the clock.
 */
export class WallWatch {
  readonly #bootMs: () => number;
  readonly #clock: Clock;
  #offsetMs: number;

  constructor(bootMs: () => number, clock: Clock) {
    this.#bootMs = bootMs;
    this.#clock = clock;
    this.#offsetMs = clock.epochMs() - bootMs();
  }

  /** How far the wall clock was set forth (or back, below 0) since the last look; 0: it was not. */
  look(): number {
    const offsetMs = this.#clock.epochMs() - this.#bootMs();
    const jumpMs = offsetMs - this.#offsetMs;
    if (Math.abs(jumpMs) < CLOCK_SET_MS) return 0;
    this.#offsetMs = offsetMs;
    return Math.round(jumpMs);
  }
}

/** Dates that move with the clock; null: there are none. */
export function movedBy(jumpMs: number, { sleep, guards }: Wishes): Partial<Wishes> | null {
  const isPaused = guards !== null && guards.pausedUntilMs !== null;
  if (jumpMs === 0 || (sleep === null && !isPaused)) return null;
  const moved = (atMs: number | null): number | null => (atMs === null ? null : atMs + jumpMs);
  return {
    ...(sleep === null ? {} : { sleep: { sinceMs: sleep.sinceMs + jumpMs, untilMs: moved(sleep.untilMs) } }),
    ...(isPaused ? { guards: { ...guards, pausedUntilMs: moved(guards.pausedUntilMs) } } : {}),
  };
}
