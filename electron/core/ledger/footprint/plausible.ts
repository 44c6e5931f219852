import type { GgufHeader, MetadataValue } from './gguf-header.ts';

/** llama.cpp allows 512 layers (`LLAMA_MAX_LAYERS`). */
const MOST_LAYERS = 4_096;
/** Sizes are 32 bits in llama.cpp. */
const MOST = 2 ** 32 - 1;

/** What a footprint is computed from, under the architecture's prefix: numbers, or lists of them. */
const SIZES: readonly string[] = [
  'block_count',
  'num_loops',
  'nextn_predict_layers',
  'context_length',
  'embedding_length',
  'embedding_length_per_layer_input',
  'feed_forward_length',
  'expert_count',
  'expert_used_count',
  'expert_feed_forward_length',
  'vocab_size',
  'full_attention_interval',
  'token_shift_count',
  'leading_dense_block_count',
  'rope.dimension_count',
  'wkv.head_size',
  'shortconv.l_cache',
  'kda.head_dim',
  'ssm.conv_kernel',
  'ssm.inner_size',
  'ssm.state_size',
  'ssm.group_count',
  'attention.head_count',
  'attention.head_count_kv',
  'attention.key_length',
  'attention.value_length',
  'attention.key_length_swa',
  'attention.value_length_swa',
  'attention.key_length_mla',
  'attention.value_length_mla',
  'attention.kv_lora_rank',
  'attention.sliding_window',
  'attention.sliding_window_pattern',
  'attention.shared_kv_layers',
  'attention.recurrent_layers',
  'attention.compress_ratios',
  'attention.indexer.key_length',
  'attention.indexer.head_count',
  'attention.indexer.top_k',
  'attention.indexer.types',
];

/** What is wrong with a header's sizes, as the rest of a sentence about the file; null: nothing. Pure. */
export function implausible({ architecture, metadata }: GgufHeader): string | null {
  for (const size of SIZES) {
    const value = metadata[`${architecture}.${size}`];
    if (value !== undefined && !isSize(value))
      return `says that ${size} is ${shown(value)}, which can not be, so it is damaged.`;
  }
  const layers = Number(metadata[`${architecture}.block_count`] ?? 0);
  const all = layers * Math.max(1, Number(metadata[`${architecture}.num_loops`] ?? 1));
  return all > MOST_LAYERS ? `says that it has ${all} layers, which can not be, so it is damaged.` : null;
}

function isSize(value: MetadataValue): boolean {
  return Array.isArray(value) ? value.every(isOneSize) : isOneSize(value);
}

function isOneSize(value: MetadataValue): boolean {
  if (typeof value === 'boolean') return true;
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST;
}

function shown(value: MetadataValue): string {
  const text = Array.isArray(value) ? `[${value.slice(0, 4).join(', ')}, …]` : String(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
