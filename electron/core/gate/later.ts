/** Work that is dropped by setting it to null: to take it out of a list costs more than to pass over it. */
export interface Pending {
  work: (() => void) | null;
}

/**
 * Work to be done after a while, once or twice `ms`, unless it is dropped before: one timer for all of
 * it, since a timer for each short turn costs more than its lock. Keeps no process alive.
 */
export class Later {
  readonly #ms: number;
  #young: Pending[] = [];
  #due: Pending[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(ms: number) {
    this.#ms = ms;
  }

  add(work: () => void): Pending {
    const pending = { work };
    this.#young.push(pending);
    this.#wait();
    return pending;
  }

  #wait(): void {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => this.#look(), this.#ms);
    this.#timer.unref();
  }

  #look(): void {
    this.#timer = null;
    const due = this.#due;
    this.#due = this.#young.filter(({ work }) => work !== null);
    this.#young = [];
    if (this.#due.length > 0) this.#wait();
    for (const { work } of due) work?.();
  }
}
