import { fail, ok, type Result } from '../../../shared/errors.ts';
import { EVENT_KINDS, type EventKind } from '../../../shared/events.ts';
import type { EventQuery } from '../runtime-api.ts';

/** Most events one answer holds; the default is a screenful for a person. */
const MAX_LIMIT = 5000;

/**
 * The query of `GET /api/events`: `after`, `before` (event ids), `kind` (may repeat, or be a
 * comma-separated list), `model` (`backend/model`), `limit` (1–5000).
 */
export function parseEventQuery(query: URLSearchParams): Result<EventQuery> {
  const after = readId(query, 'after');
  if (!after.ok) return after;
  const before = readId(query, 'before');
  if (!before.ok) return before;
  const limit = readId(query, 'limit');
  if (!limit.ok) return limit;
  if (limit.value !== null && (limit.value < 1 || limit.value > MAX_LIMIT)) {
    return fail('bad_input', `\`limit\` must be from 1 to ${MAX_LIMIT}.`);
  }
  const names = query.getAll('kind').flatMap((list) => list.split(','));
  const stranger = names.find((name) => !isEventKind(name));
  if (stranger !== undefined) {
    return fail(
      'bad_input',
      `${JSON.stringify(stranger)} is not an event kind; the kinds are ${EVENT_KINDS.join(', ')}.`,
    );
  }
  const kinds = names.filter(isEventKind);
  const model = query.get('model');
  return ok({
    ...(after.value === null ? {} : { afterId: after.value }),
    ...(before.value === null ? {} : { beforeId: before.value }),
    ...(kinds.length === 0 ? {} : { kinds }),
    ...(model === null ? {} : { model }),
    ...(limit.value === null ? {} : { limit: limit.value }),
  });
}

/** A `Last-Event-ID`; what is not a whole number is ours no more and reads as none. */
export function parseLastEventId(value: string | undefined): number | null {
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : null;
}

export function isEventKind(name: string): name is EventKind {
  return EVENT_KINDS.some((kind) => kind === name);
}

function readId(query: URLSearchParams, name: string): Result<number | null> {
  const text = query.get(name);
  if (text === null) return ok(null);
  if (/^\d{1,15}$/.test(text)) return ok(Number(text));
  return fail('bad_input', `\`${name}\` must be a whole number, not ${JSON.stringify(text)}.`);
}
