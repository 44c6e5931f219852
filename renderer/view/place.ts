/** Where an address of the page points: a notification leads to its event, the tray to the log. Pure. */
import type { EventRow } from './events.ts';

export type PageName = 'now' | 'history' | 'events' | 'settings' | 'start';

export type Place =
  | { readonly kind: 'event'; readonly id: number }
  | { readonly kind: 'log' }
  /** `atMs`: a moment in the history, epoch ms. */
  | { readonly kind: 'page'; readonly page: PageName; readonly atMs: number | null };

const PAGES: readonly PageName[] = ['history', 'events', 'settings', 'start'];

/** `#event-12`, `#log`, `#settings`, `#history-1760000000000`; null: nowhere in particular. */
export function placeOf(hash: string): Place | null {
  if (hash === '#log') return { kind: 'log' };
  const page = PAGES.find((one) => hash === `#${one}`);
  if (page !== undefined) return { kind: 'page', page, atMs: null };
  const moment = /^#history-(\d{1,15})$/.exec(hash)?.[1];
  if (moment !== undefined) return { kind: 'page', page: 'history', atMs: Number(moment) };
  const id = /^#event-(\d{1,15})$/.exec(hash)?.[1];
  return id === undefined ? null : { kind: 'event', id: Number(id) };
}

/** The page that a place is on. */
export function pageAt(place: Place | null): PageName {
  return place?.kind === 'page' ? place.page : 'now';
}

/** The row that tells of an event, which may stand for a run of the same; -1: it is not in the list. */
export function rowAt(rows: readonly EventRow[], id: number): number {
  return rows.findIndex((row) => row.firstId <= id && id <= row.id);
}
