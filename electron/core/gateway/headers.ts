/** Headers as they stand on the wire: name, value, name, value; order and spelling kept. */
export type RawHeaders = readonly string[];

/** What is to be known of a header by its name as it is spelled. */
interface HeaderName {
  readonly lower: string;
  readonly isHop: boolean;
  /** One of ours, which goes no further. */
  readonly isOurs: boolean;
}

/** Clients and servers send the same ones over and over. */
const names = new Map<string, HeaderName>();
const MOST_NAMES = 256;
const LONGEST_NAME = 64;

export function headerNameOf(name: string): HeaderName {
  const known = names.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  const found = { lower, isHop: HOP_BY_HOP.has(lower), isOurs: lower.startsWith('x-landlord-') };
  if (names.size >= MOST_NAMES) names.clear();
  if (name.length <= LONGEST_NAME) names.set(name, found);
  return found;
}

/** They speak of one connection, not of the message (RFC 9110 §7.6.1); `expect` has been answered by our server. */
const HOP_BY_HOP = new Set([
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export interface RequestHeaderOptions {
  /** Bytes of the body that will be sent; null: as it comes, in chunks; undefined: there is none. */
  readonly contentLength: number | null | undefined;
  /** Sent as `authorization: Bearer …` in place of the client's own; undefined: the client's. */
  readonly apiKey?: string | null | undefined;
  /** The answer must come as plain text: a comment has been sent already. */
  readonly identity?: boolean;
  /** What the client proves to us is no business of another machine's. */
  readonly foreign?: boolean;
}

const CREDENTIALS = new Set(['authorization', 'x-api-key', 'api-key', 'cookie', 'origin', 'referer']);

/** A request's headers on their way to the backend. */
export function requestHeaders(raw: RawHeaders, options: RequestHeaderOptions): string[] {
  const named = namedByConnection(raw);
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const { lower, isHop, isOurs } = headerNameOf(name);
    if (isHop || isOurs || named?.has(lower) === true) continue;
    if (lower === 'host' || lower === 'content-length') continue;
    if (options.apiKey !== undefined && (lower === 'authorization' || lower === 'x-api-key')) continue;
    if (options.foreign === true && CREDENTIALS.has(lower)) continue;
    if (options.identity === true && lower === 'accept-encoding') continue;
    kept.push(name, raw[index + 1] ?? '');
  }
  if (options.identity === true) kept.push('accept-encoding', 'identity');
  if (typeof options.apiKey === 'string') kept.push('authorization', `Bearer ${options.apiKey}`);
  if (typeof options.contentLength === 'number') kept.push('content-length', String(options.contentLength));
  return kept;
}

/** An answer's headers on their way to the client, with ours behind them. */
export function answerHeaders(raw: RawHeaders, own: Readonly<Record<string, string>>): string[] {
  const named = namedByConnection(raw);
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const { lower, isHop, isOurs } = headerNameOf(name);
    if (isHop || isOurs || named?.has(lower) === true) continue;
    kept.push(name, raw[index + 1] ?? '');
  }
  for (const name in own) kept.push(name, headerText(own[name] ?? ''));
  return kept;
}

const CONNECTION = 'connection';
/** What clients and servers say there, and it names no header. */
const PLAIN_CONNECTION = /^(?:keep-alive|close)$/i;

/** null: none. */
function namedByConnection(raw: RawHeaders): ReadonlySet<string> | null {
  let named: Set<string> | null = null;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    if (name.length !== CONNECTION.length || headerNameOf(name).lower !== CONNECTION) continue;
    const said = raw[index + 1] ?? '';
    if (PLAIN_CONNECTION.test(said)) continue;
    named ??= new Set();
    for (const one of said.split(',')) named.add(one.trim().toLowerCase());
  }
  // Nobody can have these taken off: without them a message can't be read.
  named?.delete('content-length');
  named?.delete('content-type');
  return named;
}

/** Nothing in it has to change. */
const PLAIN_TEXT = /^[\x21-\x7e]{0,400}$/;

/** A sentence as a header may carry it: one line of printable ASCII, at most 400 characters. */
export function headerText(text: string): string {
  if (PLAIN_TEXT.test(text)) return text;
  return text
    .replaceAll('’', "'")
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .slice(0, 400)
    .trim();
}
