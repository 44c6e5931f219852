import type { LandlordEvent } from '../../../shared/events.ts';

/** Kept in memory while the disk takes nothing. */
export const PENDING_MAX = 1000;

interface Pending {
  readonly event: LandlordEvent;
  /** Told once: when committed, or when the caller should not wait any longer. */
  resolve: ((event: LandlordEvent) => void) | null;
}

/** Events that are not on disk yet, oldest first. */
export class PendingEvents {
  #entries: Pending[] = [];
  #droppedCount = 0;

  get size(): number {
    return this.#entries.length;
  }

  add(event: LandlordEvent): Promise<LandlordEvent> {
    return new Promise((resolve) => {
      this.#entries.push({ event, resolve });
    });
  }

  events(): readonly LandlordEvent[] {
    return this.#entries.map((entry) => entry.event);
  }

  first(count: number): readonly LandlordEvent[] {
    return this.#entries.slice(0, count).map((entry) => entry.event);
  }

  /** These are on disk now, under these ids. */
  committed(events: readonly LandlordEvent[], ids: readonly number[]): void {
    const idOf = new Map(events.map((event, index) => [event, ids[index] ?? event.id]));
    const done = this.#entries.filter((entry) => idOf.has(entry.event));
    this.#entries = this.#entries.filter((entry) => !idOf.has(entry.event));
    for (const entry of done) {
      const id = idOf.get(entry.event) ?? entry.event.id;
      entry.resolve?.(id === entry.event.id ? entry.event : { ...entry.event, id });
    }
  }

  /** Nobody waits any longer; the events stay, the newest of them, to be written later. */
  letGo(): void {
    for (const entry of this.#entries) {
      entry.resolve?.(entry.event);
      entry.resolve = null;
    }
    const surplus = this.#entries.length - PENDING_MAX;
    if (surplus <= 0) return;
    this.#entries = this.#entries.slice(surplus);
    this.#droppedCount += surplus;
  }

  /** How many were let fall since it was last asked. */
  takeDroppedCount(): number {
    const count = this.#droppedCount;
    this.#droppedCount = 0;
    return count;
  }
}
