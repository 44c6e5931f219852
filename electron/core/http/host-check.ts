import type { IncomingMessage } from 'node:http';

/**
 * Which requests are meant for us. A page on the internet can point its own name at 127.0.0.1 (DNS
 * rebinding) or post to us across origins; a browser tells on it in `Host`, `Origin` and
 * `Sec-Fetch-Site`, which scripts can't forge (Fetch standard, forbidden request headers).
 */
export interface RequestOrigin {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /** `Sec-Fetch-Site`: `same-origin`, `same-site`, `cross-site` or `none` (typed by the user). */
  readonly fetchSite: string | undefined;
  /** `Sec-Fetch-Mode`: `navigate` when a person follows a link. */
  readonly fetchMode: string | undefined;
}

export type Verdict =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly status: number;
      readonly code: 'forbidden_host' | 'forbidden_origin';
      readonly message: string;
    };

const ALLOWED: Verdict = { allowed: true };

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'];

/** What was asked last: a client names the same host in each of its requests. */
let last = { host: '', port: 0, isOwn: false };

/** Whether `host` (a Host header) is a loopback spelling of this machine with our port. */
export function isOwnHost(host: string | undefined, port: number): boolean {
  if (host === undefined) return false;
  if (last.host !== host || last.port !== port) last = { host, port, isOwn: isLoopback(host, port) };
  return last.isOwn;
}

function isLoopback(host: string, port: number): boolean {
  const lower = host.toLowerCase();
  const name = lower.endsWith(`:${port}`) ? lower.slice(0, -`:${port}`.length) : port === 80 ? lower : '';
  return LOOPBACK_NAMES.includes(name);
}

/** Whether `origin` (an Origin header) is our own page; `null`, other ports and https are not. */
export function isOwnOrigin(origin: string, port: number): boolean {
  return origin.toLowerCase().startsWith('http://') && isOwnHost(origin.slice('http://'.length), port);
}

export function checkOrigin(request: RequestOrigin, port: number): Verdict {
  if (!isOwnHost(request.host, port)) {
    return {
      allowed: false,
      status: 421,
      code: 'forbidden_host',
      message: `This server answers only to 127.0.0.1:${port}, localhost:${port} and [::1]:${port}. Use one of these as the host of the URL.`,
    };
  }
  if (request.origin !== undefined && !isOwnOrigin(request.origin, port)) {
    return crossOrigin();
  }
  // Another port of localhost is another program, but the same site: its pages carry our cookie.
  const followsLink = request.method === 'GET' && request.fetchMode === 'navigate';
  if (
    request.fetchSite !== undefined &&
    !['same-origin', 'none'].includes(request.fetchSite) &&
    !followsLink
  ) {
    return crossOrigin();
  }
  return ALLOWED;
}

/** The same, of a request as Node has it. */
export function checkRequest(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  port: number,
): Verdict {
  // Programs that are no browsers say neither.
  if (
    headers.origin === undefined &&
    headers['sec-fetch-site'] === undefined &&
    isOwnHost(headers.host, port)
  )
    return ALLOWED;
  const one = (header: string | string[] | undefined): string | undefined =>
    Array.isArray(header) ? header[0] : header;
  return checkOrigin(
    {
      method: method ?? 'GET',
      host: headers.host,
      origin: headers.origin,
      fetchSite: one(headers['sec-fetch-site']),
      fetchMode: one(headers['sec-fetch-mode']),
    },
    port,
  );
}

function crossOrigin(): Verdict {
  return {
    allowed: false,
    status: 403,
    code: 'forbidden_origin',
    message: 'Pages of other origins may not use this server. Open its own page with `landlord open`.',
  };
}
