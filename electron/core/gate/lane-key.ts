/**
 * Which lane a backend's URL means. Two spellings of one backend must give one key, or one lane is
 * two (rule 15); nothing here asks DNS, so a name counts only where this machine says it itself.
 *
 *   URL ──► not http-like, no port, nonsense ──► invalid   (the turn goes through, and is told)
 *       ──► another machine                  ──► remote    (the gate is skipped)
 *       ──► this machine                     ──► local     127.0.0.1_<port>
 */
export type LaneKey =
  | { readonly kind: 'local'; readonly host: typeof LOCAL_HOST; readonly port: number; readonly name: string }
  | { readonly kind: 'remote'; readonly host: string }
  | { readonly kind: 'invalid'; readonly why: string };

/** Names and addresses that mean this machine, canonical: lower case, no brackets, no zone, no final dot. */
export interface LocalNames {
  has(hostOrAddress: string): boolean;
}

export const LOCAL_HOST = '127.0.0.1';

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, ws: 80, https: 443, wss: 443 };

/**
 * `names` is asked only for what is not loopback by its own spelling, so it may be costly.
 * A URL may lack its scheme (`localhost:8080`, `[::1]:8080`, `:8080`): http is meant.
 */
export function laneKey(backendUrl: string, names: () => LocalNames): LaneKey {
  const parts = splitUrl(backendUrl);
  if (parts === null) {
    return { kind: 'invalid', why: `“${backendUrl}” is not a backend's URL; write http://127.0.0.1:8080.` };
  }
  const { host, port } = parts;
  if (!isLoopback(host) && !names().has(host)) return { kind: 'remote', host };
  return { kind: 'local', host: LOCAL_HOST, port, name: `${LOCAL_HOST}_${port}` };
}

interface UrlParts {
  /** Canonical, see `canonicalHost`. */
  readonly host: string;
  readonly port: number;
}

/** Schemes whose URLs clients read as leniently as browsers do: any slashes, or none, before the host. */
const LENIENT = /^(https?|wss?):[/\\]*/i;

function splitUrl(text: string): UrlParts | null {
  // What `URL` drops or reads as a slash (URL Standard, 4.4), so that we judge the same text as it does.
  const trimmed = text
    .replace(/[\t\n\r]/g, '')
    .trim()
    .replaceAll('\\', '/');
  const scheme = LENIENT.exec(trimmed) ?? /^([a-z][a-z0-9+.-]*):\/\//i.exec(trimmed);
  let rest = scheme === null ? trimmed.replace(/^\/+/, '') : trimmed.slice(scheme[0].length);
  if (scheme === null && isBareIpv6(rest)) rest = `[${rest}]`;
  if (rest.startsWith(':')) rest = `localhost${rest}`;
  // A lone number would be read as an address: 8080 is 0.0.31.144.
  if (/^\d{1,5}(\/|$)/.test(rest)) return null;
  const name = scheme?.[1]?.toLowerCase() ?? 'http';
  const defaultPort = DEFAULT_PORTS[name];
  try {
    // The rules for hosts hold for http alone; the port is judged by the scheme that was written.
    const url = new URL(`http://${withoutZone(rest)}`);
    const explicit = url.port === '' && hasPort80(rest) ? 80 : Number(url.port);
    const port = url.port === '' && !hasPort80(rest) ? defaultPort : explicit;
    const host = canonicalHost(url.hostname);
    if (port === undefined || port === 0 || host === '') return null;
    return { host, port };
  } catch {
    return null;
  }
}

/** `URL` drops `:80` from an http URL, which says another thing than no port under https. */
function hasPort80(rest: string): boolean {
  return /^[^/?#]*:0*80(?:[/?#]|$)/.test(rest);
}

function isBareIpv6(text: string): boolean {
  const host = text.split(/[/?#]/)[0] ?? '';
  return !host.includes('[') && /^[0-9a-f:.]*(%.*)?$/i.test(host) && host.split(':').length > 2;
}

/** An IPv6 zone says through which interface; `URL` refuses one, and it names no other machine. */
function withoutZone(rest: string): string {
  return rest.replace(/\[([^\]%]*)%[^\]]*\]/, '[$1]');
}

/**
 * Lower case, no brackets, zone or final dot; IPv6 in its short form; an IPv4 address written as IPv6
 * is that IPv4 address.
 */
export function canonicalHost(hostname: string): string {
  const bare = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/%.*$/, '')
    .replace(/\.$/, '');
  const short = bare.includes(':') ? shortIpv6(bare) : bare;
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short);
  if (mapped === null) return short;
  const high = Number.parseInt(mapped[1] ?? '', 16);
  const low = Number.parseInt(mapped[2] ?? '', 16);
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

function shortIpv6(address: string): string {
  try {
    return new URL(`http://[${address}]`).hostname.slice(1, -1);
  } catch {
    return address;
  }
}

/**
 * Loopback whatever this machine is called: 127.0.0.0/8 and ::1; the unspecified address, which a
 * client that connects to it reaches itself by; and localhost with all names under it (RFC 6761 §6.3).
 */
export function isLoopback(host: string): boolean {
  return (
    /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host) ||
    ['0.0.0.0', '::1', '::', 'localhost', 'localhost.localdomain', 'ip6-localhost', 'ip6-loopback'].includes(
      host,
    ) ||
    host.endsWith('.localhost')
  );
}
