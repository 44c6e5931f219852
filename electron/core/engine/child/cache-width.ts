import type { LlamaModel } from 'node-llama-cpp';
import type { CacheWidth } from './sizes.ts';

/** What a loaded model's header says of its cache. */
export function cacheWidthOf(model: LlamaModel): CacheWidth {
  const { architectureMetadata } = model.fileInfo;
  const attention: unknown = Reflect.get(architectureMetadata, 'attention');
  return {
    kvHeads: numbers(attention, 'head_count_kv'),
    heads: numbers(attention, 'head_count'),
    keyLength: number(attention, 'key_length'),
    valueLength: number(attention, 'value_length'),
    embeddingLength: number(architectureMetadata, 'embedding_length'),
  };
}

function field(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined;
}

function number(object: unknown, name: string): number | null {
  const value = field(object, name);
  return typeof value === 'number' ? value : null;
}

function numbers(object: unknown, name: string): number | readonly number[] | null {
  const value = field(object, name);
  if (typeof value === 'number') return value;
  return Array.isArray(value) ? value.filter((one): one is number => typeof one === 'number') : null;
}
