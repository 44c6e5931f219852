/** Headers as they stand on the wire: name, value, name, value; order and spelling kept. */
export type RawHeaders = readonly string[];

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
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || named.has(lower)) continue;
    if (lower === 'host' || lower === 'content-length' || lower.startsWith('x-landlord-')) continue;
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
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || named.has(lower) || lower.startsWith('x-landlord-')) continue;
    kept.push(name, raw[index + 1] ?? '');
  }
  for (const name in own) kept.push(name, headerText(own[name] ?? ''));
  return kept;
}

const NO_NAMES: ReadonlySet<string> = new Set();
/** What clients and servers say there, and it names no header. */
const PLAIN_CONNECTION = /^(?:keep-alive|close)$/i;

function namedByConnection(raw: RawHeaders): ReadonlySet<string> {
  let names: Set<string> | null = null;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const said = raw[index + 1] ?? '';
    if (raw[index]?.toLowerCase() !== 'connection' || PLAIN_CONNECTION.test(said)) continue;
    names ??= new Set();
    for (const name of said.split(',')) names.add(name.trim().toLowerCase());
  }
  if (names === null) return NO_NAMES;
  // Nobody can have these taken off: without them a message can't be read.
  names.delete('content-length');
  names.delete('content-type');
  return names;
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
