import { tokenMatches } from '../state-dir/token.ts';
import { COOKIE_DAYS, cookieName, type PageKeys } from './page-key.ts';

/** What a request brings to prove that it may ask. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
}

export interface Gatekeeper {
  /** The token as a bearer, or the page's cookie. */
  mayUseApi(credentials: Credentials): boolean;
  /** `/metrics` and `/healthz`: open unless a key is set; then that key, or whatever opens the API. */
  mayReadOpenRoutes(credentials: Credentials): boolean;
  /** The Set-Cookie header for a right one-time key; null for a wrong or used one. */
  exchange(key: string): string | null;
}

export interface GatekeeperOptions {
  readonly token: string;
  /** The value behind `server.apiKeyEnv`; null: none is asked for. */
  readonly apiKey: () => string | null;
  readonly keys: PageKeys;
  /** The port is known only once the server listens. */
  readonly port: () => number;
  readonly epochMs: () => number;
}

export function createGatekeeper(options: GatekeeperOptions): Gatekeeper {
  const { token, keys } = options;
  const mayUseApi = (given: Credentials): boolean => {
    const bearer = bearerOf(given.authorization);
    if (bearer !== null) return tokenMatches(token, bearer);
    const values = cookieValues(given.cookie, cookieName(options.port()));
    return values.some((value) => keys.isCookie(value, options.epochMs()));
  };
  return {
    mayUseApi,
    mayReadOpenRoutes(given) {
      const apiKey = options.apiKey();
      if (apiKey === null || mayUseApi(given)) return true;
      const bearer = bearerOf(given.authorization);
      return bearer !== null && tokenMatches(apiKey, bearer);
    },
    exchange(key) {
      if (!keys.take(key)) return null;
      const value = keys.cookie(options.epochMs());
      const maxAge = COOKIE_DAYS * 86_400;
      return `${cookieName(options.port())}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAge}`;
    },
  };
}

/** The credential of an RFC 6750 `Authorization: Bearer …` header; null for anything else. */
export function bearerOf(authorization: string | undefined): string | null {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? null;
}

/** All values of one cookie: a browser may send several of one name, set for different paths. */
export function cookieValues(header: string | undefined, name: string): readonly string[] {
  return (header ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .map((part) => part.slice(name.length + 1))
    .slice(0, 8);
}
