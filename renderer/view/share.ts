/**
 * Structural sharing: the next value, made of the previous one's parts wherever they are equal. A
 * snapshot that says nothing new yields the very same object, so nothing is rendered again. Pure;
 * for plain data (no cycles, no dates, no maps).
 */
export function share<T>(previous: T, next: T): T;
export function share(previous: unknown, next: unknown): unknown {
  if (Object.is(previous, next)) return previous;
  if (Array.isArray(previous) && Array.isArray(next)) {
    const shared = next.map((value: unknown, index): unknown => share<unknown>(previous[index], value));
    const same =
      shared.length === previous.length && shared.every((value, index) => Object.is(value, previous[index]));
    return same ? previous : shared;
  }
  if (isRecord(previous) && isRecord(next)) {
    const shared: Record<string, unknown> = {};
    let same = true;
    for (const [key, value] of Object.entries(next)) {
      shared[key] = share<unknown>(previous[key], value);
      if (!(key in previous) || !Object.is(shared[key], previous[key])) same = false;
    }
    return same && Object.keys(previous).length === Object.keys(next).length ? previous : shared;
  }
  return next;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
