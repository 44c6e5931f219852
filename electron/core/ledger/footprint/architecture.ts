import { type CompressedFacts, compressedOf } from './compressed.ts';
import { archNumber, type GgufHeader, perLayer } from './gguf-header.ts';
import { type IndexerRow, indexerRows, type SelectionFacts, selectionOf } from './indexer.ts';
import { type LatentFacts, latentOf } from './mla.ts';
import { ownEntry } from './own-entry.ts';
import { type RecurrentFacts, recurrentOf, rollsBack } from './recurrent.ts';
import { type WindowFacts, windowOf } from './swa.ts';

/** What one block of the model keeps per token, as elements of one cache row. */
export interface LayerFacts {
  readonly heads: number;
  /** 0: this layer keeps no keys and values. */
  readonly kvHeads: number;
  readonly keyElements: number;
  readonly valueElements: number;
  readonly feedForward: number;
  /** Attends to a sliding window only. */
  readonly windowed: boolean;
  /** Keeps a state of fixed size per sequence; may keep keys and values beside it. */
  readonly recurrent: boolean;
  /** False: it uses another layer's keys and values, or has none. */
  readonly ownsCache: boolean;
  readonly indexer: IndexerRow | null;
}

/** What a footprint depends on, read from a header. Sizes are in elements, not bytes. */
export interface ModelFacts {
  readonly architecture: string;
  /** The main stack and, after it, layers that predict further tokens. */
  readonly layers: readonly LayerFacts[];
  /** Of `layers`, those at the end that are used by speculative decoding alone. */
  readonly nextTokenLayers: number;
  readonly embedding: number;
  readonly vocabulary: number;
  /** What it was trained for; llama-server's context where none is asked for. null: not said. */
  readonly trainedContext: number | null;
  readonly experts: number;
  readonly expertsUsed: number;
  readonly expertFeedForward: number;
  /** Embeddings that each layer has of its own, beside the one of the input; 0: none. */
  readonly layerEmbedding: number;
  /** A gate beside the feed-forward's way up, in a tensor of its own or in the same. */
  readonly gated: boolean;
  readonly window: WindowFacts | null;
  readonly latent: LatentFacts | null;
  readonly recurrent: RecurrentFacts | null;
  /** Keeps a state more for each token drafted ahead. */
  readonly rollsBack: boolean;
  readonly compressed: CompressedFacts | null;
  readonly selection: SelectionFacts | null;
  /** llama.cpp turns flash attention off for it, whatever is asked for. */
  readonly withoutFlash: boolean;
  /** Reads a whole text at once and keeps no cache (embedding models). */
  readonly encoder: boolean;
  readonly notes: readonly string[];
}

/** llama.cpp makes no memory for these (`create_memory`); they read a text at once. */
const ENCODERS =
  /^(?:bert|modern-bert|neo-bert|eurobert|jina-bert-v[23]|nomic-bert(?:-moe)?|gemma-embedding2?|wavtokenizer-dec|dream|llada(?:-moe)?|rnd1|clip)$/;

/**
 * Layers before this one own their cache where the file has no key for it (llama.cpp, models/gemma3n.cpp).
 */
const OWN_CACHE_LAYERS: Readonly<Record<string, number>> = { gemma3n: 20 };

/** Where the file does not say it (llama.cpp, models/gemma3n.cpp). */
const LAYER_EMBEDDING: Readonly<Record<string, number>> = { gemma3n: 256 };

export function factsOf(header: GgufHeader): ModelFacts {
  const { architecture } = header;
  const notes: string[] = [];
  const blocks = archNumber(header, 'block_count') ?? countBlocks(header);
  // Blocks that a text passes several times keep keys and values for each passage (models/nanbeige.cpp).
  const count = blocks * Math.max(1, archNumber(header, 'num_loops') ?? 1);
  const nextTokenLayers = Math.min(archNumber(header, 'nextn_predict_layers') ?? 0, Math.max(0, count - 1));
  const main = count - nextTokenLayers;
  const embedding = archNumber(header, 'embedding_length') ?? shapeOf(header, 'token_embd.weight')[0] ?? 0;
  const heads = perLayer(header, 'attention.head_count', count) ?? zeros(count);
  const kvHeads = perLayer(header, 'attention.head_count_kv', count) ?? heads;
  const feedForward = perLayer(header, 'feed_forward_length', count) ?? zeros(count);
  const window = windowOf(header, main, count, notes);
  const recurrent = recurrentOf(header, { main, count, embedding, heads, kvHeads, feedForward }, notes);
  const owners = cacheOwners(header, main);
  const lengths = headLengths(header, embedding, heads);
  const encoder = ENCODERS.test(architecture);
  const attends = (index: number): boolean =>
    (kvHeads[index] ?? 0) > 0 && (recurrent === null || recurrent.attends[index] !== false);
  const indexers = indexerRows(header, count, {
    main,
    attends,
    windowed: (index) => window?.layers[index] ?? false,
    valueLength: lengths.plain.value,
  });
  const layers = Array.from({ length: count }, (_, index): LayerFacts => {
    const windowed = window?.layers[index] ?? false;
    const length = windowed ? lengths.windowed : lengths.plain;
    const own = kvHeads[index] ?? 0;
    return {
      heads: heads[index] ?? 0,
      kvHeads: own,
      keyElements: attends(index) ? own * length.key : 0,
      valueElements: attends(index) ? own * length.value : 0,
      feedForward: feedForward[index] ?? 0,
      windowed,
      recurrent: recurrent?.layers[index] ?? false,
      ownsCache: !encoder && (index >= main || index < owners),
      indexer: indexers[index] ?? null,
    };
  });
  return {
    architecture,
    layers,
    nextTokenLayers,
    embedding,
    vocabulary: vocabularyOf(header),
    trainedContext: archNumber(header, 'context_length'),
    experts: archNumber(header, 'expert_count') ?? 0,
    expertsUsed: most(header, 'expert_used_count', count),
    // Mixtral and others of its time: as wide as the feed-forward width that the file names.
    expertFeedForward:
      most(header, 'expert_feed_forward_length', count) || most(header, 'feed_forward_length', count),
    layerEmbedding:
      archNumber(header, 'embedding_length_per_layer_input') ?? ownEntry(LAYER_EMBEDDING, architecture) ?? 0,
    gated: isGated(header, Math.max(0, ...feedForward)),
    window,
    latent: latentOf(header),
    recurrent,
    rollsBack: rollsBack(architecture),
    compressed: compressedOf(header, count, lengths.plain.key),
    selection: selectionOf(header, indexers),
    withoutFlash: architecture === 'grok',
    encoder,
    notes,
  };
}

/** `key_length` and `value_length` where they are; else the embedding over the heads. Windowed layers may have their own. */
function headLengths(header: GgufHeader, embedding: number, heads: readonly number[]) {
  const first = Math.max(0, heads.find((one) => one > 0) ?? 0);
  const even = first === 0 ? 0 : Math.floor(embedding / first);
  const key = archNumber(header, 'attention.key_length') ?? even;
  const value = archNumber(header, 'attention.value_length') ?? even;
  return {
    plain: { key, value },
    windowed: {
      key: archNumber(header, 'attention.key_length_swa') ?? key,
      value: archNumber(header, 'attention.value_length_swa') ?? value,
    },
  };
}

/** The largest over all layers, of a number or a list. */
function most(header: GgufHeader, key: string, count: number): number {
  return Math.max(0, ...(perLayer(header, key, count) ?? []));
}

/** How many layers, from the first, have a cache of their own. */
function cacheOwners(header: GgufHeader, main: number): number {
  const shared = archNumber(header, 'attention.shared_kv_layers');
  if (shared !== null) return Math.max(0, main - shared);
  return Math.min(main, ownEntry(OWN_CACHE_LAYERS, header.architecture) ?? main);
}

/** The tokens of the file, else the rows of its embedding, else what it says. */
function vocabularyOf(header: GgufHeader): number {
  return (
    header.listLengths['tokenizer.ggml.tokens'] ??
    shapeOf(header, 'token_embd.weight')[1] ??
    archNumber(header, 'vocab_size') ??
    0
  );
}

function isGated(header: GgufHeader, feedForward: number): boolean {
  const up = header.tensors.find((tensor) => /^blk\.\d+\.ffn_up\.weight$/.test(tensor.name));
  if (up === undefined || header.tensors.some((tensor) => /\.ffn_gate\.weight$/.test(tensor.name)))
    return true;
  return (up.shape[1] ?? 0) > feedForward;
}

function shapeOf(header: GgufHeader, name: string): readonly number[] {
  return header.tensors.find((tensor) => tensor.name === name)?.shape ?? [];
}

/** A file without `block_count` still numbers its blocks. */
function countBlocks(header: GgufHeader): number {
  return header.tensors.reduce(
    (most, tensor) => Math.max(most, Number(/^blk\.(\d{1,4})\./.exec(tensor.name)?.[1] ?? -1) + 1),
    0,
  );
}

function zeros(length: number): readonly number[] {
  return Array.from({ length }, () => 0);
}
