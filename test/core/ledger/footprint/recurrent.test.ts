import { describe, expect, it } from 'vitest';
import { footprintOf, headerOfKeys } from '../../../support/footprint.ts';

const KEYS = {
  '.block_count': 8,
  '.context_length': 32_768,
  '.embedding_length': 1024,
  '.attention.head_count': 16,
  '.attention.head_count_kv': 4,
};
const STATE = {
  '.ssm.conv_kernel': 4,
  '.ssm.inner_size': 2048,
  '.ssm.state_size': 64,
  '.ssm.group_count': 2,
};
/** Of one layer and sequence: f32. */
const ONE = (3 * (2048 + 2 * 2 * 64) + 64 * 2048) * 4;
/** The same of Mamba of the first kind, whose convolution mixes no groups. */
const ONE_OF_FIRST = (3 * 2048 + 64 * 2048) * 4;
const ONE_SLOT = { contextTokens: 1024, slots: 1 };
const ZEROS = { '.attention.head_count_kv': [0, 0, 4, 0, 0, 0, 4, 0] };

const parts = (architecture: string, keys: object, changes: object = ONE_SLOT) => {
  const { recurrentBytes, kvLayers } = footprintOf(headerOfKeys(architecture, { ...KEYS, ...keys }), changes);
  return { recurrentBytes, kvLayers };
};

describe('layers with a state', () => {
  it.each(['qwen3next', 'qwen35', 'qwen35moe'])('are three in four of %s', (architecture) => {
    expect(parts(architecture, STATE)).toEqual({ recurrentBytes: 6 * ONE, kvLayers: 2 });
  });

  it('follow full_attention_interval', () => {
    expect(parts('qwen35', { ...STATE, '.full_attention_interval': 2 })).toEqual({
      recurrentBytes: 4 * ONE,
      kvLayers: 4,
    });
  });

  it.each([
    ['jamba', ONE_OF_FIRST],
    ['granitehybrid', ONE],
    ['plamo2', ONE],
  ])('are those of %s without key-value heads', (architecture, one) => {
    expect(parts(architecture, { ...STATE, ...ZEROS })).toEqual({ recurrentBytes: 6 * one, kvLayers: 2 });
  });

  it('are seven in eight of MiniMax 01, with a state of one head by another', () => {
    const keys = { '.attention.key_length': 64, '.block_count': 16 };
    expect(parts('minimax-01', keys)).toEqual({ recurrentBytes: 14 * 64 * 64 * 16 * 4, kvLayers: 2 });
  });

  it.each(['kimi-linear', 'kimi-k3', 'bailingmoe3'])(
    'of %s have keys, values and queries',
    (architecture) => {
      const keys = { ...ZEROS, '.kda.head_dim': 64, '.ssm.conv_kernel': 4 };
      const one = (3 * 3 * 16 * 64 + 64 * 64 * 16) * 4;
      expect(parts(architecture, keys)).toEqual({ recurrentBytes: 6 * one, kvLayers: 2 });
    },
  );

  it('are not those of feed-forward alone in Nemotron-H', () => {
    const keys = { ...STATE, ...ZEROS, '.feed_forward_length': [0, 512, 0, 512, 512, 0, 0, 512] };
    expect(parts('nemotron_h_moe', keys)).toEqual({ recurrentBytes: 2 * ONE, kvLayers: 2 });
  });

  it('of Falcon-H1 attend as well', () => {
    expect(parts('falcon-h1', STATE)).toEqual({ recurrentBytes: 8 * ONE, kvLayers: 8 });
  });

  it.each([
    ['mamba', ONE_OF_FIRST],
    ['mamba2', ONE],
  ])('are all of %s', (architecture, one) => {
    expect(
      parts(architecture, { ...STATE, '.attention.head_count': 0, '.attention.head_count_kv': 0 }),
    ).toEqual({ recurrentBytes: 8 * one, kvLayers: 0 });
  });

  it('of Mamba 1 have no groups', () => {
    const { '.ssm.group_count': _none, ...keys } = STATE;
    const mamba = parts('mamba', { ...keys, '.attention.head_count': 0, '.attention.head_count_kv': 0 });
    expect(mamba.recurrentBytes).toBe(8 * (3 * 2048 + 64 * 2048) * 4);
  });

  it('of LFM2 remember a short convolution', () => {
    expect(parts('lfm2', { ...ZEROS, '.shortconv.l_cache': 3 }).recurrentBytes).toBe(6 * 2 * 1024 * 4);
  });

  it('of RWKV have heads of their own', () => {
    const keys = { '.attention.head_count': 0, '.attention.head_count_kv': 0, '.wkv.head_size': 64 };
    expect(parts('rwkv7', keys).recurrentBytes).toBe(8 * (2 * 1024 + 64 * 1024) * 4);
    expect(parts('arwkv7', keys).recurrentBytes).toBe(8 * (1024 + 64 * 1024) * 4);
  });

  it('of Kimi Linear keep a matrix for each head', () => {
    const keys = { ...ZEROS, '.ssm.conv_kernel': 4, '.kda.head_dim': 128 };
    expect(parts('kimi-linear', keys).recurrentBytes).toBe(6 * (3 * 3 * 16 * 128 + 128 * 128 * 16) * 4);
  });

  it('of an architecture without a rule are those whose tensors say so', () => {
    const header = {
      ...headerOfKeys('some-new', { ...KEYS, ...STATE }),
      tensors: [
        'blk.0.ssm_in.weight',
        'blk.1.ssm_in.weight',
        'blk.1.attn_k.weight',
        'blk.2.attn_k.weight',
      ].map((name) => ({ name, shape: [1], type: 0, bytes: 4 })),
    };
    const footprint = footprintOf(header, ONE_SLOT);
    expect(footprint.recurrentBytes).toBe(2 * ONE);
    expect(footprint.kvLayers).toBe(7);
  });

  it('keep a state for each sequence, however long the context', () => {
    expect(parts('qwen35', STATE, { contextTokens: 1024, slots: 4 }).recurrentBytes).toBe(4 * 6 * ONE);
    expect(parts('qwen35', STATE, { contextTokens: 32_768 }).recurrentBytes).toBe(4 * 6 * ONE);
  });

  it('keep one more for each token drafted ahead', () => {
    const keys = { ...STATE, '.block_count': 9, '.nextn_predict_layers': 1 };
    expect(parts('qwen35', keys, { ...ONE_SLOT, nextTokenDraft: 6 }).recurrentBytes).toBe(7 * 6 * ONE);
  });

  it('of a size that is not said are named in a note, not guessed', () => {
    const footprint = footprintOf(headerOfKeys('qwen35', KEYS), ONE_SLOT);
    expect(footprint.recurrentBytes).toBe(0);
    expect(footprint.notes.join(' ')).toContain('not its size');
  });
});
