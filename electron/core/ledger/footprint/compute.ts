import type { LayerFacts, ModelFacts } from './architecture.ts';
import { type LoadFlags, slotsOf } from './flags.ts';
import { type CacheShape, ubatchOf } from './kv-cache.ts';

/**
 * llama-server reserves outputs for its slots alone since this build; before, for every token of a batch
 * (llama.cpp, pull request 23861).
 */
export const FEW_OUTPUTS_BUILD = 9450;

/**
 * The compute buffers of all devices. ggml's allocator packs a graph's tensors into the least room it
 * finds; what it comes to depends on the widest stretch of the graph, and these weights were read off a
 * real llama-server's log over many shapes (test/integration/footprint.test.ts):
 *
 *   feed-forward   masks + 3 × feed-forward width + 5 × embedding
 *   experts        masks + the same of all at work, or their results side by side
 *   attention      masks + queries, keys and residuals; the whole score matrix without flash attention
 *   state          masks + 4 × what the convolution mixes + the inner width, or (delta nets) 2 × what it mixes,
 *                  and 5 × embedding, and the states of all sequences twice
 *   selection      attention + what an indexer computes of each cell, and the tokens it has chosen
 *   layers' own    3 × each layer's own embedding + 5 × embedding
 *   output         vocabulary × outputs, and what is still held there: on one device alone
 */
export function computeBytes(facts: ModelFacts, flags: LoadFlags, shape: CacheShape): number {
  const stretches = layerStretches(facts, flags, shape);
  const last = Math.max(stretches, outputBytes(facts, flags, shape));
  return flags.devices === 0 ? 0 : stretches * (flags.devices - 1) + last;
}

function layerStretches(facts: ModelFacts, flags: LoadFlags, shape: CacheShape): number {
  const tokens = ubatchOf(flags, shape.contextTokens);
  const batch = (elements: number): number => 4 * elements * tokens;
  const flash = flags.flashAttention !== 'off';
  const cells = facts.encoder ? tokens : shape.cells;
  const masks = maskCells(facts, shape, tokens) * tokens * (flash ? 2 : 4);
  const { embedding } = facts;
  const query = widest(facts, (layer) => layer.heads * headLength(layer));
  const key = widest(facts, (layer) => layer.keyElements);
  const scores = flash ? 0 : widest(facts, (layer) => layer.heads) * cells;
  const gates = facts.gated ? 3 : 2;
  const active = facts.expertsUsed * facts.expertFeedForward;
  const attention = flash
    ? 2 * query + 3 * embedding + 4 * key
    : 3 * query + 3 * embedding + 2 * key + scores;
  const latent = latentElements(facts, flags) + (flash ? 0 : scores);
  const stretches = [
    gates * widest(facts, (layer) => layer.feedForward) + 5 * embedding,
    3 * active + 5 * embedding,
    2 * facts.expertsUsed * embedding + 2 * active,
    attention,
    latent,
    Math.max(attention, latent) + selectionElements(facts, cells),
    3 * facts.layers.length * facts.layerEmbedding + 5 * embedding,
  ];
  return (
    masks +
    Math.max(batch(Math.max(...stretches)), batch(stateElements(facts)) + stateCopies(facts, flags)) +
    expandedBytes(facts, flags, cells) +
    turnedBytes(facts, flags, cells)
  );
}

/** The largest over all layers. */
export function widest(facts: ModelFacts, of: (layer: LayerFacts) => number): number {
  return facts.layers.reduce((most, layer) => Math.max(most, of(layer)), 0);
}

function headLength(layer: LayerFacts): number {
  return layer.kvHeads === 0 ? 0 : layer.keyElements / layer.kvHeads;
}

/** Every head's query in the latent width, its result there, and both in the head's own width. */
function latentElements(facts: ModelFacts, flags: LoadFlags): number {
  const { latent } = facts;
  if (latent === null || !(latent.inFile || flags.latentCache)) return 0;
  const heads = widest(facts, (layer) => layer.heads);
  return heads * (latent.rowElements + latent.rankElements + latent.rankElements / 2) + 5 * facts.embedding;
}

/** ik_llama.cpp computes a layer's full keys and values from the latent rows, in f16. */
function expandedBytes(facts: ModelFacts, flags: LoadFlags, cells: number): number {
  if (facts.latent === null || !flags.latentCache) return 0;
  return 2 * cells * widest(facts, (layer) => layer.keyElements + layer.valueElements);
}

/** Without flash attention the values of all cells, which are part of the latent rows, are copied and turned. */
function turnedBytes(facts: ModelFacts, flags: LoadFlags, cells: number): number {
  const { latent } = facts;
  if (latent === null || !latent.inFile || flags.latentCache || flags.flashAttention !== 'off') return 0;
  return 2 * cells * latent.rankElements;
}

function selectionElements({ selection }: ModelFacts, cells: number): number {
  if (selection === null) return 0;
  return selection.perCell * cells + selection.layers * Math.min(selection.tokens, cells);
}

function stateElements(facts: ModelFacts): number {
  const { recurrent } = facts;
  if (recurrent === null || recurrent.innerElements === 0) return 0;
  const { innerElements, mixedElements } = recurrent;
  const inner = recurrent.deltaNet ? 2 * mixedElements : 4 * mixedElements + innerElements;
  return inner + 5 * facts.embedding;
}

/** A layer's states are gathered from all sequences, and stand beside the changed ones. */
function stateCopies(facts: ModelFacts, flags: LoadFlags): number {
  const { recurrent } = facts;
  if (recurrent === null) return 0;
  return 2 * slotsOf(flags).sequences * (recurrent.convolutionElements + recurrent.stateElements) * 4;
}

/** A mask for the full cache, another for the window's. */
function maskCells(facts: ModelFacts, shape: CacheShape, tokens: number): number {
  if (facts.encoder) return tokens;
  const attends = facts.layers.some((layer) => layer.keyElements > 0 && !layer.windowed);
  const windowed = facts.layers.some((layer) => layer.keyElements > 0 && layer.windowed);
  return (attends ? shape.cells : 0) + (windowed ? shape.windowCells : 0);
}

/**
 * What is still held beside the outputs: logs show the residual alone on most (Qwen, Gemma, gpt-oss on CUDA), and
 * up to two feed-forward widths on some (Llama 3.1 8B on Vulkan, GLM 4). What lies between is within a tenth, or
 * 32 MiB, of all of them.
 */
const HELD_FORWARD = { share: 5 / 8, most: 16_000 };

/** On one device alone: the one with the output layer. */
function outputBytes(facts: ModelFacts, flags: LoadFlags, shape: CacheShape): number {
  const tokens = ubatchOf(flags, shape.contextTokens);
  const forward = widest(facts, (layer) => layer.feedForward) * HELD_FORWARD.share;
  const held = 4 * tokens * (Math.min(forward, HELD_FORWARD.most) + facts.embedding);
  return 4 * facts.vocabulary * outputTokens(facts, flags, tokens) + held;
}

/** Tokens whose next one may be asked for in one batch; an encoder has no such output. */
function outputTokens(facts: ModelFacts, flags: LoadFlags, tokens: number): number {
  if (facts.encoder) return 0;
  if (flags.build === null || flags.build < FEW_OUTPUTS_BUILD) return tokens;
  return Math.min(tokens, slotsOf(flags).sequences * (1 + flags.nextTokenDraft));
}
