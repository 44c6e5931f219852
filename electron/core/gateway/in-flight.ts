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
  readonly #flights = new Map<number, Flight>();
  readonly #uses = new Map<string, { interactive: number; batch: number }>();
  #next = 1;

  enter(flight: Omit<Flight, 'id'>): Disposable {
    const id = this.#next;
    this.#next += 1;
    this.#flights.set(id, { ...flight, id });
    this.#count(flight, 1);
    return {
      [Symbol.dispose]: () => {
        if (this.#flights.delete(id)) this.#count(flight, -1);
      },
    };
  }

  /** null: nobody uses it now. An interactive turn outranks the batch beside it. */
  use(modelId: string): ModelUse | null {
    const use = this.#uses.get(modelId);
    if (use === undefined) return null;
    return { class: use.interactive > 0 ? 'interactive' : 'batch', requests: use.interactive + use.batch };
  }

  list(): readonly Flight[] {
    return [...this.#flights.values()];
  }

  #count({ modelId, class: turnClass }: Omit<Flight, 'id'>, by: 1 | -1): void {
    if (modelId === null) return;
    const use = this.#uses.get(modelId) ?? { interactive: 0, batch: 0 };
    use[turnClass] += by;
    if (use.interactive + use.batch === 0) this.#uses.delete(modelId);
    else this.#uses.set(modelId, use);
  }
}
