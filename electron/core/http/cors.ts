import type { IncomingMessage } from 'node:http';

/**
 * Pages of other origins that the config lists (`server.origins`) may use `/v1`, and nothing else here;
 * no other page is told anything (Fetch standard, CORS protocol).
 */
export function isListedOrigin(
  { url, headers }: Pick<IncomingMessage, 'url' | 'headers'>,
  origins: readonly string[],
): boolean {
  const { origin } = headers;
  if (origin === undefined || origins.length === 0) return false;
  return /^\/v1(?=[/?]|$)/.test(url ?? '') && origins.includes(origin.toLowerCase());
}

/** What a page of that origin may read of an answer. */
export function corsHeaders(origin: string): Readonly<Record<string, string>> {
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers':
      'retry-after, x-landlord-route, x-landlord-backend, x-landlord-reason, x-landlord-turn',
    vary: 'Origin',
  };
}

/** The answer to a browser that asks before it sends; null: this is no such question. */
export function preflightHeaders({
  method,
  headers,
}: Pick<IncomingMessage, 'method' | 'headers'>): Readonly<Record<string, string>> | null {
  const asked = headers['access-control-request-method'];
  if (method !== 'OPTIONS' || asked === undefined) return null;
  const wanted = headers['access-control-request-headers'];
  return {
    'access-control-allow-methods': 'GET, POST, DELETE',
    ...(wanted === undefined ? {} : { 'access-control-allow-headers': String(wanted) }),
    // A page of the public web asks for leave to talk to this machine (Private Network Access).
    ...(headers['access-control-request-private-network'] === 'true'
      ? { 'access-control-allow-private-network': 'true' }
      : {}),
    'access-control-max-age': '600',
  };
}
