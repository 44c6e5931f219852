/**
 * What arguments over IPC may look like. A page that was taken over sends what it likes, so each field
 * is read, not trusted: its type, its length, and no field that was not declared.
 */

export type FieldRead<T> =
  | { readonly ok: true; readonly value: T }
  /** `why` follows the field's name: `model must be …`. */
  | { readonly ok: false; readonly why: string };

export type Field<T> = (value: unknown) => FieldRead<T>;

export type Fields<Args> = { readonly [Name in keyof Args]: Field<Args[Name]> };

/** A text of 1 to `maxChars` UTF-16 units. */
export function text(maxChars: number): Field<string> {
  return (value) =>
    typeof value === 'string' && value.length > 0 && value.length <= maxChars
      ? { ok: true, value }
      : { ok: false, why: `must be a text of 1 to ${maxChars} characters` };
}

export const flag: Field<boolean> = (value) =>
  typeof value === 'boolean' ? { ok: true, value } : { ok: false, why: 'must be true or false' };

/** A whole number from `min` to `max`, both included. */
export function whole(min: number, max: number): Field<number> {
  return (value) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
      ? { ok: true, value }
      : { ok: false, why: `must be a whole number from ${min} to ${max}` };
}

export function oneOf<const T extends string>(...allowed: readonly T[]): Field<T> {
  return (value) => {
    const found = allowed.find((one) => one === value);
    return found === undefined
      ? { ok: false, why: `must be one of ${allowed.join(', ')}` }
      : { ok: true, value: found };
  };
}

export function orNull<T>(field: Field<T>): Field<T | null> {
  return (value) => (value === null ? { ok: true, value } : field(value));
}

/**
 * Whether a value takes at most `maxBytes`, counted as structured clone would send it, roughly: two bytes
 * a character, eight a number, eight for each thing held. Stops counting at the limit, so that a huge
 * value costs no more than a large one. Anything but plain data is over any limit.
 */
export function fitsInto(value: unknown, maxBytes: number): boolean {
  let leftBytes = maxBytes;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    leftBytes -= 8;
    if (typeof next === 'string') leftBytes -= 2 * next.length;
    else if (typeof next === 'object' && next !== null) {
      if (!isPlain(next)) return false;
      for (const name in next) {
        leftBytes -= 2 * name.length + 8;
        if (leftBytes < 0) return false;
        waiting.push(Reflect.get(next, name));
      }
    } else if (typeof next === 'bigint' || typeof next === 'function' || typeof next === 'symbol')
      return false;
    if (leftBytes < 0) return false;
  }
  return true;
}

function isPlain(value: object): boolean {
  const kind = Object.prototype.toString.call(value);
  return kind === '[object Object]' || kind === '[object Array]';
}
