import type { GgufSpec, GgufTensor } from './gguf-writer.ts';

const WIDTH = 64;
const FORWARD = 128;
const LAYERS = 2;
export const EMBEDDING_TOKENS = 312;

/** A model that makes embeddings and no text, of the kind that bge and nomic-embed are (llama.cpp, models/bert.cpp). */
export function bert(contextTokens = 512): GgufSpec {
  const tensor = (name: string, ...shape: number[]): GgufTensor => ({ name, shape });
  const layer = (name: string, from: number, to: number): GgufTensor[] => [
    tensor(`${name}.weight`, from, to),
    tensor(`${name}.bias`, to),
  ];
  const norm = (name: string): GgufTensor[] => [
    tensor(`${name}.weight`, WIDTH),
    tensor(`${name}.bias`, WIDTH),
  ];
  const blocks = Array.from({ length: LAYERS }, (_, index) => `blk.${index}.`);
  return {
    architecture: 'bert',
    metadata: {
      '.context_length': contextTokens,
      '.embedding_length': WIDTH,
      '.block_count': LAYERS,
      '.feed_forward_length': FORWARD,
      '.attention.head_count': 4,
      '.attention.layer_norm_epsilon': { f32: 1e-12 },
      '.attention.causal': false,
      '.pooling_type': 1,
      'tokenizer.ggml.token_type_count': 2,
    },
    tokens: EMBEDDING_TOKENS,
    tensors: [
      tensor('token_embd.weight', WIDTH, EMBEDDING_TOKENS),
      tensor('token_types.weight', WIDTH, 2),
      tensor('position_embd.weight', WIDTH, contextTokens),
      ...norm('token_embd_norm'),
      ...blocks.flatMap((at) => [
        ...['attn_q', 'attn_k', 'attn_v', 'attn_output'].flatMap((name) =>
          layer(`${at}${name}`, WIDTH, WIDTH),
        ),
        ...norm(`${at}attn_output_norm`),
        ...layer(`${at}ffn_up`, WIDTH, FORWARD),
        ...layer(`${at}ffn_down`, FORWARD, WIDTH),
        ...norm(`${at}layer_output_norm`),
      ]),
    ],
  };
}
