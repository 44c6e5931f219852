import type { GgufSpec, GgufTensor, GgufValue } from './gguf-writer.ts';

/** One small model of an architecture that a real llama-server loads. Widths in elements. */
export interface Shape {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headLength: number;
  readonly feedForward: number;
  readonly tokens: number;
  readonly context: number;
}

export const BASE: Shape = {
  layers: 4,
  width: 256,
  heads: 8,
  kvHeads: 2,
  headLength: 32,
  feedForward: 512,
  tokens: 312,
  context: 8192,
};

export type Metadata = Record<string, GgufValue>;

/** Heads wider than their share of the embedding, as in Qwen 3 and Gemma. */
export const WIDE: Shape = { ...BASE, headLength: 64 };

export const EPSILON: Metadata = {
  '.attention.layer_norm_rms_epsilon': { f32: 1e-5 },
  '.attention.layer_norm_epsilon': { f32: 1e-5 },
};

export function baseMetadata(shape: Shape): Metadata {
  return {
    '.context_length': shape.context,
    '.embedding_length': shape.width,
    '.block_count': shape.layers,
    '.feed_forward_length': shape.feedForward,
    '.attention.head_count': shape.heads,
    '.attention.head_count_kv': shape.kvHeads,
    '.attention.key_length': shape.headLength,
    '.attention.value_length': shape.headLength,
    '.rope.dimension_count': shape.headLength,
    ...EPSILON,
  };
}

export const tensor = (name: string, ...shape: number[]): GgufTensor => ({ name, shape });

export function embeddings(shape: Shape, tied: boolean): GgufTensor[] {
  const all = [
    tensor('token_embd.weight', shape.width, shape.tokens),
    tensor('output_norm.weight', shape.width),
  ];
  return tied ? all : [...all, tensor('output.weight', shape.width, shape.tokens)];
}

export function attention(shape: Shape, at: string, extra: readonly string[] = []): GgufTensor[] {
  const query = shape.heads * shape.headLength;
  const key = shape.kvHeads * shape.headLength;
  const norms: Readonly<Record<string, GgufTensor>> = {
    headNorms: tensor(`${at}attn_q_norm.weight`, shape.headLength),
    post: tensor(`${at}post_attention_norm.weight`, shape.width),
  };
  return [
    tensor(`${at}attn_norm.weight`, shape.width),
    tensor(`${at}attn_q.weight`, shape.width, query),
    tensor(`${at}attn_k.weight`, shape.width, key),
    tensor(`${at}attn_v.weight`, shape.width, key),
    tensor(`${at}attn_output.weight`, query, shape.width),
    ...extra.flatMap((name) => norms[name] ?? []),
    ...(extra.includes('headNorms') ? [tensor(`${at}attn_k_norm.weight`, shape.headLength)] : []),
    ...(extra.includes('biases')
      ? [tensor(`${at}attn_q.bias`, query), tensor(`${at}attn_k.bias`, key), tensor(`${at}attn_v.bias`, key)]
      : []),
  ];
}

export function dense(shape: Shape, at: string): GgufTensor[] {
  return [
    tensor(`${at}ffn_norm.weight`, shape.width),
    tensor(`${at}ffn_gate.weight`, shape.width, shape.feedForward),
    tensor(`${at}ffn_up.weight`, shape.width, shape.feedForward),
    tensor(`${at}ffn_down.weight`, shape.feedForward, shape.width),
  ];
}

export function experts(shape: Shape, at: string, count: number, width: number): GgufTensor[] {
  return [
    tensor(`${at}ffn_norm.weight`, shape.width),
    tensor(`${at}ffn_gate_inp.weight`, shape.width, count),
    tensor(`${at}ffn_gate_exps.weight`, shape.width, width, count),
    tensor(`${at}ffn_up_exps.weight`, shape.width, width, count),
    tensor(`${at}ffn_down_exps.weight`, width, shape.width, count),
  ];
}

export const blocks = (count: number, make: (at: string, index: number) => GgufTensor[]): GgufTensor[] =>
  Array.from({ length: count }, (_, index) => make(`blk.${index}.`, index)).flat();

/** Attention and a dense feed-forward in each block. */
function plain(
  architecture: string,
  shape: Shape,
  more: {
    metadata?: Metadata;
    extra?: readonly string[];
    tied?: boolean;
    perBlock?: (at: string) => GgufTensor[];
  } = {},
): GgufSpec {
  return {
    architecture,
    tokens: shape.tokens,
    metadata: { ...baseMetadata(shape), ...more.metadata },
    tensors: [
      ...embeddings(shape, more.tied ?? false),
      ...blocks(shape.layers, (at) => [
        ...attention(shape, at, more.extra),
        ...dense(shape, at),
        ...(more.perBlock?.(at) ?? []),
      ]),
    ],
  };
}

export const llama = (shape = BASE): GgufSpec => plain('llama', shape);
export const qwen2 = (shape = BASE): GgufSpec => plain('qwen2', shape, { extra: ['biases'] });
export const qwen3 = (shape = WIDE): GgufSpec => plain('qwen3', shape, { extra: ['headNorms'], tied: true });

export function qwen3moe(shape = WIDE, count = 8, used = 2, width = 128): GgufSpec {
  return {
    architecture: 'qwen3moe',
    tokens: shape.tokens,
    metadata: {
      ...baseMetadata(shape),
      '.expert_count': count,
      '.expert_used_count': used,
      '.expert_feed_forward_length': width,
    },
    tensors: [
      ...embeddings(shape, false),
      ...blocks(shape.layers, (at) => [
        ...attention(shape, at, ['headNorms']),
        ...experts(shape, at, count, width),
      ]),
    ],
  };
}

const gemmaNorms =
  (shape: Shape) =>
  (at: string): GgufTensor[] => [
    tensor(`${at}post_attention_norm.weight`, shape.width),
    tensor(`${at}post_ffw_norm.weight`, shape.width),
  ];

export const gemma2 = (shape = WIDE, window = 512): GgufSpec =>
  plain('gemma2', shape, {
    tied: true,
    metadata: { '.attention.sliding_window': window },
    perBlock: gemmaNorms(shape),
  });

export const gemma3 = (shape = { ...WIDE, layers: 12 }, window = 512): GgufSpec =>
  plain('gemma3', shape, {
    tied: true,
    extra: ['headNorms'],
    metadata: { '.attention.sliding_window': window },
    perBlock: gemmaNorms(shape),
  });

export const phi3 = (shape = BASE): GgufSpec => ({
  architecture: 'phi3',
  tokens: shape.tokens,
  metadata: {
    ...baseMetadata(shape),
    '.attention.sliding_window': 2047,
    '.rope.scaling.original_context_length': shape.context,
  },
  tensors: [
    ...embeddings(shape, false),
    ...blocks(shape.layers, (at) => [
      tensor(`${at}attn_norm.weight`, shape.width),
      tensor(`${at}attn_qkv.weight`, shape.width, (shape.heads + 2 * shape.kvHeads) * shape.headLength),
      tensor(`${at}attn_output.weight`, shape.heads * shape.headLength, shape.width),
      tensor(`${at}ffn_norm.weight`, shape.width),
      tensor(`${at}ffn_up.weight`, shape.width, 2 * shape.feedForward),
      tensor(`${at}ffn_down.weight`, shape.feedForward, shape.width),
    ]),
  ],
});

export function gptOss(shape = WIDE, count = 4, used = 2, width = 128): GgufSpec {
  return {
    architecture: 'gpt-oss',
    tokens: shape.tokens,
    metadata: {
      ...baseMetadata(shape),
      '.attention.sliding_window': 128,
      '.expert_count': count,
      '.expert_used_count': used,
      '.expert_feed_forward_length': width,
    },
    tensors: [
      ...embeddings(shape, false),
      ...blocks(shape.layers, (at) => [
        ...attention(shape, at, ['biases', 'post']),
        tensor(`${at}attn_output.bias`, shape.width),
        tensor(`${at}attn_sinks.weight`, shape.heads),
        ...experts(shape, at, count, width).slice(1),
        tensor(`${at}ffn_gate_inp.bias`, count),
        tensor(`${at}ffn_gate_exps.bias`, width, count),
        tensor(`${at}ffn_up_exps.bias`, width, count),
        tensor(`${at}ffn_down_exps.bias`, shape.width, count),
      ]),
    ],
  };
}
