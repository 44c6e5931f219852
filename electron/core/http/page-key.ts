import { createHmac, randomBytes } from 'node:crypto';
import { tokenMatches } from '../state-dir/token.ts';

/**
 * How a browser gets in without ever seeing the token.
 *
 *   token ──issue()──► one-time key in the URL ──take()──► cookie ──isCookie()──► page and API
 *
 * A key works once and dies with the process, so a URL left in a terminal or a history opens nothing
 * later. The cookie holds a date and its HMAC under the token: it outlives a restart of the runtime,
 * and a new token ends it. Cookies do not tell ports apart (RFC 6265 §8.5), so its name carries ours.
 */
export interface PageKeys {
  /** A fresh one-time key. At most 64 unused ones are remembered; the oldest goes first. */
  issue(): string;
  /** True once for each key that `issue` gave. */
  take(key: string): boolean;
  /** The value of a cookie that is good for 30 days from `epochMs`. */
  cookie(epochMs: number): string;
  isCookie(value: string, epochMs: number): boolean;
}

export const COOKIE_DAYS = 30;
const COOKIE_SECONDS = COOKIE_DAYS * 86_400;
const MAX_UNUSED = 64;

export function createPageKeys(token: string): PageKeys {
  const unused = new Set<string>();
  const sign = (seconds: number): string =>
    createHmac('sha256', token).update(`vram-landlord cookie ${seconds}`).digest('base64url');
  return {
    issue() {
      const nonce = randomBytes(18);
      const key = createHmac('sha256', token)
        .update('vram-landlord page key ')
        .update(nonce)
        .digest('base64url');
      unused.add(key);
      for (const oldest of unused) {
        if (unused.size <= MAX_UNUSED) break;
        unused.delete(oldest);
      }
      return key;
    },
    take: (key) => unused.delete(key),
    cookie(epochMs) {
      const seconds = Math.floor(epochMs / 1000);
      return `${seconds}.${sign(seconds)}`;
    },
    isCookie(value, epochMs) {
      const [, date, signature] = /^(\d{1,12})\.([\w-]{1,64})$/.exec(value) ?? [];
      if (date === undefined || signature === undefined) return false;
      const seconds = Number(date);
      const ageSeconds = epochMs / 1000 - seconds;
      return tokenMatches(sign(seconds), signature) && ageSeconds > -60 && ageSeconds < COOKIE_SECONDS;
    },
  };
}

export function cookieName(port: number): string {
  return `landlord_${port}`;
}
