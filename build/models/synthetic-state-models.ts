import type { GgufSpec, GgufTensor } from './gguf-writer.ts';
import {
  attention,
  BASE,
  baseMetadata,
  blocks,
  dense,
  EPSILON,
  embeddings,
  type Metadata,
  tensor,
  WIDE,
} from './synthetic-architectures.ts';

interface State {
  readonly kernel: number;
  readonly inner: number;
  readonly size: number;
  readonly ranks: number;
  readonly groups: number;
}

const STATE: State = { kernel: 4, inner: 512, size: 16, ranks: 16, groups: 1 };

function stateMetadata(state: State): Metadata {
  return {
    '.ssm.conv_kernel': state.kernel,
    '.ssm.inner_size': state.inner,
    '.ssm.state_size': state.size,
    '.ssm.time_step_rank': state.ranks,
    '.ssm.group_count': state.groups,
  };
}

/** Mamba 1, as in Jamba too. */
function mambaBlock(width: number, state: State, at: string): GgufTensor[] {
  const { inner, size, ranks, kernel } = state;
  return [
    tensor(`${at}attn_norm.weight`, width),
    tensor(`${at}ssm_in.weight`, width, 2 * inner),
    tensor(`${at}ssm_conv1d.weight`, kernel, inner),
    tensor(`${at}ssm_conv1d.bias`, inner),
    tensor(`${at}ssm_x.weight`, inner, ranks + 2 * size),
    tensor(`${at}ssm_dt.weight`, ranks, inner),
    tensor(`${at}ssm_dt.bias`, inner),
    tensor(`${at}ssm_a`, size, inner),
    tensor(`${at}ssm_d`, inner),
    tensor(`${at}ssm_out.weight`, inner, width),
  ];
}

/** Mamba 2: heads of `inner / ranks`. */
function mamba2Block(width: number, state: State, at: string): GgufTensor[] {
  const { inner, size, ranks, kernel, groups } = state;
  const mixed = inner + 2 * groups * size;
  return [
    tensor(`${at}attn_norm.weight`, width),
    tensor(`${at}ssm_in.weight`, width, inner + mixed + ranks),
    tensor(`${at}ssm_conv1d.weight`, kernel, mixed),
    tensor(`${at}ssm_conv1d.bias`, mixed),
    tensor(`${at}ssm_dt.bias`, ranks),
    tensor(`${at}ssm_a`, 1, ranks),
    tensor(`${at}ssm_d`, 1, ranks),
    tensor(`${at}ssm_norm.weight`, inner / groups, groups),
    tensor(`${at}ssm_out.weight`, inner, width),
  ];
}

export function mamba(shape = BASE, state = STATE): GgufSpec {
  const { '.ssm.group_count': _none, ...sizes } = stateMetadata(state);
  return {
    architecture: 'mamba',
    tokens: shape.tokens,
    metadata: {
      '.context_length': shape.context,
      '.embedding_length': shape.width,
      '.block_count': shape.layers,
      '.feed_forward_length': 0,
      '.attention.head_count': 0,
      ...EPSILON,
      ...sizes,
    },
    tensors: [
      ...embeddings(shape, false),
      ...blocks(shape.layers, (at) => mambaBlock(shape.width, state, at)),
    ],
  };
}

export function jamba(shape = { ...BASE, layers: 8 }, state = STATE): GgufSpec {
  const attends = (index: number): boolean => index % 4 === 2;
  const { '.ssm.group_count': _none, ...sizes } = stateMetadata(state);
  return {
    architecture: 'jamba',
    tokens: shape.tokens,
    metadata: {
      ...baseMetadata(shape),
      ...sizes,
      '.attention.head_count_kv': Array.from({ length: shape.layers }, (_, index) =>
        attends(index) ? shape.kvHeads : 0,
      ),
    },
    tensors: [
      ...embeddings(shape, false),
      ...blocks(shape.layers, (at, index) => [
        ...(attends(index)
          ? attention(shape, at)
          : [
              ...mambaBlock(shape.width, state, at),
              tensor(`${at}ssm_dt_norm.weight`, state.ranks),
              tensor(`${at}ssm_b_norm.weight`, state.size),
              tensor(`${at}ssm_c_norm.weight`, state.size),
            ]),
        ...dense(shape, at),
      ]),
    ],
  };
}

const STATE2: State = { kernel: 4, inner: 512, size: 32, ranks: 8, groups: 2 };

export function falconH1(shape = BASE, state = STATE2): GgufSpec {
  return {
    architecture: 'falcon-h1',
    tokens: shape.tokens,
    metadata: { ...baseMetadata(shape), ...stateMetadata(state) },
    tensors: [
      ...embeddings(shape, false),
      ...blocks(shape.layers, (at) => [
        ...attention(shape, at),
        ...mamba2Block(shape.width, state, at).slice(1),
        // llama.cpp asks for this one without a suffix.
        ...dense(shape, at).map((one) =>
          one.name === `${at}ffn_norm.weight` ? { ...one, name: `${at}ffn_norm` } : one,
        ),
      ]),
    ],
  };
}

export function graniteHybrid(shape = { ...BASE, layers: 8 }, state = { ...STATE2, groups: 1 }): GgufSpec {
  const attends = (index: number): boolean => index % 4 === 3;
  return {
    architecture: 'granitehybrid',
    tokens: shape.tokens,
    metadata: {
      ...baseMetadata(shape),
      ...stateMetadata(state),
      '.attention.head_count_kv': Array.from({ length: shape.layers }, (_, index) =>
        attends(index) ? shape.kvHeads : 0,
      ),
      '.logit_scale': { f32: 1 },
    },
    tensors: [
      ...embeddings(shape, false),
      ...blocks(shape.layers, (at, index) => [
        ...(attends(index) ? attention(shape, at) : mamba2Block(shape.width, state, at)),
        ...dense(shape, at),
      ]),
    ],
  };
}

export function nemotronH(shape = { ...BASE, layers: 9 }, state = STATE2): GgufSpec {
  const kind = (index: number): 'state' | 'attention' | 'feedForward' =>
    index % 3 === 0 ? 'state' : index % 3 === 1 ? 'feedForward' : 'attention';
  const list = (wanted: ReturnType<typeof kind>, value: number): number[] =>
    Array.from({ length: shape.layers }, (_, index) => (kind(index) === wanted ? value : 0));
  return {
    architecture: 'nemotron_h',
    tokens: shape.tokens,
    metadata: {
      ...baseMetadata(shape),
      ...stateMetadata(state),
      '.attention.head_count_kv': list('attention', shape.kvHeads),
      '.feed_forward_length': list('feedForward', shape.feedForward),
    },
    tensors: [
      ...embeddings(shape, false),
      ...blocks(shape.layers, (at, index) => {
        if (kind(index) === 'state') return mamba2Block(shape.width, state, at);
        if (kind(index) === 'attention') return attention(shape, at);
        return [
          tensor(`${at}attn_norm.weight`, shape.width),
          tensor(`${at}ffn_up.weight`, shape.width, shape.feedForward),
          tensor(`${at}ffn_down.weight`, shape.feedForward, shape.width),
        ];
      }),
    ],
  };
}

export function lfm2(shape = { ...BASE, layers: 6 }, remembered = 3): GgufSpec {
  const attends = (index: number): boolean => index % 3 === 2;
  return {
    architecture: 'lfm2',
    tokens: shape.tokens,
    metadata: {
      ...baseMetadata(shape),
      '.shortconv.l_cache': remembered,
      '.attention.head_count_kv': Array.from({ length: shape.layers }, (_, index) =>
        attends(index) ? shape.kvHeads : 0,
      ),
    },
    tensors: [
      ...embeddings(shape, true).map((one) =>
        one.name === 'output_norm.weight' ? { ...one, name: 'token_embd_norm.weight' } : one,
      ),
      ...blocks(shape.layers, (at, index) => [
        ...(attends(index)
          ? attention(shape, at, ['headNorms'])
          : [
              tensor(`${at}attn_norm.weight`, shape.width),
              tensor(`${at}shortconv.conv.weight`, remembered, shape.width),
              tensor(`${at}shortconv.in_proj.weight`, shape.width, 3 * shape.width),
              tensor(`${at}shortconv.out_proj.weight`, shape.width, shape.width),
            ]),
        ...dense(shape, at),
      ]),
    ],
  };
}

const DELTA: State = { kernel: 4, inner: 512, size: 64, ranks: 8, groups: 4 };

/** Gated delta nets with full attention in one block of four; a next-token block where asked for. */
export function qwen35(shape = { ...WIDE, layers: 8 }, state = DELTA, nextToken = 0): GgufSpec {
  const keys = state.size * state.groups;
  const values = state.size * state.ranks;
  const query = shape.heads * shape.headLength;
  const gated = (at: string): GgufTensor[] =>
    attention(shape, at, ['headNorms', 'post']).map((one) =>
      one.name.endsWith('attn_q.weight') ? tensor(one.name, shape.width, 2 * query) : one,
    );
  return {
    architecture: 'qwen35',
    tokens: shape.tokens,
    metadata: {
      ...baseMetadata(shape),
      ...stateMetadata(state),
      '.block_count': shape.layers + nextToken,
      ...(nextToken > 0 ? { '.nextn_predict_layers': nextToken } : {}),
      '.full_attention_interval': 4,
      '.rope.dimension_sections': [11, 11, 10, 0],
    },
    tensors: [
      ...embeddings(shape, false),
      ...blocks(shape.layers + nextToken, (at, index) => [
        ...(index >= shape.layers || index % 4 === 3
          ? gated(at)
          : [
              tensor(`${at}attn_norm.weight`, shape.width),
              tensor(`${at}post_attention_norm.weight`, shape.width),
              tensor(`${at}attn_qkv.weight`, shape.width, 2 * keys + values),
              tensor(`${at}attn_gate.weight`, shape.width, values),
              tensor(`${at}ssm_conv1d.weight`, state.kernel, 2 * keys + values),
              tensor(`${at}ssm_dt.bias`, state.ranks),
              tensor(`${at}ssm_a`, state.ranks),
              tensor(`${at}ssm_beta.weight`, shape.width, state.ranks),
              tensor(`${at}ssm_alpha.weight`, shape.width, state.ranks),
              tensor(`${at}ssm_norm.weight`, state.size),
              tensor(`${at}ssm_out.weight`, values, shape.width),
            ]),
        ...dense(shape, at).slice(1),
        ...(index >= shape.layers
          ? [
              tensor(`${at}nextn.eh_proj.weight`, 2 * shape.width, shape.width),
              tensor(`${at}nextn.enorm.weight`, shape.width),
              tensor(`${at}nextn.hnorm.weight`, shape.width),
            ]
          : []),
      ]),
    ],
  };
}

interface Latent {
  readonly rank: number;
  readonly rotated: number;
  readonly plain: number;
  readonly value: number;
}

const LATENT: Latent = { rank: 64, rotated: 32, plain: 64, value: 64 };

/** Latent attention with the latent tensors, or, `whole`, as files were before them. */
export function deepseek2(shape = BASE, latent = LATENT, whole = false): GgufSpec {
  const { rank, rotated, plain: rest, value } = latent;
  const { heads, width } = shape;
  return {
    architecture: 'deepseek2',
    tokens: shape.tokens,
    metadata: {
      ...baseMetadata(shape),
      '.rope.dimension_count': rotated,
      '.attention.kv_lora_rank': rank,
      '.attention.head_count_kv': whole ? heads : 1,
      '.attention.key_length': whole ? rest + rotated : rank + rotated,
      '.attention.value_length': whole ? value : rank,
      ...(whole ? {} : { '.attention.key_length_mla': rest + rotated, '.attention.value_length_mla': value }),
      '.attention.q_lora_rank': 64,
      '.leading_dense_block_count': shape.layers,
      '.expert_count': 4,
      '.expert_used_count': 2,
      '.expert_shared_count': 1,
      '.expert_feed_forward_length': 128,
      '.expert_weights_scale': { f32: 1 },
      '.rope.scaling.yarn_log_multiplier': { f32: 0.1 },
    },
    tensors: [
      ...embeddings(shape, false),
      ...blocks(shape.layers, (at) => [
        tensor(`${at}attn_norm.weight`, width),
        tensor(`${at}attn_q_a_norm.weight`, 64),
        tensor(`${at}attn_kv_a_norm.weight`, rank),
        tensor(`${at}attn_q_a.weight`, width, 64),
        tensor(`${at}attn_q_b.weight`, 64, heads * (rest + rotated)),
        tensor(`${at}attn_kv_a_mqa.weight`, width, rank + rotated),
        ...(whole
          ? [tensor(`${at}attn_kv_b.weight`, rank, heads * (rest + value))]
          : [
              tensor(`${at}attn_k_b.weight`, rest, rank, heads),
              tensor(`${at}attn_v_b.weight`, rank, value, heads),
            ]),
        tensor(`${at}attn_output.weight`, heads * value, width),
        ...dense(shape, at),
      ]),
    ],
  };
}
