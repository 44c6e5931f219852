import type { ErrorCode, LandlordError } from '../../../shared/errors.ts';

/** Codes that only the HTTP layer knows, beside those of shared/errors.ts. */
export type HttpErrorCode =
  | ErrorCode
  | 'unauthorized'
  | 'forbidden_host'
  | 'forbidden_origin'
  | 'not_found'
  | 'method_not_allowed'
  | 'too_large'
  | 'unsupported_media_type'
  | 'too_many_streams';

/** The one shape of every refused request. */
export interface ErrorBody {
  readonly error: {
    readonly code: HttpErrorCode;
    readonly message: string;
    readonly numbers?: Readonly<Record<string, number | null>>;
  };
}

/** A refusal on its way out: status, code and a sentence. */
export interface Refusal {
  readonly status: number;
  readonly body: ErrorBody;
}

export function refusal(status: number, code: HttpErrorCode, message: string): Refusal {
  return { status, body: { error: { code, message } } };
}

export function refusalOf(error: LandlordError): Refusal {
  return { status: statusOf(error.code), body: { error } };
}

/** The HTTP status (RFC 9110, 9111; 507 from RFC 4918) that says what kind of refusal an error code is. */
export function statusOf(code: ErrorCode): number {
  switch (code) {
    case 'bad_input':
    case 'config_rejected':
    case 'context_full':
      return 400;
    case 'not_permitted':
      return 403;
    case 'unknown_model':
    case 'unknown_device':
    case 'unknown_backend':
      return 404;
    case 'model_busy':
    case 'not_proven':
    case 'already_running':
    case 'cancelled':
    case 'state_mismatch':
    case 'state_damaged':
      return 409;
    case 'bad_model_file':
      return 422;
    case 'not_supported':
      return 501;
    case 'backend_unreachable':
    case 'backend_refused':
    case 'engine_ended':
      return 502;
    case 'vram_denied':
    case 'big_models_asleep':
    case 'draining':
    case 'local_backend_busy':
    case 'no_runtime':
    case 'engine_unavailable':
    case 'engine_out_of_memory':
      return 503;
    case 'timed_out':
      return 504;
    case 'storage_failed':
      return 507;
    case 'internal':
      return 500;
  }
}
