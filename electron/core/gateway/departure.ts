/**
 * Whether the client has left, told to few listeners or none. An AbortController for each request costs
 * more than everything the gateway decides about it, so there is one only where something asks for its
 * signal: what waits.
 */
export class Departure {
  #left = false;
  #listeners: (() => void)[] | null = null;
  #controller: AbortController | null = null;

  get left(): boolean {
    return this.#left;
  }

  /** Calls `listener` when the client leaves; returns its undo. Never called for one that has left before. */
  onLeft(listener: () => void): () => void {
    // No Set: V8 calls out of JavaScript to make one smaller again.
    this.#listeners ??= [];
    const listeners = this.#listeners;
    listeners.push(listener);
    return () => {
      if (listeners.at(-1) === listener) listeners.pop();
      else if (listeners.includes(listener)) listeners.splice(listeners.indexOf(listener), 1);
    };
  }

  /** The same as a signal. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#left) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#controller?.abort();
    for (const listener of [...(this.#listeners ?? [])]) listener();
  }
}
