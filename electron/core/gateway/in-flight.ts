import type { TurnClass } from '../gate/sidecar.ts';
import type { ModelUse } from '../loop/world.ts';

/** One request that is being served, or waits to be. */
export interface Flight {
  readonly id: number;
  readonly modelId: string | null;
  readonly deviceId: string | null;
  readonly class: TurnClass;
  readonly caller: string | null;
  readonly sinceMs: number;
}

/**
 * The requests in flight, by model: what makes a model in use from the moment it is asked for, before
 * its backend can show it, and whose turn it serves (rule 7).
 */
export class InFlight {
  /** Few at a time: a Set would be made smaller and larger with each. */
  readonly #flights: Flight[] = [];
  readonly #uses = new Map<string, { interactive: number; batch: number }>();
  #next = 1;

  enter(flight: Omit<Flight, 'id'>): Disposable {
    const { modelId, deviceId, class: turnClass, caller, sinceMs } = flight;
    const entered = { id: this.#next, modelId, deviceId, class: turnClass, caller, sinceMs };
    this.#next += 1;
    this.#flights.push(entered);
    this.#count(entered, 1);
    return new Entered(this, entered);
  }

  leave(flight: Flight): void {
    const at = this.#flights.indexOf(flight);
    if (at < 0) return;
    this.#flights.splice(at, 1);
    this.#count(flight, -1);
  }

  /** null: nobody uses it now. An interactive turn outranks the batch beside it. */
  use(modelId: string): ModelUse | null {
    const use = this.#uses.get(modelId);
    if (use === undefined || use.interactive + use.batch === 0) return null;
    return { class: use.interactive > 0 ? 'interactive' : 'batch', requests: use.interactive + use.batch };
  }

  list(): readonly Flight[] {
    return [...this.#flights];
  }

  #count({ modelId, class: turnClass }: Flight, by: 1 | -1): void {
    if (modelId === null) return;
    const known = this.#uses.get(modelId);
    const use = known ?? { interactive: 0, batch: 0 };
    use[turnClass] += by;
    if (known === undefined) this.#uses.set(modelId, use);
  }
}

/** In flight until it is disposed. */
class Entered implements Disposable {
  readonly #flights: InFlight;
  readonly #flight: Flight;

  constructor(flights: InFlight, flight: Flight) {
    this.#flights = flights;
    this.#flight = flight;
  }

  [Symbol.dispose](): void {
    this.#flights.leave(this.#flight);
  }
}
