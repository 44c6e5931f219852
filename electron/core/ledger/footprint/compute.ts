import type { ModelFacts } from './architecture.ts';
import { type LoadFlags, slotsOf } from './flags.ts';
import { type CacheShape, ubatchOf } from './kv-cache.ts';

/**
 * llama-server reserves outputs for its slots alone since this build; before, for every token of a batch
 * (llama.cpp, pull request 23861).
 */
export const FEW_OUTPUTS_BUILD = 9450;

/**
 * The compute buffer of one device, from the shape of the graph. Exact figures come from the allocator's
 * packing; these are its largest stretches:
 *
 *   attention with a score matrix   heads × cells × tokens, its mask, queries and residuals
 *   feed-forward                    masks, four times its width, the residual
 *   output                          vocabulary × outputs, and what is still held there
 */
export function computeBytes(facts: ModelFacts, flags: LoadFlags, shape: CacheShape): number {
  const tokens = ubatchOf(flags, shape.contextTokens);
  const f32 = (elements: number): number => elements * 4;
  const batch = (elements: number): number => f32(elements) * tokens;
  const query = Math.max(0, ...facts.layers.map((layer) => layer.heads * headLength(layer)));
  const dense = Math.max(0, ...facts.layers.map((layer) => layer.feedForward));
  const flash = flags.flashAttention !== 'off';
  const masks = maskCells(facts, shape) * tokens * (flash ? 2 : 4);
  const feedForward = batch(Math.max(4 * dense, expertElements(facts)) + facts.embedding) + masks;
  const outputs = outputTokens(flags, tokens);
  const output = f32(facts.vocabulary) * outputs + batch(dense + facts.embedding);
  const scores = flash
    ? 0
    : Math.max(0, ...facts.layers.map((layer) => layer.heads)) * f32(shape.cells) * tokens +
      masks +
      batch(2 * facts.embedding + 2 * query);
  return Math.max(feedForward, output, scores);
}

function headLength(layer: ModelFacts['layers'][number]): number {
  return layer.kvHeads === 0 ? 0 : layer.keyElements / layer.kvHeads;
}

/** Experts at work: their gates, ups and products, and each one's result before they are added. */
function expertElements(facts: ModelFacts): number {
  if (facts.expertsUsed === 0) return 0;
  return facts.expertsUsed * (3 * facts.expertFeedForward + 2 * facts.embedding);
}

/** A mask for the full cache, another for the window's. */
function maskCells(facts: ModelFacts, shape: CacheShape): number {
  if (facts.encoder) return shape.cells;
  const attends = facts.layers.some((layer) => layer.keyElements > 0 && !layer.windowed);
  const windowed = facts.window !== null && facts.layers.some((layer) => layer.windowed);
  return (attends ? shape.cells : 0) + (windowed ? shape.windowCells : 0);
}

/** Tokens whose next one may be asked for in one batch. */
function outputTokens(flags: LoadFlags, tokens: number): number {
  if (flags.build === null || flags.build < FEW_OUTPUTS_BUILD) return tokens;
  return Math.min(tokens, slotsOf(flags).sequences * (1 + flags.nextTokenDraft));
}
