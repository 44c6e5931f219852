import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorCode, LandlordError } from '../../../shared/errors.ts';
import { statusOf } from '../http/errors.ts';
import { headerText } from './headers.ts';

export type Dialect = 'openai' | 'anthropic';

/** A request that is not forwarded, and why (design §5.3). */
export interface GatewayRefusal {
  readonly status: number;
  readonly code: ErrorCode | 'too_large' | 'not_found';
  readonly message: string;
  readonly numbers: Readonly<Record<string, number | null>>;
  /** Seconds after which it is worth another try; null: trying again changes nothing. */
  readonly retryAfterS: number | null;
}

export function refusalFor(error: LandlordError): GatewayRefusal {
  return {
    status: statusOf(error.code),
    code: error.code,
    message: error.message,
    numbers: error.numbers ?? {},
    retryAfterS: retryAfterOf(error),
  };
}

function retryAfterOf({ code, numbers }: LandlordError): number | null {
  switch (code) {
    case 'local_backend_busy': {
      const heldForMs = numbers?.heldForMs ?? null;
      // A turn that has gone on for long is likely to go on for as long again, within reason.
      return heldForMs === null ? 5 : Math.min(60, Math.max(2, Math.ceil(heldForMs / 1000)));
    }
    case 'vram_denied':
      return 30;
    case 'big_models_asleep':
      return 300;
    default:
      return null;
  }
}

/** The official clients try 408, 409, 429 and 5xx again twice, unless told not to. */
export function refusalHeaders(
  refused: GatewayRefusal,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  return {
    ...own,
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-should-retry': 'false',
    ...(refused.retryAfterS === null ? {} : { 'retry-after': String(refused.retryAfterS) }),
  };
}

/** `error.landlord` has the numbers, in both shapes. */
export function refusalBody(refused: GatewayRefusal, dialect: Dialect): unknown {
  const { message, code, numbers } = refused;
  if (dialect === 'openai') return { error: { message, type: code, param: null, code, landlord: numbers } };
  return { type: 'error', error: { type: anthropicType(refused), message, code, landlord: numbers } };
}

/** Anthropic's clients know a fixed list of types; our own code stands beside it. */
function anthropicType({ status, code }: GatewayRefusal): string {
  if (code === 'too_large') return 'request_too_large';
  if (status === 404) return 'not_found_error';
  if (status === 400) return 'invalid_request_error';
  return status === 503 ? 'overloaded_error' : 'api_error';
}

/** An error inside a stream that has begun with 200. */
export function refusalFrame(refused: GatewayRefusal, dialect: Dialect): string {
  const data = JSON.stringify(refusalBody(refused, dialect));
  return dialect === 'anthropic' ? `event: error\ndata: ${data}\n\n` : `data: ${data}\n\n`;
}

/** A client that still sends its body is listened to for this long, or it sees a broken connection and no reason. */
const LISTEN_ON_MS = 30_000;

/** Refuses a body that is still coming: answers at once, and takes the rest of it as it comes. */
export function refuseBody(
  request: IncomingMessage,
  response: ServerResponse,
  refused: GatewayRefusal,
  dialect: Dialect,
  own: Readonly<Record<string, string>>,
): void {
  if (response.headersSent || response.destroyed || request.complete) {
    sendRefusal(response, refused, dialect, own);
    return;
  }
  response.write(writeHead(response, refused, dialect, { ...own, connection: 'close' }));
  const end = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, LISTEN_ON_MS);
  timer.unref();
  request.once('end', end);
  request.once('close', end);
  request.once('error', end);
  request.resume();
}

export function sendRefusal(
  response: ServerResponse,
  refused: GatewayRefusal,
  dialect: Dialect,
  own: Readonly<Record<string, string>>,
): void {
  if (response.writableEnded || response.destroyed) return;
  if (response.headersSent) {
    response.end(refusalFrame(refused, dialect));
    return;
  }
  response.end(writeHead(response, refused, dialect, own));
}

/** Its body is what is returned. */
function writeHead(
  response: ServerResponse,
  refused: GatewayRefusal,
  dialect: Dialect,
  own: Readonly<Record<string, string>>,
): string {
  const body = JSON.stringify(refusalBody(refused, dialect));
  const headers = Object.entries(refusalHeaders(refused, own)).flatMap(([name, value]) => [
    name,
    headerText(value),
  ]);
  response.writeHead(refused.status, [...headers, 'content-length', String(Buffer.byteLength(body))]);
  return body;
}
