/** Those who wait for something to become true; asked again after each step. */
export class Waiters {
  readonly #looks = new Set<() => void>();

  /** Resolves true once `condition` held at a look, or false when the limit has passed or the signal came. */
  until(condition: () => boolean, limitMs: number, signal?: AbortSignal): Promise<boolean> {
    if (condition()) return Promise.resolve(true);
    if (signal?.aborted === true) return Promise.resolve(false);
    return new Promise((resolve) => {
      const done = (value: boolean): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        this.#looks.delete(look);
        resolve(value);
      };
      const look = (): void => {
        if (condition()) done(true);
      };
      const onAbort = (): void => done(false);
      const timer = setTimeout(() => done(condition()), limitMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#looks.add(look);
    });
  }

  get none(): boolean {
    return this.#looks.size === 0;
  }

  look(): void {
    for (const look of [...this.#looks]) look();
  }
}
