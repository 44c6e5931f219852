import type { TurnClass } from '../gate/sidecar.ts';
import type { Departure } from './departure.ts';
import type { DeviceQueue, Pass } from './device-queue.ts';
import type { InFlight } from './in-flight.ts';

export interface SeatAbout {
  readonly modelId: string | null;
  readonly deviceId: string | null;
  readonly class: TurnClass;
  readonly caller: string | null;
  readonly sinceMs: number;
}

/** A session thinks, or runs a tool, and asks again. */
const RETURNS_WITHIN_MS = 2_000;

/**
 * A request's place on its device: its model is in use by it, and its class has let it in. It is given
 * up while the request does nothing there, since batch work makes way for whoever has one.
 *
 *   outside ──enter──► inside ──leave──► outside: waits for memory, or is served by another machine
 *      └──enter─────────────▲──────────────┘
 */
export class Seat implements Disposable {
  readonly #queue: DeviceQueue;
  readonly #flights: InFlight;
  readonly #about: SeatAbout;
  readonly #departure: Departure;
  #flight: Disposable;
  #pass: Pass | null = null;
  #stayed = true;
  #isAway = false;

  constructor(flights: InFlight, queue: DeviceQueue, about: SeatAbout, departure: Departure) {
    this.#queue = queue;
    this.#flights = flights;
    this.#about = about;
    this.#departure = departure;
    this.#flight = flights.enter(about);
  }

  /** True, or a promise of it where it has to wait first; false: the client came to leave. */
  enter(): true | Promise<boolean> {
    if (this.#isAway) this.#count(this.#about);
    this.#isAway = false;
    const entered = this.#queue.enter(this.#about.class, this.#departure);
    if (!(entered instanceof Promise)) {
      this.#pass = entered;
      return true;
    }
    return entered.then((pass) => {
      this.#pass = pass;
      return pass !== null;
    });
  }

  /** It is still in flight, but works on no model here. */
  leave(): void {
    this.#stayed = false;
    this.#isAway = true;
    this.#pass?.[Symbol.dispose]();
    this.#pass = null;
    this.#count({ ...this.#about, modelId: null, deviceId: null });
  }

  /** It is served by another machine this time; the next turn of its session tries here first (rule 18). */
  moveAway(): void {
    if (this.#about.class === 'interactive') this.#queue.expect(RETURNS_WITHIN_MS);
    this.leave();
  }

  #count(about: SeatAbout): void {
    this.#flight[Symbol.dispose]();
    this.#flight = this.#flights.enter(about);
  }

  /** Batch requests beside it when it began; null: it has not been here from beginning to end. */
  get beside(): number | null {
    return this.#stayed ? (this.#pass?.beside ?? null) : null;
  }

  [Symbol.dispose](): void {
    this.#pass?.[Symbol.dispose]();
    this.#pass = null;
    this.#flight[Symbol.dispose]();
  }
}
