import type { Size } from '../../../shared/settings.ts';

/**
 * The sizes and durations of the config file. `GB` is 10⁹ and `GiB` 2³⁰ bytes. A lone `G` means one
 * thing to some tools and the other to others, so it is asked back.
 */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  /** `hint`: what to write instead, to follow a semicolon. */
  | { readonly ok: false; readonly hint: string };

const SIZE_UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

const DURATION_UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** A plain integer below this is far likelier a forgotten unit than an amount of GPU memory. */
const SMALLEST_PLAIN_BYTES = 2 ** 20;

const NUMBER_AND_UNIT = /^(\d+(?:\.\d+)?)\s*([a-z%]*)$/i;
const SIZE_HINT = 'write an amount such as 4GB or 512MiB';

/** An absolute amount of memory, in bytes. */
export function parseBytes(text: string | number): Parsed<number> {
  if (typeof text === 'number') return plainBytes(text);
  const trimmed = text.trim();
  if (/^\d+,\d+/.test(trimmed))
    return { ok: false, hint: `write the decimals with a point: ${trimmed.replace(',', '.')}` };
  const match = NUMBER_AND_UNIT.exec(trimmed);
  if (match === null) return { ok: false, hint: SIZE_HINT };
  const amount = Number(match[1]);
  const unit = (match[2] ?? '').toLowerCase();
  if (unit === '') return plainBytes(amount);
  if (unit === '%') return { ok: false, hint: `${SIZE_HINT}; a share is not understood here` };
  if (['k', 'm', 'g', 't'].includes(unit)) {
    const letter = unit.toUpperCase();
    return { ok: false, hint: `write ${match[1]}${letter}B (decimal) or ${match[1]}${letter}iB (binary)` };
  }
  const factor = Object.hasOwn(SIZE_UNITS, unit) ? SIZE_UNITS[unit] : undefined;
  if (factor === undefined) return { ok: false, hint: SIZE_HINT };
  const bytes = Math.round(amount * factor);
  if (!Number.isSafeInteger(bytes))
    return { ok: false, hint: 'that is more memory than there is; check the unit' };
  return { ok: true, value: bytes };
}

/** An amount of memory, or a share of a device's total written `12.5%` (0–100). */
export function parseSize(text: string | number): Parsed<Size> {
  if (typeof text === 'string' && text.trim().endsWith('%')) {
    const match = /^(\d+(?:\.\d+)?)\s*%$/.exec(text.trim());
    const percent = Number(match?.[1] ?? Number.NaN);
    if (!(percent >= 0 && percent <= 100)) {
      return { ok: false, hint: 'write a share between 0% and 100%, such as 12.5%' };
    }
    return { ok: true, value: { share: percent / 100 } };
  }
  if (typeof text === 'number' && !Number.isInteger(text) && text > 0 && text < 1) {
    return { ok: false, hint: `write the share in percent: ${Number((text * 100).toFixed(4))}%` };
  }
  const bytes = parseBytes(text);
  return bytes.ok ? { ok: true, value: { bytes: bytes.value } } : { ok: false, hint: withShare(bytes.hint) };
}

/** Milliseconds of `500ms`, `180s`, `1m`, `2h` or `7d`. A number without unit is understood only when it is 0. */
export function parseDuration(text: string | number): Parsed<number> {
  if (text === 0 || text === '0') return { ok: true, value: 0 };
  if (typeof text === 'number') return { ok: false, hint: `add the unit: ${text}s or ${text}ms` };
  const match = NUMBER_AND_UNIT.exec(text.trim());
  const unit = (match?.[2] ?? '').toLowerCase();
  if (match !== null && unit === '')
    return { ok: false, hint: `add the unit: ${match[1]}s or ${match[1]}ms` };
  const factor = Object.hasOwn(DURATION_UNITS, unit) ? DURATION_UNITS[unit] : undefined;
  if (match === null || factor === undefined) {
    return { ok: false, hint: 'write a duration such as 500ms, 180s, 5m or 2h' };
  }
  return { ok: true, value: Math.round(Number(match[1]) * factor) };
}

function plainBytes(amount: number): Parsed<number> {
  if (!Number.isSafeInteger(amount) || amount < 0) return { ok: false, hint: SIZE_HINT };
  if (amount > 0 && amount < SMALLEST_PLAIN_BYTES) {
    return {
      ok: false,
      hint: `a plain number counts bytes; write ${amount}GB or ${amount}MiB if you mean that`,
    };
  }
  return { ok: true, value: amount };
}

function withShare(hint: string): string {
  return hint === SIZE_HINT ? `${SIZE_HINT}, or a share such as 12.5%` : hint;
}
