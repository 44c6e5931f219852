import { fail, ok, type Result } from '../../../shared/errors.ts';

const SIZE_UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  tib: 1024 ** 4,
};

const DURATION_UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  sec: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `8GB`, `512 MiB`, `1.5gb` → bytes (GB decimal, GiB binary), more than 0 and at most 2^53. */
export function parseSizeBytes(text: string): Result<number> {
  const bytes = parseQuantity(text, SIZE_UNITS);
  if (bytes !== null && bytes >= 1 && bytes <= Number.MAX_SAFE_INTEGER) return ok(Math.round(bytes));
  return fail('bad_input', `${JSON.stringify(text)} is not a size; write it like 8GB or 512MiB.`);
}

/** `180s`, `15min`, `2h` → milliseconds, more than 0 and at most ten years. */
export function parseDurationMs(text: string): Result<number> {
  const ms = parseQuantity(text, DURATION_UNITS_MS);
  if (ms !== null && ms > 0 && ms <= 3650 * 86_400_000) return ok(Math.round(ms));
  return fail('bad_input', `${JSON.stringify(text)} is not a duration; write it like 180s, 15min or 2h.`);
}

function parseQuantity(text: string, units: Readonly<Record<string, number>>): number | null {
  const [, figure, unit] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(text) ?? [];
  if (figure === undefined || unit === undefined) return null;
  const name = unit.toLowerCase();
  return Object.hasOwn(units, name) ? Number(figure) * (units[name] ?? Number.NaN) : null;
}
