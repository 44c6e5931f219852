import { field } from '../http.ts';
import { textOf } from '../models-list.ts';

/**
 * The requests in flight in a llama-swap, from the `inflight` messages of its `GET /api/events`:
 * a snapshot first, then one by one. Builds before that told only how many there are.
 */
export interface Flights {
  /** null: only their number is told. */
  readonly byId: ReadonlyMap<string, string> | null;
  readonly count: number;
}

/** One message of the stream; `data` is JSON in a string. */
export interface SwapMessage {
  readonly type: string;
  readonly data: unknown;
}

export function parseSwapMessage(text: string): SwapMessage | null {
  const body = json(text);
  const type = textOf(field(body, 'type'));
  if (type === null) return null;
  const data = field(body, 'data');
  return { type, data: typeof data === 'string' ? json(data) : data };
}

/** After an `inflight` message; null: nothing is known, as before the snapshot. */
export function nextFlights(before: Flights | null, data: unknown): Flights | null {
  const total = field(data, 'total');
  if (typeof total === 'number' && Number.isInteger(total) && total >= 0) return { byId: null, count: total };
  const entries = entriesIn(data);
  switch (field(data, 'operation')) {
    case 'snapshot':
      return flights(new Map(entries));
    case 'upsert':
      return before?.byId == null ? before : flights(new Map([...before.byId, ...entries]));
    case 'remove': {
      if (before?.byId == null) return before;
      const left = new Map(before.byId);
      for (const [id] of entries) left.delete(id);
      return flights(left);
    }
    default:
      return before;
  }
}

/** Whether a model has a request in flight; null: can't be told. `ready`: the models that could have one. */
export function isInFlight(
  flights: Flights | null,
  names: readonly string[],
  ready: readonly string[],
): boolean | null {
  if (flights === null) return null;
  if (flights.byId !== null) {
    const wanted = [...flights.byId.values()];
    if (wanted.some((model) => names.includes(model))) return true;
    // One that names no model may be for any of them.
    return wanted.includes('') ? null : false;
  }
  if (flights.count === 0) return false;
  return ready.length === 1 && names.includes(ready[0] ?? '') ? true : null;
}

function flights(byId: ReadonlyMap<string, string>): Flights {
  return { byId, count: byId.size };
}

function entriesIn(data: unknown): readonly (readonly [string, string])[] {
  const list = [field(data, 'entries'), field(data, 'requests')].find((value) => Array.isArray(value));
  const one = field(data, 'entry') ?? field(data, 'request') ?? data;
  const entries: readonly unknown[] = Array.isArray(list) ? list : [one];
  return entries.flatMap((entry) => {
    const id = field(entry, 'id') ?? entry;
    if (typeof id !== 'string' && typeof id !== 'number') return [];
    return [[String(id), textOf(field(entry, 'model')) ?? ''] as const];
  });
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
