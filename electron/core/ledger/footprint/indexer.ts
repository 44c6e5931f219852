import { archNumber, type GgufHeader, perLayer } from './gguf-header.ts';
import { ownEntry } from './own-entry.ts';

/** A second cache, of one head, whose keys choose which tokens a layer attends to. Elements of a row. */
export interface IndexerRow {
  readonly key: number;
  /** Kept beside the keys where the cache is no latent one, and used by nobody. */
  readonly value: number;
  /** The same, in llama.cpp 0.4.0 alone. */
  readonly formerValue: number;
}

interface Stack {
  readonly main: number;
  readonly attends: (index: number) => boolean;
  readonly windowed: (index: number) => boolean;
  readonly valueLength: number;
}

/** GLM 5.2's own, where its file does not say: every layer of the first three, then one in four (models/glm-dsa.cpp). */
const GLM_LONG_CONTEXT = 1_048_576;

/**
 * One row for each of `count` layers, null where it has none (llama.cpp, `create_memory`; the caches of
 * llama-kv-cache-dsa.cpp, llama-kv-cache-msa.cpp and llama-memory-hybrid-idx.cpp).
 */
export function indexerRows(header: GgufHeader, count: number, stack: Stack): readonly (IndexerRow | null)[] {
  const key = archNumber(header, 'attention.indexer.key_length') ?? 0;
  const has = key === 0 ? null : ownEntry(RULES, header.architecture)?.(header, count, stack);
  if (has == null) return Array.from({ length: count }, () => null);
  const value = WITH_VALUES.has(header.architecture) ? stack.valueLength : 0;
  const row: IndexerRow = {
    key: key * (ownEntry(KEY_LENGTHS, header.architecture) ?? 1),
    value,
    formerValue: FORMERLY_WITH_VALUES.has(header.architecture) ? stack.valueLength : 0,
  };
  const end = WITH_NEXT_TOKEN.has(header.architecture) ? count : stack.main;
  return Array.from({ length: count }, (_, index) => (index < end && has(index) ? row : null));
}

const WITH_VALUES = new Set(['minimax-m3']);
const FORMERLY_WITH_VALUES = new Set(['qwen4exp']);
/** Their next-token layers have one too. */
const WITH_NEXT_TOKEN = new Set(['qwen4exp']);
/** Rows of several key lengths: GLM 5 Next keeps its pooled keys beside. */
const KEY_LENGTHS: Readonly<Record<string, number>> = { 'glm5-next': 3 };

type Rule = (header: GgufHeader, count: number, stack: Stack) => (index: number) => boolean;

/** DeepSeek V4's indexer is part of its compressed caches. */
const RULES: Readonly<Record<string, Rule>> = {
  deepseek32: () => () => true,
  'glm-dsa': (header, count) => {
    const listed = perLayer(header, 'attention.indexer.types', count);
    if (listed !== null) return (index) => listed[index] !== 0;
    const long = (archNumber(header, 'context_length') ?? 0) >= GLM_LONG_CONTEXT;
    return (index) => !long || index < 2 || index % 4 === 2;
  },
  hy_v4: (header, count) => {
    const listed = perLayer(header, 'attention.indexer.types', count);
    return (index) => listed?.[index] !== 0;
  },
  dots3note: (header, count, { windowed }) => {
    const listed = perLayer(header, 'attention.indexer.types', count);
    return (index) => !windowed(index) && listed?.[index] !== 0;
  },
  'minimax-m3': (header) => {
    const dense = archNumber(header, 'leading_dense_block_count') ?? 0;
    return (index) => index >= dense;
  },
  qwen4exp:
    (_header, _count, { attends }) =>
    (index) =>
      attends(index),
  'glm5-next':
    (_header, _count, { attends }) =>
    (index) =>
      attends(index),
};

/** What choosing tokens takes while it is computed, of each token of a batch; read off llama.cpp 11669. */
export interface SelectionFacts {
  /** Elements for each cell of the cache: scores, and a mask of the chosen. */
  readonly perCell: number;
  /** Chosen tokens are remembered over so many layers, so many of each. */
  readonly layers: number;
  readonly tokens: number;
}

export function selectionOf(header: GgufHeader, rows: readonly (IndexerRow | null)[]): SelectionFacts | null {
  const indexed = rows.filter((row) => row !== null).length;
  if (indexed === 0) return null;
  const heads = archNumber(header, 'attention.indexer.head_count') ?? 0;
  switch (header.architecture) {
    case 'minimax-m3':
      return { perCell: 2 * heads + 1, layers: 0, tokens: 0 };
    case 'deepseek32':
    case 'glm-dsa':
    case 'hy_v4':
    case 'dots3note':
      return {
        perCell: 1.5,
        layers: header.architecture === 'dots3note' ? indexed : rows.length,
        tokens: archNumber(header, 'attention.indexer.top_k') ?? 0,
      };
    default:
      return null;
  }
}
