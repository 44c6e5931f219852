import { fail, ok, type Result } from '../../../shared/errors.ts';

/**
 * Whether a figure may enter the ledger: a whole number of bytes from 0 to 2^53 − 1. Anything else
 * (NaN, a negative, a fraction, a number that no longer counts in ones) would poison every sum it
 * meets, so it stops here (rule 2).
 */
export function isByteCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** `value` when it may enter the ledger, or null for unknown; else `bad_input` with the figure's name. */
export function checkBytes(value: number | null, what: string): Result<number | null> {
  if (value === null || isByteCount(value)) return ok(value);
  return fail('bad_input', badBytes(value, what), { given: Number.isFinite(value) ? value : null });
}

export function badBytes(value: number, what: string): string {
  return `${what} is ${String(value)}, which is no byte count: give a whole number from 0 to 9007199254740991, or null for unknown.`;
}
