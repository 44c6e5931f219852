import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { EVENT_KINDS, type EventKind, type LandlordEvent, type NewEvent } from '../../../shared/events.ts';
import type { EventQuery } from '../runtime-api.ts';
import type { EventRow } from './store-protocol.ts';

/** A reason is a sentence; what is longer is some other program's output that found its way in. */
const REASON_MAX_CHARS = 4000;
export const QUERY_DEFAULT = 200;
export const QUERY_MAX = 5000;

/** An event as a caller gives it, made safe to store: unknown and impossible numbers are null. */
export function toEvent(id: number, event: NewEvent, epochMs: number): LandlordEvent {
  const numbers = Object.fromEntries(
    Object.entries(event.numbers).map(([key, value]) => [key, Number.isFinite(value) ? value : null]),
  );
  return {
    id,
    at: isoTime(epochMs),
    kind: event.kind,
    reason:
      event.reason.length > REASON_MAX_CHARS ? `${event.reason.slice(0, REASON_MAX_CHARS)}…` : event.reason,
    ...(event.model === undefined ? {} : { model: event.model }),
    ...(event.backend === undefined ? {} : { backend: event.backend }),
    ...(event.session === undefined ? {} : { session: event.session }),
    ...(event.deviceId === undefined ? {} : { deviceId: event.deviceId }),
    numbers,
  };
}

/** A clock that gives no time at all must not cost the event. */
function isoTime(epochMs: number): string {
  const date = new Date(epochMs);
  return Number.isNaN(date.getTime()) ? new Date(0).toISOString() : date.toISOString();
}

export function toRow(event: LandlordEvent): EventRow {
  return {
    id: event.id,
    atMs: Date.parse(event.at),
    kind: event.kind,
    reason: event.reason,
    model: event.model ?? null,
    backend: event.backend ?? null,
    session: event.session ?? null,
    deviceId: event.deviceId ?? null,
    numbers: JSON.stringify(event.numbers),
  };
}

type OutputRow = Readonly<Record<string, SQLOutputValue>>;

export function fromRow(row: OutputRow): LandlordEvent {
  const optional = (key: string, name: 'model' | 'backend' | 'session' | 'deviceId') => {
    const value = row[key];
    return typeof value === 'string' ? { [name]: value } : {};
  };
  return {
    id: Number(row.id),
    at: new Date(Number(row.at_ms)).toISOString(),
    kind: knownKind(row.kind),
    reason: String(row.reason),
    ...optional('model', 'model'),
    ...optional('backend', 'backend'),
    ...optional('session', 'session'),
    ...optional('device_id', 'deviceId'),
    numbers: JSON.parse(String(row.numbers)),
  };
}

/** The column only ever gets kinds; a later version's new kind is handed on as it is. */
function knownKind(value: SQLOutputValue | undefined): EventKind {
  const kinds: readonly string[] = EVENT_KINDS;
  const isKind = (text: unknown): text is EventKind => typeof text === 'string' && kinds.includes(text);
  return isKind(value) ? value : 'driver_trouble';
}

/** The limit as meant: 1 to 5000, default 200. */
export function limitOf(query: EventQuery): number {
  const limit = query.limit ?? QUERY_DEFAULT;
  return Number.isFinite(limit) ? Math.min(QUERY_MAX, Math.max(1, Math.trunc(limit))) : QUERY_DEFAULT;
}

/** The newest that match, newest first. */
export function toSql(query: EventQuery): {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
} {
  const where: string[] = [];
  const values: SQLInputValue[] = [];
  const add = (clause: string, value: SQLInputValue | undefined) => {
    if (value === undefined) return;
    where.push(clause);
    values.push(value);
  };
  add('id > ?', query.afterId);
  add('id < ?', query.beforeId);
  add('model = ?', query.model);
  add('at_ms >= ?', query.since);
  if (query.kinds !== undefined) {
    where.push(`kind IN (${query.kinds.map(() => '?').join(', ')})`);
    values.push(...query.kinds);
  }
  const filter = where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`;
  return {
    sql: `SELECT * FROM events ${filter} ORDER BY id DESC LIMIT ?`,
    values: [...values, limitOf(query)],
  };
}

/** The same filter for events that are still in memory. */
export function matches(event: LandlordEvent, query: EventQuery): boolean {
  return (
    (query.afterId === undefined || event.id > query.afterId) &&
    (query.beforeId === undefined || event.id < query.beforeId) &&
    (query.model === undefined || event.model === query.model) &&
    (query.since === undefined || Date.parse(event.at) >= query.since) &&
    (query.kinds === undefined || query.kinds.includes(event.kind))
  );
}
