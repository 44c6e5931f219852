import type { Parsed } from './units.ts';

/**
 * A server's address without trailing slashes. No hint repeats the text: it may hold a password.
 */
export function normalizeUrl(text: string): Parsed<string> {
  const schemeless = /^[\w.-]+:\d{1,5}(?=[/?#]|$)/.exec(text);
  if (schemeless !== null) return { ok: false, hint: `write the scheme too: http://${schemeless[0]}` };
  if (!URL.canParse(text))
    return { ok: false, hint: 'this is not a URL; write one such as "http://127.0.0.1:8080"' };
  const parsed = new URL(text);
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') {
    return {
      ok: false,
      hint: 'only http:// and https:// are understood; write one such as "http://127.0.0.1:8080"',
    };
  }
  if (parsed.username !== '' || parsed.password !== '') {
    return {
      ok: false,
      hint: 'a URL here may hold no user name or password; put the key into an environment variable and name it in apiKeyEnv',
    };
  }
  if (parsed.search !== '' || parsed.hash !== '') {
    return { ok: false, hint: 'leave out what follows ? or # in this URL' };
  }
  if (parsed.port === '0')
    return { ok: false, hint: 'no server listens on port 0; write the port it listens on' };
  return { ok: true, value: `${parsed.origin}${parsed.pathname.replace(/\/+$/, '')}` };
}

/** A backend's address is also given with the `/v1` clients add; requests add it themselves. */
export function withoutV1(url: string): string {
  return url.replace(/\/v1$/, '').replace(/\/+$/, '');
}

/** The port a URL means, named or by its scheme. */
export function portOf(url: string): number {
  const parsed = new URL(url);
  if (parsed.port !== '') return Number(parsed.port);
  return parsed.protocol === 'https:' ? 443 : 80;
}

/** The host of a URL with every loopback spelling made one, for telling two servers apart. */
export function hostOf(url: string): string {
  const host = new URL(url).hostname;
  return host === 'localhost' || host === '[::1]' || /^127\./.test(host) ? '127.0.0.1' : host;
}
