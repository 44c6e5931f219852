import type { Conversation } from './conversation.ts';

/** What llama-server says at the end of an answer (`timings`; tools/server README). */
export interface PromptTimings {
  /** Tokens it had read before. */
  readonly cachedTokens: number;
  readonly readTokens: number;
  readonly readMs: number;
}

/** Of all that stands at an answer's end, the last `timings`; null: there are none. */
export function promptTimings(tail: string): PromptTimings | null {
  const at = tail.lastIndexOf('"timings"');
  if (at < 0) return null;
  const [cachedTokens, readTokens, readMs] = [
    figure(tail, at, '"cache_n"'),
    figure(tail, at, '"prompt_n"'),
    figure(tail, at, '"prompt_ms"'),
  ];
  if (cachedTokens === null || readTokens === null || readMs === null) return null;
  return { cachedTokens, readTokens, readMs };
}

const FIGURE = /\s*:\s*(\d+(?:\.\d+)?)/y;

/** The first behind that name from there on; null: there is none. */
function figure(text: string, from: number, name: string): number | null {
  const at = text.indexOf(name, from);
  if (at < 0) return null;
  FIGURE.lastIndex = at + name.length;
  const found = FIGURE.exec(text)?.[1];
  return found === undefined ? null : Number(found);
}

interface Waiting {
  readonly tokens: number;
  readonly msPerToken: number | null;
}

const NONE: readonly Waiting[] = [];

/** Fewer tokens than this say little of a server's pace. */
const PACE_TOKENS = 64;
/** Conversations that came back and were of no use, one after another, before it is put down to the server. */
const USELESS_TIMES = 2;
/** Less reuse than this share of what came back is none: templates begin alike. */
const REUSED_SHARE = 0.5;

/**
 * Whether what was brought back is used: servers answer that all is well and then read everything
 * again (llama.cpp issues 25913, 26676). Judged by the answers that pass through the gateway.
 */
export class Reuse {
  readonly #waiting = new Map<string, readonly Waiting[]>();
  readonly #pace = new Map<string, number>();
  readonly #misses = new Map<string, number>();
  readonly #useless = new Set<string>();
  readonly #onUseless: (modelId: string) => void;

  constructor(onUseless: (modelId: string) => void) {
    this.#onUseless = onUseless;
  }

  isUseless(modelId: string): boolean {
    return this.#useless.has(modelId);
  }

  /** null: none was measured. */
  msPerToken(modelId: string): number | null {
    return this.#pace.get(modelId) ?? null;
  }

  restored(modelId: string, back: readonly Pick<Conversation, 'tokens' | 'msPerToken'>[]): void {
    this.#waiting.set(
      modelId,
      back.map(({ tokens, msPerToken }) => ({ tokens, msPerToken })),
    );
  }

  /** Loaded anew: what waited to be used is gone. */
  forget(modelId: string): void {
    this.#waiting.delete(modelId);
  }

  /** Milliseconds of prompt that parking saved this answer; null: none, or not known. */
  answered(modelId: string, tail: string): number | null {
    const waiting = this.#waiting.get(modelId) ?? NONE;
    const timings = promptTimings(tail);
    if (timings === null) return null;
    const { cachedTokens, readTokens, readMs } = timings;
    const pace = readTokens >= PACE_TOKENS && readMs > 0 ? readMs / readTokens : null;
    if (pace !== null) this.#pace.set(modelId, pace);
    if (waiting.length === 0) return null;
    const used = waiting.find(({ tokens }) => cachedTokens >= tokens * REUSED_SHARE);
    if (used !== undefined) {
      this.#misses.delete(modelId);
      this.#waiting.set(
        modelId,
        waiting.filter((one) => one !== used),
      );
      const msPerToken = used.msPerToken ?? this.#pace.get(modelId) ?? null;
      return msPerToken === null ? null : Math.round(Math.min(used.tokens, cachedTokens) * msPerToken);
    }
    // A shorter prompt is another conversation, and says nothing.
    if (!waiting.some(({ tokens }) => cachedTokens + readTokens >= tokens)) return null;
    this.#waiting.delete(modelId);
    const misses = (this.#misses.get(modelId) ?? 0) + 1;
    this.#misses.set(modelId, misses);
    if (misses >= USELESS_TIMES && !this.#useless.has(modelId)) {
      this.#useless.add(modelId);
      this.#onUseless(modelId);
    }
    return null;
  }
}
