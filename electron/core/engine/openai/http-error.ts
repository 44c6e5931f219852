import type { ErrorCode, LandlordError } from '../../../../shared/errors.ts';

const STATUS: Partial<Record<ErrorCode, number>> = {
  bad_input: 400,
  context_full: 400,
  not_supported: 400,
  not_permitted: 401,
  unknown_model: 404,
  engine_ended: 502,
  engine_unavailable: 503,
  engine_out_of_memory: 503,
  bad_model_file: 503,
};

/** The status and the body of an error, in OpenAI's shape. */
export function httpError(error: LandlordError): { readonly status: number; readonly body: unknown } {
  const status = STATUS[error.code] ?? 500;
  // Clients look for this code to shorten a conversation.
  const code = error.code === 'context_full' ? 'context_length_exceeded' : error.code;
  return {
    status,
    body: {
      error: {
        message: error.message,
        type: status < 500 ? 'invalid_request_error' : 'server_error',
        param: null,
        code,
        ...(error.numbers === undefined ? {} : { landlord: error.numbers }),
      },
    },
  };
}
