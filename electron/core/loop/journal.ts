import { ACTION_KINDS, type LandlordEvent, type NewEvent } from '../../../shared/events.ts';
import type { Clock } from '../clock.ts';
import type { EventStore } from '../events/event-store.ts';

/** One line to syslog or the journal for each eviction, kill and drain (design §5.5). */
export type SystemLog = (line: string) => void;

/**
 * Where everything that happened is told: first to the store, then to those who listen, and for an
 * action to the system log too. Events keep their order whatever the disk does.
 */
export class Journal {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #systemLog: SystemLog;
  readonly #listeners = new Set<(event: LandlordEvent) => void>();
  #last: Promise<void> = Promise.resolve();

  constructor(store: EventStore, clock: Clock, systemLog: SystemLog) {
    this.#store = store;
    this.#clock = clock;
    this.#systemLog = systemLog;
  }

  tell(event: NewEvent): void {
    const epochMs = this.#clock.epochMs();
    if (ACTION_KINDS.has(event.kind)) this.#systemLog(`${event.kind}: ${event.reason}`);
    const stored = this.#store.append(event, epochMs);
    this.#last = this.#last.then(async () => {
      const logged = await stored;
      for (const listener of this.#listeners) listener(logged);
    });
  }

  onEvent(listener: (event: LandlordEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves when everything told so far is committed and has been passed on. */
  flushed(): Promise<void> {
    return this.#last;
  }
}
