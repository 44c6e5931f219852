/** Token counts stand at the end of most answers; this much of it is kept to read them. */
const KEPT_BYTES = 4096;
/** Some have theirs, or a part of it, at the beginning: Anthropic's streams, llama-server's embeddings. */
const FIRST_BYTES = 1024;
const MOST_CHUNKS = 512;

/** The beginning and the end of what went by, without copying it as it goes. */
export class Tail {
  #first: Buffer | null = null;
  #chunks: Buffer[] = [];
  #bytes = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    // Now and then, not with each chunk.
    if (this.#chunks.length >= MOST_CHUNKS || this.#bytes > 16 * KEPT_BYTES) this.#trim();
  }

  #trim(): void {
    const all = Buffer.concat(this.#chunks);
    this.#first ??= Buffer.from(all.subarray(0, FIRST_BYTES));
    const kept = Buffer.from(all.subarray(-KEPT_BYTES));
    this.#chunks = [kept];
    this.#bytes = kept.length;
  }

  /** Whole where it is short; else its beginning, a line's end, and its end. */
  text(): string {
    const [only] = this.#chunks;
    const all = only !== undefined && this.#chunks.length === 1 ? only : Buffer.concat(this.#chunks);
    if (this.#first === null && all.length <= FIRST_BYTES + KEPT_BYTES) return all.toString('utf8');
    const first = this.#first ?? all.subarray(0, FIRST_BYTES);
    return `${first.toString('utf8')}\n${all.subarray(-KEPT_BYTES).toString('utf8')}`;
  }
}

export interface Usage {
  /** Of the whole prompt, whether it was read anew or known from before. */
  readonly promptTokens: number | null;
  readonly generatedTokens: number | null;
  /** How long the server says that it generated, in ms; null: it does not say. */
  readonly generatedMs: number | null;
}

/**
 * What an answer says of its tokens: `usage` as OpenAI has it (`completion_tokens`), as its Responses API
 * and Anthropic have it (`output_tokens`), llama-server's `timings` (`predicted_n`), or Ollama's own
 * (`eval_count`). Of a stream's several, the last. null: it says none.
 */
export function usageOf(tail: string): Usage {
  return {
    promptTokens: lastFigure(tail, '"prompt_tokens"') ?? inputTokens(tail) ?? readTokens(tail),
    generatedTokens:
      lastFigure(tail, '"completion_tokens"') ??
      lastFigure(tail, '"output_tokens"') ??
      lastFigure(tail, '"predicted_n"') ??
      lastFigure(tail, '"eval_count"'),
    generatedMs: lastFigure(tail, '"predicted_ms"') ?? millions(lastFigure(tail, '"eval_duration"')),
  };
}

/** Anthropic counts what its cache held beside it (its API reference, Usage); the Responses API within it. */
function inputTokens(tail: string): number | null {
  const input = lastFigure(tail, '"input_tokens"');
  if (input === null) return null;
  const cached = ['"cache_read_input_tokens"', '"cache_creation_input_tokens"'];
  return cached.reduce((sum, name) => sum + (lastFigure(tail, name) ?? 0), input);
}

/** llama-server's `prompt_n` is what it had to read, `cache_n` what it still knew (tools/server/README). */
function readTokens(tail: string): number | null {
  const read = lastFigure(tail, '"prompt_n"');
  return read === null
    ? lastFigure(tail, '"prompt_eval_count"')
    : read + (lastFigure(tail, '"cache_n"') ?? 0);
}

/** Ollama's durations are in ns (its docs/api.md). */
function millions(ns: number | null): number | null {
  return ns === null ? null : ns / 1e6;
}

const FIGURE = /\s*:\s*(\d+(?:\.\d+)?)/y;

/** Of all places that carry this name with a number behind it, the last. */
function lastFigure(text: string, name: string): number | null {
  for (let at = text.lastIndexOf(name); at >= 0; at = at === 0 ? -1 : text.lastIndexOf(name, at - 1)) {
    FIGURE.lastIndex = at + name.length;
    const value = Number(FIGURE.exec(text)?.[1] ?? Number.NaN);
    if (Number.isFinite(value) && value <= Number.MAX_SAFE_INTEGER) return value;
  }
  return null;
}
