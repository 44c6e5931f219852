/** Where an address of the page points: a notification leads to its event, the tray to the log. Pure. */
import type { EventRow } from './events.ts';

export type Place = { readonly kind: 'event'; readonly id: number } | { readonly kind: 'log' };

/** `#event-12`, `#log`; null: nowhere in particular. */
export function placeOf(hash: string): Place | null {
  if (hash === '#log') return { kind: 'log' };
  const id = /^#event-(\d{1,15})$/.exec(hash)?.[1];
  return id === undefined ? null : { kind: 'event', id: Number(id) };
}

/** The row that tells of an event, which may stand for a run of the same; -1: it is not in the list. */
export function rowAt(rows: readonly EventRow[], id: number): number {
  return rows.findIndex((row) => row.firstId <= id && id <= row.id);
}
