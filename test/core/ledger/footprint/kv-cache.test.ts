import { describe, expect, it } from 'vitest';
import { footprintOf, headerOfKeys, MIB } from '../../../support/footprint.ts';

/** 32 layers of 8 key-value heads of 128: 128 KiB a token in f16. */
const PLAIN = {
  '.block_count': 32,
  '.context_length': 40_960,
  '.embedding_length': 4096,
  '.attention.head_count': 32,
  '.attention.head_count_kv': 8,
};
const plain = headerOfKeys('llama', PLAIN);
const kvMib = (header: ReturnType<typeof headerOfKeys>, changes = {}): number =>
  footprintOf(header, changes).kvBytes / MIB;

describe('the context', () => {
  it('is what the model was trained for where none is asked for, and a note says so', () => {
    const footprint = footprintOf(plain);
    expect(footprint.contextTokens).toBe(40_960);
    expect(footprint.kvBytes / MIB).toBe(5120);
    expect(footprint.notes.join(' ')).toContain('40960 tokens');
  });

  it('rounds up to 256 tokens', () => {
    expect(footprintOf(plain, { contextTokens: 4097 }).contextTokens).toBe(4352);
  });

  it('is shared by the four slots that are llama-server’s own choice', () => {
    expect(kvMib(plain, { contextTokens: 8192 })).toBe(1024);
  });

  it('rounds up before it is divided, and each part again', () => {
    // llama-server 11669 logs 512 cells a slot for -c 769 -np 3.
    expect(footprintOf(plain, { contextTokens: 769, slots: 3 }).contextTokens).toBe(3 * 512);
    expect(footprintOf(plain, { contextTokens: 768, slots: 3 }).contextTokens).toBe(3 * 256);
  });

  it('is divided among slots that are asked for, each rounded up', () => {
    const footprint = footprintOf(plain, { contextTokens: 3000, slots: 3 });
    expect(footprint.contextTokens).toBe(3 * 1024);
    expect(footprintOf(plain, { contextTokens: 3000, slots: 3, unified: true }).contextTokens).toBe(3072);
    expect(footprintOf(plain, { contextTokens: 2600, slots: 3, unified: true }).contextTokens).toBe(2816);
  });
});

describe('a row of keys and values', () => {
  it.each([
    ['f32', 4],
    ['bf16', 2],
    ['q8_0', 34 / 32],
    ['q5_1', 24 / 32],
    ['q5_0', 22 / 32],
    ['q4_1', 20 / 32],
    ['q4_0', 18 / 32],
    ['iq4_nl', 18 / 32],
    ['q6_0', 26 / 32],
  ])('of %s takes %f bytes an element', (type, bytes) => {
    const changes = { contextTokens: 4096, cacheTypeK: type, cacheTypeV: type };
    expect(kvMib(plain, changes)).toBe((32 * 4096 * 2048 * bytes) / MIB);
  });

  it('of a type that is not known counts as f16, with a note', () => {
    const footprint = footprintOf(plain, { contextTokens: 4096, cacheTypeK: 'turbo3' });
    expect(footprint.kvBytes / MIB).toBe(512);
    expect(footprint.notes.join(' ')).toContain('turbo3');
  });

  it('is as wide as key_length says, not the embedding over the heads', () => {
    const header = headerOfKeys('gemma2', {
      '.block_count': 46,
      '.embedding_length': 4608,
      '.attention.head_count': 32,
      '.attention.head_count_kv': 16,
      '.attention.key_length': 128,
      '.attention.value_length': 128,
      '.attention.sliding_window': 4096,
    });
    expect(kvMib(header, { contextTokens: 4096, slots: 1 })).toBe((46 * 4096 * 16 * 256 * 2) / MIB);
  });

  it('may have keys and values of different widths', () => {
    const header = headerOfKeys('mimo2', {
      ...PLAIN,
      '.attention.key_length': 192,
      '.attention.value_length': 128,
    });
    expect(kvMib(header, { contextTokens: 4096 })).toBe((32 * 4096 * 8 * 320 * 2) / MIB);
  });

  it('of values is as wide as the widest layer’s without flash attention', () => {
    const header = headerOfKeys('deci', {
      ...PLAIN,
      '.block_count': 2,
      '.attention.head_count_kv': [8, 2],
    });
    const tokens = 1024;
    expect(footprintOf(header, { contextTokens: tokens }).kvBytes).toBe(tokens * (10 + 10) * 128 * 2);
    expect(footprintOf(header, { contextTokens: tokens, flashAttention: 'off' }).kvBytes).toBe(
      tokens * (10 + 16) * 128 * 2,
    );
  });
});

describe('caches of a kind of their own', () => {
  it('are an indexer’s keys and values in every layer of MiniMax M3 after its dense ones', () => {
    const header = headerOfKeys('minimax-m3', {
      ...PLAIN,
      '.leading_dense_block_count': 3,
      '.attention.indexer.key_length': 128,
    });
    expect(kvMib(header, { contextTokens: 4096 })).toBe((4096 * (32 * 2048 + 29 * (128 + 128)) * 2) / MIB);
  });

  it('are an indexer’s keys in the layers of Qwen 4 that attend, with values beside them in older builds', () => {
    const keys = { ...PLAIN, '.full_attention_interval': 4, '.attention.indexer.key_length': 128 };
    const header = headerOfKeys('qwen4exp', { ...keys, '.ssm.inner_size': 64, '.ssm.state_size': 64 });
    const asked = { contextTokens: 4096 };
    expect(kvMib(header, asked)).toBe((8 * 4096 * (2048 + 128) * 2) / MIB);
    expect(kvMib(header, { ...asked, build: 10_000 })).toBe((8 * 4096 * (2048 + 256) * 2) / MIB);
  });

  it('are a window and pressed keys in DeepSeek V4, for each sequence by itself', () => {
    const header = headerOfKeys('deepseek4', {
      ...PLAIN,
      '.block_count': 3,
      '.attention.head_count_kv': 1,
      '.attention.key_length': 512,
      '.attention.value_length': 512,
      '.attention.sliding_window': 128,
      '.attention.compress_ratios': [0, 4, 128],
      '.attention.indexer.key_length': 128,
    });
    const { kvBytes, recurrentBytes } = footprintOf(header, { contextTokens: 16_384, slots: null });
    const window = 3 * 768 * 512;
    const pressed = 4096 * (512 + 128) + 256 * 512;
    expect(kvBytes).toBe(4 * (window + pressed) * 2);
    expect(recurrentBytes).toBe(4 * (2 * 8 * 2 * (512 + 128) + 2 * 128 * 512) * 4);
  });

  it('are kept once for each time a text passes the blocks in Nanbeige', () => {
    const header = headerOfKeys('nanbeige', { ...PLAIN, '.num_loops': 2 });
    expect(footprintOf(header, { contextTokens: 4096 })).toMatchObject({ layers: 64, kvLayers: 64 });
  });
});

describe('layers that keep nothing', () => {
  it('have no key-value heads', () => {
    const footprint = footprintOf(
      headerOfKeys('deci', { ...PLAIN, '.block_count': 4, '.attention.head_count_kv': [8, 0, 0, 4] }),
      { contextTokens: 1024 },
    );
    expect(footprint.kvLayers).toBe(2);
    expect(footprint.kvBytes).toBe(1024 * 12 * 256 * 2);
  });

  it('are not those that a list is too short for: they count as the largest of it', () => {
    const keys = { ...PLAIN, '.block_count': 4, '.attention.head_count_kv': [0, 8, 4] };
    expect(footprintOf(headerOfKeys('deci', keys), { contextTokens: 1024 }).kvBytes).toBe(
      1024 * 20 * 256 * 2,
    );
  });

  it('use an earlier layer’s cache', () => {
    const keys = { ...PLAIN, '.block_count': 30, '.attention.shared_kv_layers': 12 };
    expect(footprintOf(headerOfKeys('gemma4', keys)).kvLayers).toBe(18);
    // Gemma 3n has no key for it: 20 layers own theirs.
    expect(footprintOf(headerOfKeys('gemma3n', { ...PLAIN, '.block_count': 35 })).kvLayers).toBe(20);
  });

  it('predict further tokens in a context of their own, unless they draft', () => {
    const header = headerOfKeys('step35', { ...PLAIN, '.block_count': 47, '.nextn_predict_layers': 1 });
    const asked = { contextTokens: 4096 };
    expect(footprintOf(header, asked)).toMatchObject({ layers: 46, kvLayers: 46 });
    expect(kvMib(header, asked)).toBe(46 * 16);
    expect(kvMib(header, { ...asked, nextTokenDraft: 3 })).toBe(47 * 16);
  });

  it.each(['glm4moe', 'deepseek2', 'bailingmoe2', 'exaone-moe', 'mimo2', 'qwen3next'])(
    'are not those for further tokens in %s, unless they draft',
    (architecture) => {
      const keys = { ...PLAIN, '.block_count': 9, '.nextn_predict_layers': 1, '.full_attention_interval': 1 };
      const header = headerOfKeys(architecture, { ...keys, '.attention.sliding_window': 0 });
      const asked = { contextTokens: 4096 };
      expect(kvMib(header, asked)).toBe(8 * 16);
      expect(kvMib(header, { ...asked, nextTokenDraft: 3 })).toBe(9 * 16);
    },
  );

  it('are not those for further tokens in older builds, and drafting made a second context of all layers', () => {
    const keys = { ...PLAIN, '.block_count': 9, '.nextn_predict_layers': 1 };
    const older = { contextTokens: 4096, build: 10_000 };
    expect(kvMib(headerOfKeys('glm4moe', keys), older)).toBe(9 * 16);
    expect(kvMib(headerOfKeys('glm4moe', keys), { ...older, nextTokenDraft: 3 })).toBe(2 * 9 * 16);
    expect(kvMib(headerOfKeys('step35', keys), older)).toBe(8 * 16);
    expect(kvMib(headerOfKeys('glm4moe', keys), { ...older, build: 11_669 })).toBe(8 * 16);
  });

  it('are not those for further tokens in Ling 3, which keeps them with the others', () => {
    const keys = { ...PLAIN, '.block_count': 9, '.nextn_predict_layers': 1 };
    const header = headerOfKeys('bailingmoe3', keys);
    expect(kvMib(header, { contextTokens: 4096 })).toBe(9 * 16);
    expect(kvMib(header, { contextTokens: 4096, nextTokenDraft: 3 })).toBe(10 * 16);
  });

  it('are an embedding model’s, which reads its text at once', () => {
    const header = headerOfKeys('bert', { ...PLAIN, '.context_length': 512 });
    expect(footprintOf(header, { contextTokens: 8192 })).toMatchObject({ kvBytes: 0, kvLayers: 0 });
  });
});

describe('a sliding window', () => {
  const windowed = (architecture: string, keys = {}) =>
    headerOfKeys(architecture, {
      ...PLAIN,
      '.block_count': 24,
      '.attention.sliding_window': 1024,
      ...keys,
    });
  /** 4 KiB a token and layer. */
  const cellsOf = (architecture: string, changes = {}, keys = {}): number =>
    footprintOf(windowed(architecture, keys), { contextTokens: 16_384, slots: 1, ...changes }).kvBytes / 4096;

  it.each([
    ['gemma2', 12],
    ['gemma3', 20],
    ['gemma3n', 16],
    ['gpt-oss', 12],
    ['cohere2', 18],
    ['olmo2', 18],
    ['plamo3', 21],
    ['exaone-moe', 18],
    ['afmoe', 18],
  ])('of %s is that of %i layers in 24, where the file has no pattern', (architecture, layers) => {
    const owners = architecture === 'gemma3n' ? 20 : 24;
    expect(cellsOf(architecture)).toBe(layers * 1536 + (owners - layers) * 16_384);
  });

  it.each([
    ['gemma3', 7, 6],
    ['gpt-oss', 3, 2],
    ['laguna', 5, 3],
    ['cohere2moe', 9, 6],
  ])('leaves out the last layer of each group in %s, or the first', (architecture, count, layers) => {
    expect(cellsOf(architecture, {}, { '.block_count': count })).toBe(
      layers * 1536 + (count - layers) * 16_384,
    );
  });

  it('is 4096 tokens in SmallThinker, whatever the file says, and 8192 in Llama 4, said or not', () => {
    const small = footprintOf(windowed('smallthinker'), { contextTokens: 16_384, slots: 1 });
    expect(small.kvBytes / 4096).toBe(18 * 4608 + 6 * 16_384);
    const { '.attention.sliding_window': _none, ...keys } = {
      ...PLAIN,
      '.block_count': 24,
      '.attention.sliding_window': 0,
    };
    const llama4 = footprintOf(headerOfKeys('llama4', keys), { contextTokens: 16_384, slots: 1 });
    expect(llama4.kvBytes / 4096).toBe(18 * 8704 + 6 * 16_384);
    expect(cellsOf('smallthinker', {}, { '.attention.sliding_window': 0 })).toBe(24 * 16_384);
  });

  it('is EXAONE 4’s in its model of 64 layers alone', () => {
    expect(cellsOf('exaone4', {}, { '.block_count': 64 })).toBe(48 * 1536 + 16 * 16_384);
    expect(cellsOf('exaone4')).toBe(24 * 16_384);
  });

  it('is that of every layer of LFM2 that attends', () => {
    const keys = {
      '.attention.head_count_kv': Array.from({ length: 24 }, (_, index) => (index % 3 === 2 ? 8 : 0)),
      '.shortconv.l_cache': 3,
    };
    expect(cellsOf('lfm2', {}, keys)).toBe(8 * 1536);
    expect(cellsOf('lfm2moe', {}, keys)).toBe(8 * 16_384);
  });

  it.each(['llama', 'phi3', 'qwen2', 'mistral3'])('is named by %s files, and not used', (architecture) => {
    expect(cellsOf(architecture)).toBe(24 * 16_384);
  });

  it('holds the windows of all sequences of a stream and one batch, padded to 256', () => {
    const one = (changes: object): number => cellsOf('gpt-oss', changes) / 12;
    expect(one({ slots: 1 }) - 16_384).toBe(1024 + 512);
    expect(one({ slots: null }) - 16_384).toBe(4 * 1024 + 512);
    expect(one({ slots: 4, unified: false }) - 16_384).toBe(4 * (1024 + 512));
    expect(one({ slots: 1, ubatch: 100 }) - 16_384).toBe(1280);
    expect(one({ slots: 1, batch: 256 }) - 16_384).toBe(1280);
    expect(one({ slots: null, contextTokens: 2048 }) - 2048).toBe(2048);
  });

  it('is the whole context with --swa-full', () => {
    expect(cellsOf('gpt-oss', { fullWindowCache: true })).toBe(24 * 16_384);
  });

  it('follows the file’s own pattern, a list or a number', () => {
    const list = Array.from({ length: 24 }, (_, index) => index % 8 !== 7);
    for (const architecture of ['gemma4', 'mimo2', 'gpt-oss'])
      expect(cellsOf(architecture, {}, { '.attention.sliding_window_pattern': list })).toBe(
        21 * 1536 + 3 * 16_384,
      );
    expect(cellsOf('gemma3', {}, { '.attention.sliding_window_pattern': 4 })).toBe(18 * 1536 + 6 * 16_384);
    // A list that is too short says nothing of the other layers: they see everything.
    expect(cellsOf('gpt-oss', {}, { '.attention.sliding_window_pattern': list.slice(0, 8) })).toBe(
      7 * 1536 + 17 * 16_384,
    );
  });

  it('of an architecture that no server runs with one is not counted on, pattern or not, with a note', () => {
    for (const keys of [{}, { '.attention.sliding_window_pattern': 4 }]) {
      expect(cellsOf('some-new', {}, keys)).toBe(24 * 16_384);
      expect(cellsOf('seed_oss', {}, keys)).toBe(24 * 16_384);
      expect(footprintOf(windowed('some-new', keys)).notes.join(' ')).toMatch(/1024 tokens.*no server/);
    }
    expect(footprintOf(windowed('mimo2')).notes.join(' ')).toMatch(/1024 tokens.*not for which layers/);
  });

  it('may have heads of a length of their own', () => {
    const keys = {
      '.block_count': 6,
      '.attention.head_count_kv': [8, 8, 8, 8, 8, 1],
      '.attention.key_length': 512,
      '.attention.value_length': 512,
      '.attention.key_length_swa': 256,
      '.attention.value_length_swa': 256,
      '.attention.sliding_window_pattern': [true, true, true, true, true, false],
    };
    const footprint = footprintOf(windowed('gemma4', keys), { contextTokens: 8192, slots: 1 });
    expect(footprint.kvBytes).toBe((5 * 1536 * 8 * 512 + 8192 * 1024) * 2);
  });
});

describe('latent attention', () => {
  const keys = {
    ...PLAIN,
    '.block_count': 60,
    '.attention.head_count': 128,
    '.attention.head_count_kv': 128,
    '.attention.key_length': 192,
    '.attention.value_length': 128,
    '.attention.kv_lora_rank': 512,
    '.rope.dimension_count': 64,
  };
  const mla = {
    ...keys,
    '.attention.head_count_kv': 1,
    '.attention.key_length': 576,
    '.attention.value_length': 512,
    '.attention.key_length_mla': 192,
    '.attention.value_length_mla': 128,
  };
  const old = {
    ...headerOfKeys('deepseek2', keys),
    tensors: [{ name: 'blk.0.attn_kv_b.weight', shape: [512, 32_768], type: 1, bytes: 0 }],
  };
  const asked = { contextTokens: 4096 };

  it('keeps one row of the latent rank and the rotated dimensions, and no values', () => {
    expect(kvMib(headerOfKeys('deepseek2', mla), asked)).toBe((60 * 4096 * 576 * 2) / MIB);
  });

  it('also kept values in llama.cpp before it took them from the keys', () => {
    const header = headerOfKeys('deepseek2', mla);
    expect(kvMib(header, { ...asked, build: 6000 })).toBe((60 * 4096 * 1088 * 2) / MIB);
    expect(kvMib(header, { ...asked, build: 11_000 })).toBe(kvMib(header, asked));
  });

  it('goes by the tensors: a file without latent ones keeps full keys and values', () => {
    expect(kvMib(old, asked)).toBe((60 * 4096 * 128 * 320 * 2) / MIB);
    expect(footprintOf(old, asked).notes.join(' ')).toContain('no latent tensors');
    expect(kvMib(old, { ...asked, latentCache: true })).toBe((60 * 4096 * 576 * 2) / MIB);
  });

  it('of MiniCPM 3 is not used by llama.cpp', () => {
    expect(kvMib(headerOfKeys('minicpm3', keys), asked)).toBe((60 * 4096 * 128 * 320 * 2) / MIB);
  });

  it('is as wide as key_length says where the file is made for it', () => {
    const wide = headerOfKeys('deepseek2', { ...mla, '.attention.key_length': 640 });
    expect(kvMib(wide, asked)).toBe((60 * 4096 * 640 * 2) / MIB);
  });

  it('of GLM 5 has an indexer in the layers that its file lists, or in all', () => {
    const glm = { ...mla, '.block_count': 8, '.attention.indexer.key_length': 128 };
    const rows = (more: object): number =>
      kvMib(headerOfKeys('glm-dsa', { ...glm, ...more }), asked) / ((4096 * 2) / MIB);
    expect(rows({})).toBe(8 * (576 + 128));
    expect(rows({ '.attention.indexer.types': [1, 0, 0, 1, 0, 0, 0, 1] })).toBe(8 * 576 + 3 * 128);
    expect(rows({ '.context_length': 1_048_576 })).toBe(8 * 576 + 4 * 128);
  });

  it('with an indexer keeps its keys too', () => {
    const header = headerOfKeys('deepseek32', { ...mla, '.attention.indexer.key_length': 128 });
    expect(kvMib(header, asked)).toBe((60 * 4096 * (576 + 128) * 2) / MIB);
  });
});
