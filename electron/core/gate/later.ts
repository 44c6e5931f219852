/**
 * Work to be done after a while, once or twice `ms`, unless it is dropped before: one timer for all of
 * it, since a timer for each short turn costs more than its lock. Keeps no process alive.
 */
export class Later {
  readonly #ms: number;
  #young = new Set<() => void>();
  #due = new Set<() => void>();
  #timer: NodeJS.Timeout | null = null;

  constructor(ms: number) {
    this.#ms = ms;
  }

  add(work: () => void): void {
    this.#young.add(work);
    this.#wait();
  }

  drop(work: () => void): void {
    if (!this.#young.delete(work)) this.#due.delete(work);
  }

  #wait(): void {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => this.#look(), this.#ms);
    this.#timer.unref();
  }

  #look(): void {
    this.#timer = null;
    const due = [...this.#due];
    this.#due.clear();
    [this.#young, this.#due] = [this.#due, this.#young];
    if (this.#due.size > 0) this.#wait();
    for (const work of due) work();
  }
}
