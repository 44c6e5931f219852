import { describe, expect, it } from 'vitest';
import { BASE, llama, qwen3, qwen3moe } from '../../../../build/models/synthetic-architectures.ts';
import { qwen35 } from '../../../../build/models/synthetic-state-models.ts';
import type { LoadFlags } from '../../../../electron/core/ledger/footprint/flags.ts';
import type { GgufHeader } from '../../../../electron/core/ledger/footprint/gguf-header.ts';
import { footprintOf, headerOfSpec } from '../../../support/footprint.ts';

const bytesOf = (header: GgufHeader, wanted: RegExp): number =>
  header.tensors.reduce((sum, tensor) => sum + (wanted.test(tensor.name) ? tensor.bytes : 0), 0);
const device = (header: GgufHeader, changes: Partial<LoadFlags> = {}): number =>
  footprintOf(header, changes).weightsBytes;

const plain = headerOfSpec(llama());
const experts = headerOfSpec(qwen3moe());
const EMBEDDING = bytesOf(plain, /^token_embd/);
const ALL = bytesOf(plain, /./);

describe('on a device of its own memory', () => {
  it('lies all but the token embedding', () => {
    expect(device(plain)).toBe(ALL - EMBEDDING);
    expect(footprintOf(plain).notes.join(' ')).toMatch(/weights stay in the host/);
  });

  it('lies a tied output as the embedding once more', () => {
    const tied = headerOfSpec(qwen3());
    expect(device(tied)).toBe(bytesOf(tied, /./));
    expect(device(tied, { gpuLayers: 1 })).toBe(bytesOf(tied, /^(?:token_embd|output_norm)/));
  });

  it('lies no copy of an encoder’s embedding: it has no output', () => {
    const encoder = headerOfSpec({ ...qwen3(), architecture: 'bert' });
    expect(device(encoder)).toBe(bytesOf(encoder, /^(?!token_embd)/));
  });

  it('lies nothing per layer that is read row by row', () => {
    const spec = llama();
    const more = { name: 'per_layer_token_embd.weight', shape: [1024, 312] };
    expect(device(headerOfSpec({ ...spec, tensors: [...spec.tensors, more] }))).toBe(device(plain));
  });

  it.each([
    [0, 0],
    [1, 0],
    [3, 2],
    [4, 3],
  ])('lies with --gpu-layers %i the output and the last %i blocks', (gpuLayers, blocks) => {
    const last = new RegExp(`^blk\\.[${Array.from({ length: blocks }, (_, one) => 3 - one).join('')}]\\.`);
    const output = gpuLayers > 0 ? bytesOf(plain, /^output/) : 0;
    expect(device(plain, { gpuLayers })).toBe((blocks > 0 ? bytesOf(plain, last) : 0) + output);
  });

  it('lies the cache of the layers that are there', () => {
    const kv = (changes: Partial<LoadFlags>): number =>
      footprintOf(plain, { contextTokens: 4096, ...changes }).kvBytes;
    expect(kv({ gpuLayers: 3 })).toBe(kv({}) / 2);
    expect(kv({ gpuLayers: 0 })).toBe(0);
    expect(kv({ cacheOnDevice: false })).toBe(0);
  });

  it('lie as many experts of those that stay on the host as their cache holds, and no more', () => {
    const all = bytesOf(experts, /_exps/);
    const moved = device(experts, { cpuExpertLayers: 99 });
    const cached = (expertCacheBytes: number, changes: Partial<LoadFlags> = {}): number =>
      device(experts, { cpuExpertLayers: 99, expertCacheBytes, ...changes });
    expect(cached(1_048_576)).toBe(moved + 1_048_576);
    expect(cached(2 ** 40)).toBe(moved + all);
    expect(device(experts, { expertCacheBytes: 2 ** 40 })).toBe(device(experts));
    expect(cached(2 ** 40, { gpuLayers: 0 })).toBe(0);
  });

  it('lie no experts of the first layers with --n-cpu-moe', () => {
    const expert = (layers: string) => bytesOf(experts, new RegExp(`^blk\\.[${layers}]\\.ffn_\\w+_exps`));
    expect(device(experts, { cpuExpertLayers: 2 })).toBe(device(experts) - expert('01'));
    expect(device(experts, { cpuExpertLayers: 1e9 })).toBe(device(experts) - expert('0123'));
  });

  it('lie no feed-forward weights of the first layers with --n-cpu-ffn', () => {
    expect(device(plain, { cpuFeedForwardLayers: 1 })).toBe(
      device(plain) - bytesOf(plain, /^blk\.0\.ffn_(?:up|down|gate)\./),
    );
  });

  it('lies what --override-tensor sends there; the first pattern that matches counts', () => {
    const overrides = [
      { pattern: 'blk\\.0\\..*attn', buffer: 'CUDA0' },
      { pattern: 'attn', buffer: 'CPU' },
    ];
    expect(device(plain, { overrides })).toBe(device(plain) - bytesOf(plain, /^blk\.[123]\.attn/));
    expect(device(plain, { overrides: [{ pattern: 'token_embd', buffer: 'CUDA0' }] })).toBe(ALL);
  });

  it('lies a tied output where a pattern sends the embedding, and not where one sends the output', () => {
    const tied = headerOfSpec(qwen3());
    const all = device(tied);
    const overrides = (pattern: string) => ({ overrides: [{ pattern, buffer: 'CPU' }] });
    expect(device(tied, overrides('token_embd'))).toBe(all - bytesOf(tied, /^token_embd/));
    expect(device(tied, overrides('^output\\.'))).toBe(all);
  });

  it('passes over a pattern that is none, with a note', () => {
    const footprint = footprintOf(plain, { overrides: [{ pattern: '(', buffer: 'CPU' }] });
    expect(footprint.weightsBytes).toBe(device(plain));
    expect(footprint.notes.join(' ')).toContain('pattern (');
  });

  it('lie fewer blocks where a next-token layer takes one of the number', () => {
    const header = headerOfSpec(qwen35(undefined, undefined, 1));
    const output = bytesOf(header, /^output/);
    expect(device(header, { gpuLayers: 3 })).toBe(output + bytesOf(header, /^blk\.7\./));
    expect(device(header, { gpuLayers: 3, nextTokenDraft: 1 })).toBe(
      output + bytesOf(header, /^blk\.[78]\./),
    );
  });

  it('lies the feed-forward part of next-token layers of Step 3.5, drafting or not', () => {
    const spec = qwen35(undefined, undefined, 1);
    const header = headerOfSpec({ ...spec, architecture: 'step35' });
    const loaded = bytesOf(header, /^blk\.8\.ffn_(?!norm)/);
    expect(loaded).toBeGreaterThan(0);
    expect(device(header)).toBe(device(headerOfSpec(spec)) + loaded);
  });

  it('lie no next-token layers unless they draft', () => {
    const header = headerOfSpec(qwen35(undefined, undefined, 1));
    const next = bytesOf(header, /^blk\.8\./);
    expect(next).toBeGreaterThan(0);
    expect(device(header, { nextTokenDraft: 3 })).toBe(device(header) + next);
  });
});

describe('in one memory for host and device', () => {
  it.each(['cpu', 'metal'] as const)('every tensor counts once (%s)', (kind) => {
    expect(footprintOf(plain, {}, kind).weightsBytes).toBe(ALL);
    const tied = headerOfSpec(qwen3(BASE));
    expect(footprintOf(tied, { gpuLayers: 0 }, kind).weightsBytes).toBe(bytesOf(tied, /./));
  });
});
