/** One at a time, in the order asked. */
export class Lock {
  #last: Promise<void> = Promise.resolve();
  #count = 0;

  /** Nobody has it or waits for it. */
  get isFree(): boolean {
    return this.#count === 0;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    this.#count += 1;
    await before;
    try {
      return await work();
    } finally {
      this.#count -= 1;
      resolve();
    }
  }
}
