/**
 * What a path asks of a backend.
 *
 *   generate   makes words, pictures or sound: takes the lane where there is one, and needs its model loaded
 *   compute    embeddings and the like: needs its model loaded, never takes the lane
 *   other      lists and other metadata: passed on as it is
 */
export type Work = 'generate' | 'compute' | 'other';

/**
 * Paths after `/v1` or `/api/v1`, llama-server's own without it (its tools/server/README), Ollama's and LM Studio's
 * own, and what llama-swap starts a model for besides (its internal/server/server.go: `/v/…`, sdapi, voices).
 */
const GENERATES =
  /^\/(chat\/completions|completions?|responses|messages|infill|audio\/(transcriptions|translations|speech)|images\/(generations|edits|variations)|api\/(v\d+\/)?chat|api\/generate|sdapi\/v\d+\/(txt2img|img2img))$/;
const COMPUTES =
  /^\/(embeddings?|re-?rank(ing)?|messages\/count_tokens|(responses|chat\/completions)\/input_tokens|score|classify|pooling|audio\/voices|tokenize|detokenize|apply-template|props|slots\/\d+|lora-adapters|chat\/completions\/control|api\/(embed|embeddings))$/;

export function workOf(method: string, path: string): Work {
  if (method !== 'POST') return 'other';
  const bare = barePath(path).replace(/^\/(?:api\/)?v\d*(?=\/(?!chat$))/, '');
  if (GENERATES.test(bare)) return 'generate';
  return COMPUTES.test(bare) ? 'compute' : 'other';
}

/** Whether a stream there is one of events, which may hear comments: Ollama's own are lines of JSON (its docs/api.md). */
export function streamsEvents(path: string): boolean {
  return !/^\/api\/(chat|generate)$/.test(barePath(path));
}

/** Which error shape the client of a path expects. */
export function dialectOf(path: string): 'openai' | 'anthropic' {
  return /\/messages(\/|$)/.test(barePath(path)) ? 'anthropic' : 'openai';
}

/**
 * Whether a path means what it says: it begins with a slash (RFC 9112 §3.2.1; a proxy is asked otherwise),
 * and climbs nowhere. With a key of ours, `/v1/../admin` would open what is behind `/v1` only. What no address
 * may hold (RFC 3986), a `#` or `%u0073`, llama-server cuts off or decodes (cpp-httplib): it would answer
 * `/v1/chat/completions#` without lane and admission.
 */
export function isPlainPath(path: string): boolean {
  const [before = ''] = path.split('?', 1);
  if (!path.startsWith('/') || path.includes('#') || /%u/i.test(before)) return false;
  return !/[/\\]\.{1,2}(?:[/\\]|$)/.test(decoded(before));
}

export interface Endpoint {
  /** Of a POST; any other method is `other`. */
  readonly work: Work;
  readonly dialect: 'openai' | 'anthropic';
  readonly isPlain: boolean;
  readonly streamsEvents: boolean;
}

const MOST_KNOWN = 256;
const LONGEST_KNOWN = 256;
const endpoints = new Map<string, Endpoint>();

/** All that is to be known of a path, found once: clients ask the same few over and over. */
export function endpointOf(path: string): Endpoint {
  const known = endpoints.get(path);
  if (known !== undefined) return known;
  const endpoint = {
    work: workOf('POST', path),
    dialect: dialectOf(path),
    isPlain: isPlainPath(path),
    streamsEvents: streamsEvents(path),
  };
  if (endpoints.size >= MOST_KNOWN) endpoints.clear();
  if (path.length <= LONGEST_KNOWN) endpoints.set(path, endpoint);
  return endpoint;
}

/** Without its query, and decoded: llama-server takes `/v1/chat%2Fcompletions` for what it means. */
export function barePath(path: string): string {
  const queryAt = path.indexOf('?');
  const bare = decoded(queryAt < 0 ? path : path.slice(0, queryAt));
  return bare.length > 1 && bare.endsWith('/') ? bare.slice(0, -1) : bare;
}

function decoded(path: string): string {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
