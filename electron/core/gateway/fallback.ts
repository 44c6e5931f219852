import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { FallbackSetting } from '../../../shared/settings.ts';
import { httpClient } from '../backends/http.ts';

/**
 * What the entry calls the model that was asked for: its own name for it, `*`, or the same. `wanted` is the
 * model's name at its backend, or with that backend's before it; other slashes are the name's own, as in
 * `author/model`.
 */
export function fallbackModel(
  setting: FallbackSetting,
  wanted: string | null,
  backend: string,
): string | null {
  if (wanted === null) return setting.models['*'] ?? null;
  const model = wanted.startsWith(`${backend}/`) ? wanted.slice(backend.length + 1) : wanted;
  for (const name of [`${backend}/${model}`, model, '*'])
    if (Object.hasOwn(setting.models, name)) return setting.models[name] ?? null;
  return model;
}

/** URLs are those of the settings: few, and taken apart once. */
const parts = new Map<string, { readonly origin: string; readonly base: string }>();
const MOST_PARTS = 64;

function partsOf(url: string): { readonly origin: string; readonly base: string } {
  const known = parts.get(url);
  if (known !== undefined) return known;
  const { origin, pathname } = new URL(url);
  const made = { origin, base: pathname.replace(/\/+$/, '') };
  if (parts.size >= MOST_PARTS) parts.clear();
  parts.set(url, made);
  return made;
}

/** The path at an upstream whose URL may end in `/v1` already. */
export function upstreamPath(url: string, path: string): { readonly origin: string; readonly path: string } {
  const { origin, base } = partsOf(url);
  const rest = /\/v\d+$/.test(base) && path.startsWith('/v1/') ? path.slice('/v1'.length) : path;
  return { origin, path: `${base}${rest}` };
}

/** What a client proves to us in its address is no business of another machine's; the rest of the query goes on. */
export function withoutKeys(path: string): string {
  const [before = '', query] = path.split(/\?(.*)/s);
  if (query === undefined || query === '') return before;
  const kept = query.split('&').filter((part) => !/^[\w-]*(?:key|token|secret|password)=/i.test(part));
  return kept.length === 0 ? before : `${before}?${kept.join('&')}`;
}

/** In which headers a key of ours goes to an entry. */
export interface KeyHeaders {
  /** As `authorization: Bearer …`. */
  readonly bearer: string | null;
  /** As `x-api-key`. */
  readonly apiKey: string | null;
}

/**
 * Anthropic's own servers take a bearer for an OAuth token and refuse a key there (401, invalid bearer token:
 * alibaba/open-code-review 71, BerriAI/litellm 21039); others that speak its dialect take either.
 */
export function keyHeaders(origin: string, dialect: 'openai' | 'anthropic', key: string | null): KeyHeaders {
  if (key === null || dialect === 'openai') return { bearer: key, apiKey: null };
  if (!/(?:^|\.)anthropic\.com$/.test(new URL(origin).hostname)) return { bearer: key, apiKey: key };
  return key.startsWith('sk-ant-oat') ? { bearer: key, apiKey: null } : { bearer: null, apiKey: key };
}

const ASK_LIMIT_MS = 10_000;

/** Whether an entry answers at all, by its list of models; a refusal is an answer. */
export async function askFallback(setting: FallbackSetting, apiKey: string | null): Promise<Result<void>> {
  const { origin, path } = upstreamPath(setting.url, '/v1/models');
  const http = httpClient(origin, apiKey);
  try {
    const answer = await http.get(path, { timeoutMs: ASK_LIMIT_MS });
    if (answer.kind === 'failed') return fail('backend_unreachable', answer.message);
    return answer.status < 500
      ? ok(undefined)
      : fail('backend_unreachable', `${setting.name} answers with status ${answer.status}.`);
  } finally {
    http.close();
  }
}
