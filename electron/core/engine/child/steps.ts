/** One piece of native work that nothing can interrupt: a batch of a prompt, a token, a part of a load. */
export interface Step {
  /** The next piece of the same work begins. */
  again(): void;
  end(): void;
}

/** How long native work has been going on. Code that hangs in a driver leaves this process able to answer, so it is told here. */
export class Steps {
  readonly #beganAtMs = new Map<number, number>();
  #nextId = 1;

  begin(): Step {
    const id = this.#nextId;
    this.#nextId += 1;
    const again = (): void => {
      this.#beganAtMs.set(id, performance.now());
    };
    again();
    return { again, end: () => this.#beganAtMs.delete(id) };
  }

  /** Work that is one piece, or says by its step where the next one begins. */
  async during<T>(work: (step: Step) => Promise<T>): Promise<T> {
    const step = this.begin();
    try {
      return await work(step);
    } finally {
      step.end();
    }
  }

  /** Milliseconds of the longest one that runs now; 0: none does. */
  longestMs(): number {
    const first = Math.min(...this.#beganAtMs.values());
    return Number.isFinite(first) ? performance.now() - first : 0;
  }
}
