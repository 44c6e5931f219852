import { describe, expect, it } from 'vitest';
import { BASE, gemma3, llama } from '../../../../build/models/synthetic-architectures.ts';
import { qwen35 } from '../../../../build/models/synthetic-state-models.ts';
import { estimate } from '../../../../electron/core/ledger/footprint/estimate.ts';
import { largestFit } from '../../../../electron/core/ledger/footprint/fit.ts';
import { DEFAULT_FLAGS, type LoadFlags } from '../../../../electron/core/ledger/footprint/flags.ts';
import { footprintOf, headerOfKeys, headerOfSpec, MIB } from '../../../support/footprint.ts';

const wide = { ...BASE, layers: 8, width: 1024, heads: 16, kvHeads: 8, headLength: 64, feedForward: 4096 };
const header = headerOfSpec(llama({ ...wide, tokens: 64_000, context: 65_536 }));
const compute = (changes: Partial<LoadFlags> = {}): number =>
  footprintOf(header, { contextTokens: 4096, build: 11_000, ...changes }).computeBytes / MIB;

describe('compute buffers', () => {
  it('grow with the batch, and with the context by the mask alone', () => {
    expect(compute({ ubatch: 256 })).toBeCloseTo(compute() / 2, 1);
    expect(compute({ contextTokens: 8192 }) - compute()).toBeCloseTo(4, 5);
  });

  it('hold the whole score matrix without flash attention', () => {
    const scores = (16 * 4096 * 512 * 4) / MIB;
    expect(compute({ flashAttention: 'off' })).toBeGreaterThan(scores);
    expect(compute({ flashAttention: 'off' })).toBeLessThan(scores + 32);
  });

  it('hold an output for every token of a batch in older builds, and where the build is not known', () => {
    const logits = (64_000 * 512 * 4) / MIB;
    expect(compute({ build: 9000 })).toBeGreaterThan(logits);
    expect(compute({ build: null })).toBe(compute({ build: 9000 }));
    expect(compute({ build: 9450 })).toBeLessThan(logits);
  });

  // On CUDA most logs show the outputs and one embedding: 512 tokens × 4 bytes × (vocabulary + embedding).
  it.each([
    ['Llama 3.1 8B', 4096, 14_336, 128_256, 258.5],
    ['Qwen3 32B', 5120, 25_600, 151_936, 306.75],
    ['Llama 3.3 70B', 8192, 28_672, 128_256, 266.5],
    ['Gemma 3 27B', 5376, 21_504, 262_208, 522.63],
  ] as const)(
    'of %s in an older build are within a tenth, or 32 MiB',
    (_model, width, forward, words, wanted) => {
      const keys = {
        '.block_count': 2,
        '.embedding_length': width,
        '.feed_forward_length': forward,
        '.attention.head_count': 32,
        '.attention.head_count_kv': 8,
        '.attention.key_length': 128,
        '.attention.value_length': 128,
        '.vocab_size': words,
      };
      const asked = { contextTokens: 8192, slots: 1, build: 6000 };
      const ours = footprintOf(headerOfKeys('llama', keys), asked).computeBytes / MIB;
      expect(Math.abs(ours - wanted)).toBeLessThan(Math.max(32, wanted / 10));
    },
  );

  it('are there on each device, the output’s on one alone', () => {
    expect(compute({ devices: 3 })).toBeCloseTo(3 * compute(), 5);
    const older = compute({ build: 9000, devices: 2 });
    expect(older).toBeCloseTo(compute({ build: 9000 }) + compute(), 5);
    expect(footprintOf(header, { devices: 2 }).overheadBytes).toBe(2 * footprintOf(header).overheadBytes);
  });

  it('are there again for next-token layers that draft', () => {
    const draft = headerOfSpec(qwen35(undefined, undefined, 1));
    const asked = { contextTokens: 4096, build: 11_000, slots: 1 };
    expect(footprintOf(draft, { ...asked, nextTokenDraft: 2 }).computeBytes).toBeGreaterThanOrEqual(
      2 * footprintOf(draft, asked).computeBytes,
    );
  });
});

describe('compute buffers of an architecture', () => {
  const keys = {
    '.block_count': 12,
    '.embedding_length': 256,
    '.feed_forward_length': 384,
    '.attention.head_count': 4,
    '.attention.head_count_kv': 2,
    '.vocab_size': 128,
  };
  const of = (architecture: string, more: Readonly<Record<string, number>> = {}, contextTokens = 8192) =>
    footprintOf(headerOfKeys(architecture, { ...keys, ...more }), { contextTokens, slots: 1, build: 11_669 })
      .computeBytes / MIB;

  // What llama.cpp 11669 logged for these very headers.
  it.each([
    ['gemma4', { '.embedding_length_per_layer_input': 256 }, 512, 21.53],
    ['gemma4', { '.embedding_length_per_layer_input': 512 }, 512, 40.53],
    ['minimax-m3', { '.attention.indexer.key_length': 64, '.attention.indexer.head_count': 2 }, 8192, 92.05],
    ['minimax-m3', { '.attention.indexer.key_length': 64, '.attention.indexer.head_count': 2 }, 4096, 48.04],
    ['grok', { '.expert_count': 4, '.expert_used_count': 2 }, 4096, 43.6],
  ] as const)('%s with %j at %i tokens are %f MiB', (architecture, more, contextTokens, wanted) => {
    expect(Math.abs(of(architecture, more, contextTokens) - wanted)).toBeLessThan(wanted / 10);
  });

  it('with chosen tokens grow with the cells and with how many are chosen', () => {
    const latent = {
      '.attention.head_count_kv': 1,
      '.attention.key_length': 576,
      '.attention.value_length': 512,
      '.attention.key_length_mla': 192,
      '.attention.value_length_mla': 128,
      '.attention.kv_lora_rank': 512,
      '.attention.indexer.key_length': 64,
      '.attention.indexer.top_k': 8,
    };
    // llama.cpp 11669: 29.72, 45.72 and, with 512 chosen, 57.53 MiB.
    expect(of('glm-dsa', latent, 8192) - of('glm-dsa', latent, 4096)).toBeCloseTo(16, 1);
    const many = of('glm-dsa', { ...latent, '.attention.indexer.top_k': 512 });
    expect(many - of('glm-dsa', latent)).toBeCloseTo(57.53 - 45.72, 1);
  });

  it('count experts as wide as the feed-forward width where the file names no other', () => {
    const more = { '.expert_count': 8, '.expert_used_count': 6 };
    expect(of('llama', more)).toBeGreaterThan(of('llama') + 2);
    expect(of('llama', more)).toBe(of('llama', { ...more, '.expert_feed_forward_length': 384 }));
  });
});

describe('what is loaded beside the model', () => {
  const asked = { ...DEFAULT_FLAGS, contextTokens: 4096 };
  const alone = estimate(header, asked, 'cuda');
  const small = headerOfSpec(gemma3());

  it('is a projector’s weights, unless it stays on the host', () => {
    const weights = small.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const both = estimate(header, asked, 'cuda', { projector: small });
    expect(both.weightsBytes - alone.weightsBytes).toBe(weights);
    const host = estimate(header, { ...asked, projectorOnDevice: false }, 'cuda', { projector: small });
    expect(host.totalBytes).toBe(alone.totalBytes);
  });

  it('is a draft model with its own cache, in its own types', () => {
    const draft = estimate(small, asked, 'cuda');
    const both = estimate(header, { ...asked, cacheTypeK: 'q8_0', cacheTypeV: 'q8_0' }, 'cuda', {
      draft: small,
    });
    expect(both.weightsBytes - alone.weightsBytes).toBe(draft.weightsBytes);
    expect(both.kvBytes).toBe((alone.kvBytes * 34) / 64 + draft.kvBytes);
  });

  it('is an adapter’s weights', () => {
    const both = estimate(header, asked, 'cuda', { adapters: [small, small] });
    expect(both.totalBytes - alone.totalBytes).toBe(2 * small.fileBytes);
  });
});

describe('the whole footprint', () => {
  it('is the sum of its parts, in whole bytes', () => {
    for (const kind of ['cuda', 'hip', 'vulkan', 'sycl', 'metal', 'cpu'] as const) {
      const { totalBytes, ...parts } = footprintOf(header, { cacheTypeK: 'q8_0', slots: 3 }, kind);
      const { weightsBytes, kvBytes, recurrentBytes, computeBytes, overheadBytes } = parts;
      expect(totalBytes).toBe(weightsBytes + kvBytes + recurrentBytes + computeBytes + overheadBytes);
      for (const bytes of [weightsBytes, kvBytes, recurrentBytes, computeBytes, overheadBytes])
        expect(Number.isSafeInteger(bytes) && bytes >= 0).toBe(true);
    }
  });
});

describe('what fits', () => {
  const flags = { ...DEFAULT_FLAGS, build: 11_000 };
  const totalAt = (changes: Partial<LoadFlags>): number =>
    estimate(header, { ...flags, ...changes }, 'cuda').totalBytes;

  it('is all layers with the longest context, and one step more does not fit', () => {
    const free = totalAt({ contextTokens: 20_000 });
    const found = largestFit(header, flags, 'cuda', free);
    if (found.kind !== 'context') throw new Error(found.kind);
    expect(found.contextTokens).toBe(20_224);
    expect(found.footprint.totalBytes).toBeLessThanOrEqual(free);
    expect(totalAt({ contextTokens: found.contextTokens + 256 })).toBeGreaterThan(free);
  });

  it('is no more context than the model was trained for, nor than is asked for', () => {
    expect(largestFit(header, flags, 'cuda', 1e15)).toMatchObject({ kind: 'context', contextTokens: 65_536 });
    expect(largestFit(header, { ...flags, contextTokens: 8192 }, 'cuda', 1e15)).toMatchObject({
      contextTokens: 8192,
    });
  });

  it('is some layers where a small context does not fit with all', () => {
    const free = totalAt({ contextTokens: 4096 }) - 40 * MIB;
    const found = largestFit(header, flags, 'cuda', free);
    if (found.kind !== 'layers') throw new Error(found.kind);
    expect(found.footprint.totalBytes).toBeLessThanOrEqual(free);
    expect(totalAt({ contextTokens: 4096, gpuLayers: found.gpuLayers + 1 })).toBeGreaterThan(free);
  });

  it('is nothing where not one layer fits, and says how much one would take', () => {
    expect(largestFit(header, flags, 'cuda', MIB)).toMatchObject({ kind: 'none' });
    expect(largestFit(header, flags, 'cpu', MIB)).toMatchObject({ kind: 'none' });
  });
});
