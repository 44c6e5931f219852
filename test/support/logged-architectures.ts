import type { GgufValue } from './gguf-writer.ts';

/**
 * What llama.cpp (build 11669, Debian's libllama) logged for the caches and states of one small header of each
 * architecture that it knows: 12 layers 256 wide, made by its own `llama_model_init_from_user` from the keys
 * alone; 8192 tokens, three slots on one cache, f16, ubatch 512. Not here: what it can not make so (CLIP, drafters,
 * decision heads) and DeepSeek V4.
 */
export interface LoggedArchitecture {
  readonly architectures: string;
  /** Beside `LOGGED_KEYS`. */
  readonly keys: Readonly<Record<string, GgufValue>>;
  /** As it is; with a window of 1024 tokens; with a pattern too, as a list; as a period of 3. null: it refuses that. */
  readonly kvMib: readonly (number | null)[];
  /** As it is, and with two tokens drafted ahead. */
  readonly stateMib: readonly [number, number];
}

export const LOGGED_KEYS: Readonly<Record<string, GgufValue>> = {
  '.block_count': 12,
  '.context_length': 8192,
  '.embedding_length': 256,
  '.feed_forward_length': 384,
  '.attention.head_count': 4,
  '.attention.head_count_kv': 2,
  '.rope.dimension_count': 64,
};

/** Every third layer sees everything. */
export const PATTERN: readonly number[] = [1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0];
const FORWARD: readonly number[] = [0, 384, 0, 0, 384, 0, 0, 384, 0, 0, 384, 0];
/** So many key-value heads in every third layer, none in the others. */
const third = (heads: number): readonly number[] => PATTERN.map((windowed) => (windowed === 1 ? 0 : heads));
const STATE: Readonly<Record<string, GgufValue>> = {
  '.ssm.conv_kernel': 4,
  '.ssm.inner_size': 512,
  '.ssm.state_size': 128,
  '.ssm.group_count': 2,
};
const LATENT: Readonly<Record<string, GgufValue>> = {
  '.attention.head_count_kv': 1,
  '.attention.key_length': 576,
  '.attention.value_length': 512,
  '.attention.key_length_mla': 192,
  '.attention.value_length_mla': 128,
  '.attention.kv_lora_rank': 512,
};
const INDEXER: Readonly<Record<string, GgufValue>> = {
  '.attention.indexer.head_count': 2,
  '.attention.indexer.key_length': 64,
  '.attention.indexer.top_k': 8,
};

export const LOGGED_ARCHITECTURES: readonly LoggedArchitecture[] = [
  {
    architectures:
      'llama deci falcon baichuan gpt2 gptneox mpt starcoder refact bloom stablelm qwen qwen2 qwen2vl qwen3 qwen3vl phi2 phi3 plamo codeshell orion internlm2 minicpm gemma starcoder2 xverse command-r olmo openelm chatglm glm4 bitnet t5 t5encoder jais jais2 nemotron exaone exaone4 granite granitemoe chameleon arcee ernie4_5 hunyuan-dense hunyuan_vl hy_v3 smollm3 seed_oss apertus cogvlm pangu-embedded mistral3 paddleocr llama-embed maincoder talkie nanbeige qwen3tts pockettts llama4 grok qwen2moe qwen3moe qwen3vlmoe phimoe dbrx olmoe arctic deepseek glm4moe bailingmoe bailingmoe2 dots1 ernie4_5-moe hunyuan-moe smallthinker grovemoe minimax-m2',
    keys: {},
    kvMib: [48, 48, 48, 48],
    stateMib: [0, 0],
  },
  {
    architectures:
      'modern-bert neo-bert eurobert dream llada bert nomic-bert nomic-bert-moe jina-bert-v3 llada-moe rnd1',
    keys: {},
    kvMib: [0, 0, 0, 0],
    stateMib: [0, 0],
  },
  { architectures: 'qwen35', keys: { ...STATE }, kvMib: [12, 12, 12, 12], stateMib: [7.07, 21.2] },
  {
    architectures: 'plamo2 granitehybrid',
    keys: { ...STATE, '.attention.head_count_kv': third(2) },
    kvMib: [16, 16, 16, 16],
    stateMib: [6.28, 6.28],
  },
  { architectures: 'plamo3', keys: {}, kvMib: [48, 23.25, 30, 30], stateMib: [0, 0] },
  {
    architectures: 'minicpm3 plm',
    keys: { '.attention.kv_lora_rank': 512 },
    kvMib: [48, 48, 48, 48],
    stateMib: [0, 0],
  },
  { architectures: 'gemma2', keys: {}, kvMib: [48, 34.5, 30, 30], stateMib: [0, 0] },
  { architectures: 'gemma3', keys: {}, kvMib: [48, 25.5, 30, 30], stateMib: [0, 0] },
  {
    architectures: 'gemma3n',
    keys: { '.attention.sliding_window': 1024 },
    kvMib: [25.5, 25.5, 30, 30],
    stateMib: [0, 0],
  },
  {
    architectures: 'gemma4',
    keys: {
      '.attention.sliding_window_pattern': PATTERN,
      '.attention.sliding_window': 1024,
      '.attention.key_length_swa': 1,
      '.attention.value_length_swa': 1,
    },
    kvMib: [16.22, 16.22, 16.22, null],
    stateMib: [0, 0],
  },
  {
    architectures: 'gemma-embedding gemma-embedding2',
    keys: { '.attention.sliding_window': 1024 },
    kvMib: [0, 0, 0, 0],
    stateMib: [0, 0],
  },
  {
    architectures: 'mamba',
    keys: { '.ssm.conv_kernel': 4, '.ssm.inner_size': 512, '.ssm.state_size': 128 },
    kvMib: [0, 0, 0, 0],
    stateMib: [9.21, 9.21],
  },
  { architectures: 'mamba2', keys: { ...STATE }, kvMib: [0, 0, 0, 0], stateMib: [9.42, 9.42] },
  {
    architectures: 'jamba',
    keys: {
      '.attention.head_count_kv': third(2),
      '.ssm.conv_kernel': 4,
      '.ssm.inner_size': 512,
      '.ssm.state_size': 128,
    },
    kvMib: [16, 16, 16, 16],
    stateMib: [6.14, 6.14],
  },
  { architectures: 'falcon-h1', keys: { ...STATE }, kvMib: [48, 48, 48, 48], stateMib: [9.42, 9.42] },
  {
    architectures: 'cohere2 muse-glimmer cohere2moe exaone-moe',
    keys: { '.attention.sliding_window': 1024 },
    kvMib: [27.75, 27.75, 30, 30],
    stateMib: [0, 0],
  },
  { architectures: 'olmo2 laguna afmoe mellum', keys: {}, kvMib: [48, 27.75, 30, 30], stateMib: [0, 0] },
  {
    architectures: 'nemotron_h nemotron_h_moe',
    keys: { ...STATE, '.feed_forward_length': FORWARD, '.attention.head_count_kv': third(2) },
    kvMib: [16, 16, 16, 16],
    stateMib: [3.14, 9.42],
  },
  {
    architectures: 'rwkv6 rwkv7',
    keys: { '.wkv.head_size': 64 },
    kvMib: [0, 0, 0, 0],
    stateMib: [2.32, 2.32],
  },
  {
    architectures: 'granite_swa',
    keys: { '.attention.sliding_window_pattern': PATTERN, '.attention.sliding_window': 1024 },
    kvMib: [30, 30, 30, null],
    stateMib: [0, 0],
  },
  {
    architectures: 'lfm2',
    keys: { '.attention.head_count_kv': third(2), '.shortconv.l_cache': 3 },
    kvMib: [16, 7, 7, 7],
    stateMib: [0.05, 0.14],
  },
  {
    architectures: 'mimo2 step35 spark2_5 maple maion-coder',
    keys: { '.attention.sliding_window': 1024, '.attention.sliding_window_pattern': PATTERN },
    kvMib: [30, 30, 30, null],
    stateMib: [0, 0],
  },
  { architectures: 'qwen3next', keys: { ...STATE }, kvMib: [12, 12, 12, 12], stateMib: [7.07, 7.07] },
  { architectures: 'qwen35moe', keys: { ...STATE }, kvMib: [12, 12, 12, 12], stateMib: [7.07, 21.2] },
  {
    architectures: 'qwen4exp',
    keys: { ...STATE, ...INDEXER },
    kvMib: [15, 15, 15, 15],
    stateMib: [7.07, 21.2],
  },
  { architectures: 'deepseek2 mistral4', keys: { ...LATENT }, kvMib: [108, 108, 108, 108], stateMib: [0, 0] },
  {
    architectures: 'deepseek32 glm-dsa',
    keys: { ...LATENT, ...INDEXER },
    kvMib: [120, 120, 120, 120],
    stateMib: [0, 0],
  },
  {
    architectures: 'bailingmoe3 kimi-k3',
    keys: { ...LATENT, '.ssm.conv_kernel': 4, '.kda.head_dim': 128, '.attention.head_count_kv': third(1) },
    kvMib: [36, 36, 36, 36],
    stateMib: [6.42, 19.27],
  },
  {
    architectures: 'gpt-oss',
    keys: { '.attention.sliding_window': 1024 },
    kvMib: [34.5, 34.5, 30, 30],
    stateMib: [0, 0],
  },
  {
    architectures: 'lfm2moe',
    keys: { '.attention.head_count_kv': third(2), '.shortconv.l_cache': 3 },
    kvMib: [16, 16, 16, 16],
    stateMib: [0.05, 0.14],
  },
  {
    architectures: 'kimi-linear',
    keys: { ...LATENT, '.ssm.conv_kernel': 4, '.kda.head_dim': 128, '.attention.head_count_kv': third(1) },
    kvMib: [36, 36, 36, 36],
    stateMib: [6.42, 6.42],
  },
  {
    architectures: 'glm5-next',
    keys: {
      ...LATENT,
      ...INDEXER,
      '.ssm.conv_kernel': 4,
      '.kda.head_dim': 128,
      '.attention.head_count_kv': third(1),
    },
    kvMib: [48, 48, 48, 48],
    stateMib: [6.42, 19.27],
  },
  {
    architectures: 'minimax-m3',
    keys: { ...INDEXER, '.leading_dense_block_count': 1 },
    kvMib: [70, 70, 70, 70],
    stateMib: [0, 0],
  },
  { architectures: 'minimax-01', keys: {}, kvMib: [4, 4, 4, 4], stateMib: [2.06, 2.06] },
  {
    architectures: 'hy_v4',
    keys: {
      ...LATENT,
      '.attention.indexer.key_length': 128,
      '.attention.indexer.types': [1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0],
    },
    kvMib: [116, null, null, null],
    stateMib: [0, 0],
  },
];
