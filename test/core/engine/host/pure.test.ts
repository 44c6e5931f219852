import { describe, expect, it } from 'vitest';
import {
  largestCacheTensorBytes,
  mostTensorBytes,
  sizesOf,
} from '../../../../electron/core/engine/child/sizes.ts';
import { TextPieces } from '../../../../electron/core/engine/child/text-pieces.ts';
import type { StateRecord } from '../../../../electron/core/engine/engine-host.ts';
import { mismatch } from '../../../../electron/core/engine/state-match.ts';
import { whyEnded } from '../../../../electron/core/engine/why-ended.ts';

describe('text of tokens', () => {
  /** Each token is one byte. */
  const bytes = (tokens: readonly number[]): string => Buffer.from(tokens).toString('utf8');
  const all = (text: string): number[] => [...Buffer.from(text, 'utf8')];

  it('comes in whole characters', () => {
    const pieces = new TextPieces(bytes, [], []);
    const told = all('aé€😀b').map((token) => pieces.take(token));
    expect(told).toEqual(['a', '', 'é', '', '', '€', '', '', '', '😀', 'b']);
    expect(pieces.held).toEqual([]);
  });

  it('goes on in the next turn with the half character of the last', () => {
    const [first = 0, ...rest] = all('€');
    const one = new TextPieces(bytes, [], []);
    expect(one.take(first)).toBe('');
    const two = new TextPieces(bytes, [], one.held);
    expect(rest.map((token) => two.take(token)).join('')).toBe('€');
  });

  it('does not wait for ever for what is no character', () => {
    const pieces = new TextPieces(bytes, [], []);
    const told = [0xff, 0xff, 0xff, 0xff, 0x61].map((token) => pieces.take(token));
    expect(told[3]).toContain('\ufffd');
    expect(told[4]).toBe('a');
  });
});

describe('a saved state and a context', () => {
  const record: StateRecord = {
    path: '/s',
    bytes: 9,
    sha256: 'x',
    fingerprint: 'f',
    tokens: [1, 2],
    pendingToken: 3,
    contextTokens: 512,
    batchTokens: 64,
    flashAttention: true,
    cacheTypeK: 'F16',
    cacheTypeV: 'F16',
    threads: 1,
    gpu: 'cpu',
    gpuLayers: 0,
  };

  it('fit where all is as it was, and where the context is larger', () => {
    expect(mismatch(record, record)).toBeNull();
    expect(mismatch(record, { ...record, contextTokens: 1024 })).toBeNull();
  });

  it.each([
    [{ fingerprint: 'g' }],
    [{ contextTokens: 256 }],
    [{ batchTokens: 128 }],
    [{ flashAttention: false }],
    [{ cacheTypeK: 'Q8_0' as const }],
    [{ cacheTypeV: 'Q8_0' as const }],
    [{ threads: 2 }],
    [{ gpu: 'vulkan' }],
    [{ gpuLayers: 4 }],
  ])('do not fit where %o differs', (other) => {
    expect(mismatch(record, { ...record, ...other })).not.toBeNull();
  });
});

describe('sizes of a context', () => {
  const cpu = { gpu: 'cpu', flashAttentionSupported: true };

  it('have defaults: small batches on the CPU, where each is a wait for a cancellation', () => {
    expect(sizesOf({ modelId: 'm', contextTokens: 4096 }, cpu)).toEqual({
      ok: true,
      value: {
        contextTokens: 4096,
        batchTokens: 128,
        flashAttention: true,
        cacheTypeK: 'F16',
        cacheTypeV: 'F16',
      },
    });
    expect(sizesOf({ modelId: 'm', contextTokens: 4096 }, { ...cpu, gpu: 'cuda' })).toMatchObject({
      value: { batchTokens: 512 },
    });
  });

  it.each([
    [{ contextTokens: 0 }],
    [{ contextTokens: 2 ** 30 }],
    [{ contextTokens: 100.5 }],
    [{ contextTokens: 4096, batchTokens: 1 }],
    [{ contextTokens: 4096, flashAttention: false, cacheTypeV: 'Q8_0' as const }],
  ])('are refused where llama.cpp would abort: %o', (request) => {
    expect(sizesOf({ modelId: 'm', ...request }, cpu)).toMatchObject({ error: { code: 'bad_input' } });
  });
});

describe('the largest tensor of a cache', () => {
  const sizes = {
    contextTokens: 1 << 20,
    batchTokens: 512,
    flashAttention: true,
    cacheTypeK: 'F16',
    cacheTypeV: 'Q8_0',
  } as const;

  it('follows the widest layer, its own head lengths, and the type', () => {
    const width = { kvHeads: [0, 8], heads: 32, keyLength: null, valueLength: null, embeddingLength: 4096 };
    expect(largestCacheTensorBytes(width, sizes)).toBe(2 ** 20 * 8 * 128 * 2);
    expect(largestCacheTensorBytes({ ...width, kvHeads: null, keyLength: 64, valueLength: 256 }, sizes)).toBe(
      2 ** 20 * 32 * 256 * (34 / 32),
    );
    expect(largestCacheTensorBytes({ ...width, kvHeads: null, heads: null }, sizes)).toBeNull();
  });

  it('is bounded on Vulkan alone, and closest on its software device', () => {
    expect(mostTensorBytes('cpu', [])).toBe(Number.POSITIVE_INFINITY);
    expect(mostTensorBytes('vulkan', ['AMD Radeon RX 7900'])).toBe(2 ** 32 - 1);
    expect(mostTensorBytes('vulkan', ['llvmpipe (LLVM 15)'])).toBe(2 ** 27);
  });
});

describe('why a child ended', () => {
  it('is told as people can read it', () => {
    expect(whyEnded({ code: null, signal: 'SIGKILL', lastWords: '' })).toContain('killed');
    expect(whyEnded({ code: null, signal: 'SIGSEGV', lastWords: '' })).toBe('it crashed with SIGSEGV');
    expect(whyEnded({ code: 1, signal: null, lastWords: 'a\nError: no such module.\n' })).toBe(
      'its process ended with code 1: Error: no such module',
    );
    const early = '2026-11-29T23:22:25.943Z error failed to load model';
    expect(whyEnded({ code: null, signal: 'SIGSEGV', lastWords: early })).toBe(
      'it crashed with SIGSEGV: error failed to load model',
    );
    expect(whyEnded({ code: null, signal: 'SIGBUS', lastWords: early })).toMatch(/model files are whole$/);
    expect(whyEnded({ code: null, signal: null, lastWords: 'spawn ENOENT' })).toContain(
      'could not be started',
    );
  });
});
