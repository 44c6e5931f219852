import type { NewEvent } from '../../../shared/events.ts';
import type { UnloadWish } from '../actuators/executor.ts';
import type { EventStore } from '../events/event-store.ts';

const PREFIX = 'intent/';

/**
 * Unloads that were asked for and whose outcome is not known yet, kept on disk: if we are ended in
 * between, the next start still tells what was done and why (rules 21 and 22).
 */
export class Intents {
  readonly #store: EventStore;

  constructor(store: EventStore) {
    this.#store = store;
  }

  note(wish: UnloadWish): void {
    void this.#store.set(PREFIX + wish.modelId, { cause: wish.cause, reason: wish.reason });
  }

  clear(modelId: string): void {
    void this.#store.set(PREFIX + modelId, null);
  }

  /** What an earlier run left open, as events; each is told once. */
  async takeOpen(): Promise<readonly NewEvent[]> {
    const events: NewEvent[] = [];
    for (const [key, value] of Object.entries(await this.#store.all(PREFIX))) {
      if (typeof value !== 'object' || value === null || !('reason' in value)) continue;
      const model = key.slice(PREFIX.length);
      events.push({
        kind: 'evicted',
        model,
        backend: model.slice(0, model.indexOf('/')),
        reason: `${String(value.reason)} VRAM Landlord ended before it saw the outcome.`,
        numbers: { freedBytes: null },
      });
      await this.#store.set(key, null);
    }
    return events;
  }
}
