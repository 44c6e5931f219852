/** Token counts stand at the end of an answer; this much of it is kept to read them. */
const KEPT_BYTES = 4096;
const MOST_CHUNKS = 512;

/** The end of what went by, without copying it as it goes. */
export class Tail {
  #chunks: Buffer[] = [];
  #bytes = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    // Now and then, not with each chunk.
    if (this.#chunks.length >= MOST_CHUNKS || this.#bytes > 16 * KEPT_BYTES) this.#trim();
  }

  #trim(): void {
    const kept = Buffer.from(Buffer.concat(this.#chunks).subarray(-KEPT_BYTES));
    this.#chunks = [kept];
    this.#bytes = kept.length;
  }

  text(): string {
    return Buffer.concat(this.#chunks).subarray(-KEPT_BYTES).toString('utf8');
  }
}

export interface Usage {
  readonly promptTokens: number | null;
  readonly generatedTokens: number | null;
}

/**
 * Tokens of an answer by what stands at its end: `usage` as OpenAI (`completion_tokens`), as its
 * Responses API and Anthropic have it (`output_tokens`), or llama-server's `timings` (`predicted_n`).
 * The last figure counts. null: it says none.
 */
export function usageOf(tail: string): Usage {
  return {
    promptTokens: lastFigure(tail, ['"prompt_tokens"', '"input_tokens"', '"prompt_n"']),
    generatedTokens: lastFigure(tail, ['"completion_tokens"', '"output_tokens"', '"predicted_n"']),
  };
}

const FIGURE = /\s*:\s*(\d+)/y;

/** Of all places that carry one of these names with a number behind it, the last. */
function lastFigure(text: string, names: readonly string[]): number | null {
  let lastAt = -1;
  let last: number | null = null;
  for (const name of names) {
    for (let at = text.lastIndexOf(name); at > lastAt; at = at === 0 ? -1 : text.lastIndexOf(name, at - 1)) {
      FIGURE.lastIndex = at + name.length;
      const value = Number(FIGURE.exec(text)?.[1] ?? Number.NaN);
      if (!Number.isSafeInteger(value)) continue;
      lastAt = at;
      last = value;
      break;
    }
  }
  return last;
}
