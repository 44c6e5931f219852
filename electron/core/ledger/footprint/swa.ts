import { archNumber, type GgufHeader, isList, perLayer } from './gguf-header.ts';
import { roundUp } from './round-up.ts';

/** Sliding-window attention: which layers need only the last `tokens` of a sequence. */
export interface WindowFacts {
  readonly tokens: number;
  /** One for each layer, next-token layers too. */
  readonly layers: readonly boolean[];
}

interface WindowRule {
  /** One layer in so many attends to everything: the last of each group, or the first. 0: none does. */
  readonly period: number;
  readonly fullFirst?: true;
  /** Where the file gives no window. */
  readonly tokens?: number;
  /** The file's window is not used. */
  readonly fixedTokens?: number;
}

/**
 * What llama.cpp sets in its code (`set_swa_pattern`, `n_swa`; src/models/*.cpp) where a file has no
 * `sliding_window_pattern`. An architecture that is not here runs without a window however its file
 * reads: Phi 3, Qwen 2 and Mistral have the key, and a full cache.
 */
const RULES: Readonly<Record<string, WindowRule>> = {
  gemma2: { period: 2, tokens: 4096 },
  gemma3: { period: 6 },
  gemma3n: { period: 5 },
  gemma4: { period: 6 },
  'gemma-embedding': { period: 6 },
  llama4: { period: 4, fixedTokens: 8192 },
  cohere2: { period: 4 },
  cohere2moe: { period: 4 },
  'gpt-oss': { period: 2 },
  olmo2: { period: 4 },
  exaone4: { period: 4 },
  'exaone-moe': { period: 4 },
  smallthinker: { period: 4, fullFirst: true },
  afmoe: { period: 4 },
  plamo3: { period: 8 },
  deepseek4: { period: 0 },
};

/** Keys that some files have for the pattern's period under a name of their own. */
const PERIOD_KEYS = ['attention.sliding_window_pattern', 'global_attn_every_n_layers'];

/** llama.cpp runs these without a window though their files name one (Phi 3 logs a warning about it). */
const NO_WINDOW = /^(?:phi3|phimoe|qwen2|qwen2moe|qwen2vl|llama|mistral3|mistral4|starcoder2|dream|llada)$/;

/** null: every layer attends to the whole context. */
export function windowOf(
  header: GgufHeader,
  main: number,
  count: number,
  notes: string[],
): WindowFacts | null {
  const { architecture } = header;
  const rule = RULES[architecture] ?? null;
  const said = archNumber(header, 'attention.sliding_window');
  if (said === 0 || NO_WINDOW.test(architecture)) return null;
  const tokens = rule?.fixedTokens ?? said ?? rule?.tokens ?? null;
  if (tokens === null) return null;
  const pattern = patternOf(header, count) ?? null;
  if (pattern !== null) return { tokens, layers: pattern };
  const period =
    PERIOD_KEYS.map((key) => archNumber(header, key)).find((one) => one !== null) ?? rule?.period;
  if (period === undefined) {
    notes.push(
      `A sliding window of ${tokens} tokens is named, but not for which layers: a full cache is counted for all.`,
    );
    return null;
  }
  const layers = Array.from({ length: count }, (_, index) => {
    if (index >= main) return false;
    if (rule?.fullFirst) return period === 0 || index % period !== 0;
    return period === 0 || index % period < period - 1;
  });
  return { tokens, layers };
}

/** A list in the file, one for each layer; a shorter one repeats. */
function patternOf(header: GgufHeader, count: number): readonly boolean[] | null {
  const key = 'attention.sliding_window_pattern';
  if (!isList(header, key)) return null;
  const length = header.listLengths[`${header.architecture}.${key}`] ?? 0;
  const list = perLayer(header, key, Math.min(length, count));
  if (list === null || list.length === 0) return null;
  return Array.from({ length: count }, (_, index) => (list[index % list.length] ?? 0) !== 0);
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
