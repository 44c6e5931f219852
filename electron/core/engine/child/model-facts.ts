import { createHash } from 'node:crypto';
import type { LlamaModel } from 'node-llama-cpp';

/** enum llama_pooling_type: 0 is none; models that talk have no such key. */
const MOST_POOLING = 4;

/**
 * Whether it goes on with a text. Models of embeddings read a whole text at once (`attention.causal` is
 * false) or say how they make one vector of it (`pooling_type`); the library knows T5's encoder alone.
 */
export function generates({ fileInfo, fileInsights }: LlamaModel): boolean {
  const facts: unknown = fileInfo.architectureMetadata;
  const pooling = field(facts, 'pooling_type');
  const pools = typeof pooling === 'number' && pooling > 0 && pooling <= MOST_POOLING;
  return fileInsights.hasDecoder && field(field(facts, 'attention'), 'causal') !== false && !pools;
}

/** Of its tokens in their order, and how texts are cut into them. */
export function vocabularyOf(model: LlamaModel): string {
  const ggml = tokenizerOf(model);
  const hash = createHash('sha256').update(`${field(ggml, 'model')} ${field(ggml, 'pre')}\n`);
  for (const word of wordsOf(model)) hash.update(`${word}\0`);
  return hash.digest('hex');
}

/** How many tokens it has. */
export function vocabularySize(model: LlamaModel): number {
  return wordsOf(model).length;
}

function wordsOf(model: LlamaModel): readonly unknown[] {
  const words = field(tokenizerOf(model), 'tokens');
  return Array.isArray(words) ? words : [];
}

function tokenizerOf({ fileInfo }: LlamaModel): unknown {
  return field(fileInfo.metadata.tokenizer, 'ggml');
}

function field(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined;
}
