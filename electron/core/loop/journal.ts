import type { LandlordEvent, NewEvent } from '../../../shared/events.ts';
import type { Clock } from '../clock.ts';
import type { EventStore } from '../events/event-store.ts';
import { type Notification, notify } from '../events/notification-log.ts';
import { secrets } from '../security/secrets.ts';

/** One line to syslog or the journal for each eviction, kill and drain (design §5.5). */
export interface SystemLog {
  write(event: LandlordEvent): void;
  /** Once all that was given is written or given up. */
  flush(): Promise<void>;
}

export const NO_SYSTEM_LOG: SystemLog = { write: () => {}, flush: async () => {} };

/**
 * Where everything that happened is told: first to the store, then, in the same order, to the system
 * log, to the notification records and to those who listen.
 */
export class Journal {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #systemLog: SystemLog;
  readonly #listeners = new Set<(event: LandlordEvent) => void>();
  #notifications: readonly Notification[] = [];
  #last: Promise<void> = Promise.resolve();

  constructor(store: EventStore, clock: Clock, systemLog: SystemLog) {
    this.#store = store;
    this.#clock = clock;
    this.#systemLog = systemLog;
  }

  tell(event: NewEvent): void {
    const clean = { ...event, reason: secrets.hide(event.reason) };
    const stored = this.#store.append(clean, this.#clock.epochMs());
    this.#last = this.#last.then(async () => this.#pass(await stored));
  }

  onEvent(listener: (event: LandlordEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What a person is to be told outside the window, oldest first. */
  notifications(): readonly Notification[] {
    return this.#notifications;
  }

  /** Resolves when everything told so far is committed, or the disk takes nothing for a while. */
  committed(): Promise<void> {
    return this.#last;
  }

  /** Resolves when everything told so far is committed and has been passed on. */
  async flushed(): Promise<void> {
    await this.#last;
    await this.#systemLog.flush();
  }

  #pass(event: LandlordEvent): void {
    this.#systemLog.write(event);
    this.#notifications = notify(this.#notifications, event);
    for (const listener of this.#listeners) listener(event);
  }
}
