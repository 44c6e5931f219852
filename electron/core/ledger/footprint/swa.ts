import { archNumber, type GgufHeader, isList, perLayer } from './gguf-header.ts';
import { ownEntry } from './own-entry.ts';
import { roundUp } from './round-up.ts';

/** Sliding-window attention: which layers need only the last `tokens` of a sequence. */
export interface WindowFacts {
  readonly tokens: number;
  /** One for each layer, next-token layers too. */
  readonly layers: readonly boolean[];
}

interface WindowRule {
  /** One layer in so many attends to everything: the last of each group, or the first. 0: none does. null: only the file can say. */
  readonly period: number | null;
  readonly fullFirst?: true;
  /** Where the file gives no window. */
  readonly tokens?: number;
  /** The file's window is not used; without one in the file there is none, save where `tokens` says. */
  readonly fixedTokens?: number;
  /** The file's pattern is not read. */
  readonly fixedPattern?: true;
  /** Only a model of so many layers has a window. */
  readonly layers?: number;
}

/**
 * The architectures that llama.cpp runs with a window, and what it sets in its code (`load_swa_pattern`,
 * `n_swa`; src/models/*.cpp) where a file has no `sliding_window_pattern`. Checked one by one against
 * build 11669. Every other architecture runs without a window however its file reads: Phi 3, Qwen 2 and
 * Mistral have the key, and a full cache.
 */
const RULES: Readonly<Record<string, WindowRule>> = {
  gemma2: { period: 2, tokens: 4096 },
  gemma3: { period: 6 },
  gemma3n: { period: 5 },
  gemma4: { period: 6 },
  'gemma4-assistant': { period: 6 },
  'gemma-embedding': { period: 6 },
  llama4: { period: 4, tokens: 8192, fixedTokens: 8192 },
  cohere2: { period: 4 },
  cohere2moe: { period: 4, fullFirst: true },
  'gpt-oss': { period: 2 },
  olmo2: { period: 4 },
  exaone4: { period: 4, tokens: 4096, layers: 64 },
  'exaone-moe': { period: 4, tokens: 128 },
  smallthinker: { period: 4, fullFirst: true, fixedTokens: 4096 },
  afmoe: { period: 4 },
  laguna: { period: 4, fullFirst: true },
  mellum: { period: 4 },
  'muse-glimmer': { period: 4 },
  plamo3: { period: 8 },
  // Every layer that attends at all.
  lfm2: { period: 0, fixedPattern: true },
  deepseek4: { period: 0, fixedPattern: true },
  // Their files have a list.
  granite_swa: { period: null },
  mimo2: { period: null },
  step35: { period: null },
  spark2_5: { period: null },
  maple: { period: null },
  'maion-coder': { period: null },
  dots3note: { period: null },
};

const PATTERN_KEY = 'attention.sliding_window_pattern';

/** Of these it is known that the window they name is not used (Phi 3 logs a warning about it). */
const NO_WINDOW =
  /^(?:phi3|phimoe|qwen2|qwen2moe|qwen2vl|llama|mistral3|mistral4|starcoder2|lfm2moe|dream|llada)$/;

/** null: every layer attends to the whole context. */
export function windowOf(
  header: GgufHeader,
  main: number,
  count: number,
  notes: string[],
): WindowFacts | null {
  const { architecture } = header;
  const rule = ownEntry(RULES, architecture) ?? null;
  const said = archNumber(header, 'attention.sliding_window');
  if (said === 0 || NO_WINDOW.test(architecture)) return null;
  if (rule === null) {
    if (said !== null)
      notes.push(
        `A sliding window of ${said} tokens is named, but no server is known to use it in this architecture: a full cache is counted.`,
      );
    return null;
  }
  if (rule.layers !== undefined && rule.layers !== main) return null;
  const tokens = said === null ? (rule.tokens ?? null) : (rule.fixedTokens ?? said);
  if (tokens === null) return null;
  const pattern = rule.fixedPattern ? null : patternOf(header, count);
  if (pattern !== null) return { tokens, layers: pattern };
  const period = (rule.fixedPattern ? null : archNumber(header, PATTERN_KEY)) ?? rule.period;
  if (period === null) {
    notes.push(
      `A sliding window of ${tokens} tokens is named, but not for which layers: a full cache is counted.`,
    );
    return null;
  }
  const layers = Array.from({ length: count }, (_, index) => {
    if (index >= main) return false;
    if (rule.fullFirst) return period === 0 || index % period !== 0;
    return period === 0 || index % period < period - 1;
  });
  return { tokens, layers };
}

/** A list in the file, one for each layer; what a shorter one leaves out attends to everything. */
function patternOf(header: GgufHeader, count: number): readonly boolean[] | null {
  if (!isList(header, PATTERN_KEY)) return null;
  const length = header.listLengths[`${header.architecture}.${PATTERN_KEY}`] ?? 0;
  const list = perLayer(header, PATTERN_KEY, Math.min(length, count));
  if (list === null || list.length === 0) return null;
  return Array.from({ length: count }, (_, index) => (list[index] ?? 0) !== 0);
}

/**
 * Cells of the window's cache, per stream (llama.cpp, `llama_kv_cache_iswa`): the windows of all
 * sequences that share the stream, and the batch that is being evaluated.
 */
export function windowCells(
  tokens: number,
  cells: number,
  sequencesPerStream: number,
  ubatch: number,
): number {
  return roundUp(Math.min(cells, tokens * sequencesPerStream + ubatch), 256);
}
