import type { LayerFacts, ModelFacts } from './architecture.ts';
import { compressedRows, compressorElements } from './compressed.ts';
import { type LoadFlags, slotsOf } from './flags.ts';
import { type GgmlType, ggmlTypeNamed, packedBytes } from './ggml-types.ts';
import { roundUp } from './round-up.ts';
import { windowCells } from './swa.ts';

/** How many tokens the caches hold. */
export interface CacheShape {
  /** Of all slots together, as the engine rounds it. */
  readonly contextTokens: number;
  /** A cache's cells, per stream. */
  readonly cells: number;
  /** Of windowed layers. */
  readonly windowCells: number;
  readonly streams: number;
  readonly sequences: number;
}

/** llama.cpp pads every context to this. */
const CELL_STEP = 256;
/** Where neither the flags nor the file say one. */
const FALLBACK_CONTEXT = 4096;
/** llama.cpp keeps no values beside a latent row since this build (pull request 19057). */
export const NO_LATENT_VALUES_BUILD = 7830;

/**
 * Context rounds up to 256, and each stream's part of it again (llama.cpp, `llama_context`); without `-c`
 * it is what the model was trained for.
 */
export function cacheShape(facts: ModelFacts, flags: LoadFlags): CacheShape {
  const { sequences, streams } = slotsOf(flags);
  const asked = Math.max(1, flags.contextTokens ?? facts.trainedContext ?? FALLBACK_CONTEXT);
  const cells = roundUp(Math.max(1, Math.floor(roundUp(asked, CELL_STEP) / streams)), CELL_STEP);
  const shape = { contextTokens: cells * streams, cells, windowCells: cells, streams, sequences };
  return { ...shape, windowCells: windowCellsOf(facts, flags, shape, sequences / streams) };
}

/** Of one stream that so many sequences share. */
function windowCellsOf(
  facts: ModelFacts,
  flags: LoadFlags,
  shape: Pick<CacheShape, 'cells' | 'contextTokens'>,
  sequences: number,
): number {
  if (facts.window === null || flags.fullWindowCache) return shape.cells;
  return windowCells(facts.window.tokens, shape.cells, sequences, ubatchOf(flags, shape.contextTokens));
}

/** A physical batch is no longer than a logical one, nor than the context. */
export function ubatchOf(flags: Pick<LoadFlags, 'batch' | 'ubatch'>, contextTokens: number): number {
  return Math.max(1, Math.min(flags.ubatch, flags.batch, contextTokens));
}

/**
 * Next-token layers have a context of their own, of the full length, with nothing but them in it, and only
 * where they draft: so on this build for every architecture that has them. llama.cpp 0.4.0 gave them a cache
 * with the others', used or not, and drafting made a second context of all layers.
 */
export const SEEN_BUILD = 11_669;
/** These were apart before. */
const APART =
  /^(?:qwen3next|qwen35|qwen35moe|nemotron_h_moe|step35|hy_v3|glm-dsa|mimo2|deepseek32|dots3note)$/;
/** These hold them with the others to this day. */
const WITH_OTHERS = /^(?:bailingmoe3|kimi-linear|kimi-k3)$/;

/** A server before the one that all this was seen on; where its build is not known it counts as new. */
function isFormer(flags: LoadFlags): boolean {
  return flags.build !== null && flags.build < SEEN_BUILD;
}

/** How many caches each layer has: those of the main stack, and those for further tokens. */
function cachesOf(facts: ModelFacts, flags: LoadFlags): { readonly main: number; readonly next: number } {
  const { architecture } = facts;
  const isOlder = flags.build !== null && flags.build < SEEN_BUILD && !APART.test(architecture);
  const drafting = facts.nextTokenLayers > 0 && flags.nextTokenDraft > 0 ? 1 : 0;
  const withOthers = isOlder || WITH_OTHERS.test(architecture) ? 1 : 0;
  return { main: isOlder ? 1 + drafting : 1, next: drafting + withOthers };
}

/** Bytes of keys and values of each layer, 0 where it keeps none: cells × (row of keys + row of values). */
export function layerCacheBytes(
  facts: ModelFacts,
  flags: LoadFlags,
  shape: CacheShape,
  notes: string[],
): readonly number[] {
  const typeK = cacheType(flags.cacheTypeK, 'K', notes);
  const typeV = cacheType(flags.cacheTypeV, 'V', notes);
  const main = facts.layers.length - facts.nextTokenLayers;
  // Without flash attention values are kept transposed, all as wide as the widest.
  const widest = Math.max(0, ...facts.layers.map((layer) => layer.valueElements));
  const latent = facts.latent !== null && (facts.latent.inFile || flags.latentCache) ? facts.latent : null;
  const latentValues = flags.build !== null && flags.build < NO_LATENT_VALUES_BUILD && !flags.latentCache;
  const caches = cachesOf(facts, flags);
  const oneContext = (layer: LayerFacts, index: number): number => {
    if (!layer.ownsCache || layer.keyElements === 0) return 0;
    if (facts.compressed !== null) {
      const { keyElements, indexerElements } = facts.compressed;
      const rows = compressedRows(facts.compressed, index, shape.cells);
      const window = windowCellsOf(facts, flags, shape, 1);
      return (
        shape.sequences *
        ((window + rows.keys) * packedBytes(typeK, keyElements) +
          rows.indexer * packedBytes(typeK, indexerElements))
      );
    }
    const cells = (layer.windowed ? shape.windowCells : shape.cells) * shape.streams;
    const indexer =
      layer.indexer === null
        ? 0
        : packedBytes(typeK, layer.indexer.key) +
          packedBytes(typeV, layer.indexer.value + (isFormer(flags) ? layer.indexer.formerValue : 0));
    if (latent !== null) {
      const row = latent.byKeys ? layer.keyElements : latent.rowElements;
      const values = latentValues ? packedBytes(typeV, latent.rankElements) : 0;
      return cells * (packedBytes(typeK, row) + values + indexer);
    }
    const values = flags.flashAttention === 'off' ? widest : layer.valueElements;
    return cells * (packedBytes(typeK, layer.keyElements) + packedBytes(typeV, values) + indexer);
  };
  return facts.layers.map(
    (layer, index) => (index < main ? caches.main : caches.next) * oneContext(layer, index),
  );
}

/**
 * Bytes of each layer's state, 0 where it has none: f32, for every sequence; with drafts ahead one more
 * for each token drafted, to go back to, in the architectures that can.
 */
export function layerStateBytes(facts: ModelFacts, flags: LoadFlags): readonly number[] {
  const { recurrent, compressed } = facts;
  const { sequences } = slotsOf(flags);
  const drafted = facts.rollsBack ? Math.max(flags.nextTokenDraft, flags.rollbackTokens) : 0;
  const kept = sequences * (1 + drafted);
  if (compressed !== null)
    return facts.layers.map((_, index) => kept * compressorElements(compressed, index) * 4);
  if (recurrent === null) return facts.layers.map(() => 0);
  const bytes = kept * (recurrent.convolutionElements + recurrent.stateElements) * 4;
  return facts.layers.map((layer: LayerFacts) => (layer.recurrent ? bytes : 0));
}

function cacheType(name: string, which: string, notes: string[]): GgmlType {
  const type = ggmlTypeNamed(name);
  if (type !== null) return type;
  notes.push(`The cache type ${name} for ${which} is not known: f16 is counted.`);
  return { id: 1, name: 'f16', elements: 1, bytes: 2 };
}
