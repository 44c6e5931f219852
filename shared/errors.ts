/**
 * Errors are values: a code a program can branch on, the numbers behind it,
 * and a sentence a person can act on. Nothing throws across a layer without one.
 */
export const ERROR_CODES = [
  'bad_input',
  'config_rejected',
  'unknown_model',
  'unknown_device',
  'unknown_backend',
  'vram_denied',
  'big_models_asleep',
  'draining',
  'local_backend_busy',
  'backend_unreachable',
  'backend_refused',
  'model_busy',
  'not_permitted',
  'not_proven',
  'not_supported',
  'timed_out',
  'cancelled',
  'already_running',
  'no_runtime',
  'storage_failed',
  'bad_model_file',
  'engine_unavailable',
  'engine_ended',
  'engine_out_of_memory',
  'context_full',
  'state_mismatch',
  'state_damaged',
  'internal',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

export function isErrorCode(code: unknown): code is ErrorCode {
  return ERROR_CODES.some((known) => known === code);
}

export interface LandlordError {
  readonly code: ErrorCode;
  /** A whole sentence that says what is wrong and what to do. */
  readonly message: string;
  /** The figures behind the sentence; an unknown one is null, never 0. */
  readonly numbers?: Readonly<Record<string, number | null>>;
}

export type Result<T, E = LandlordError> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: E };

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function fail(
  code: ErrorCode,
  message: string,
  numbers?: Readonly<Record<string, number | null>>,
): { readonly ok: false; readonly error: LandlordError } {
  return { ok: false, error: numbers === undefined ? { code, message } : { code, message, numbers } };
}

/** Makes a switch over a union exhaustive at compile time, and loud at run time. */
export function assertNever(value: never, what: string): never {
  throw new Error(`unexpected ${what}: ${JSON.stringify(value)}`);
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
