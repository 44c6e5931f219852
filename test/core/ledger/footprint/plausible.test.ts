import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { llama } from '../../../../build/models/synthetic-architectures.ts';
import { DEFAULT_FLAGS } from '../../../../electron/core/ledger/footprint/flags.ts';
import { footprintOfLoad, readModel } from '../../../../electron/core/ledger/footprint/footprint-of-load.ts';
import type { MetadataValue } from '../../../../electron/core/ledger/footprint/gguf-header.ts';
import { implausible } from '../../../../electron/core/ledger/footprint/plausible.ts';
import { footprintOf, headerOfKeys } from '../../../support/footprint.ts';
import { type GgufSpec, writeGguf } from '../../../support/gguf-writer.ts';

const KEYS = {
  '.block_count': 32,
  '.context_length': 8192,
  '.embedding_length': 4096,
  '.attention.head_count': 32,
  '.vocab_size': 128_256,
};
const wrong = (key: string, value: MetadataValue): string | null => {
  const header = headerOfKeys('llama', KEYS);
  return implausible({ ...header, metadata: { ...header.metadata, [`llama.${key}`]: value } });
};

describe('sizes that can not be', () => {
  it.each<[string, MetadataValue]>([
    ['block_count', 4_294_967_295],
    ['block_count', -1],
    ['block_count', 3.5],
    ['block_count', '32'],
    ['embedding_length', 2 ** 63],
    ['context_length', Number.NaN],
    ['attention.head_count', Number.POSITIVE_INFINITY],
    ['attention.head_count_kv', [8, -1, 8]],
    ['feed_forward_length', [[1]]],
    ['ssm.state_size', 1e300],
  ])('%s of %j is named in a sentence', (key, value) => {
    expect(wrong(key, value)).toMatch(/^says that .* can not be, so it is damaged\.$/);
  });

  it('are none in a usable header, lists and truths included', () => {
    expect(wrong('block_count', 61)).toBeNull();
    expect(wrong('attention.head_count_kv', [8, 0, 8])).toBeNull();
    expect(wrong('attention.sliding_window_pattern', [true, false])).toBeNull();
    expect(wrong('num_loops', 2)).toBeNull();
    expect(wrong('num_loops', 1_000)).toMatch(/32000 layers/);
  });
});

describe('a file with such sizes', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'landlord-plausible-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const fileOf = (name: string, metadata: GgufSpec['metadata']): Promise<string> => {
    const spec = llama();
    return writeGguf(join(folder, name), { ...spec, metadata: { ...spec.metadata, ...metadata } });
  };

  it('is refused before anything is made of its size', async () => {
    const read = await readModel(await fileOf('layers.gguf', { '.block_count': 4_294_967_295 }));
    expect(read.ok ? '' : read.error).toMatchObject({
      code: 'bad_input',
      message: 'layers.gguf says that it has 4294967295 layers, which can not be, so it is damaged.',
    });
  });

  it('is refused where its sizes together come to more than can be counted', async () => {
    const modelPath = await fileOf('wide.gguf', {
      '.attention.key_length': 4_000_000_000,
      '.context_length': 4_000_000_000,
    });
    const answer = await footprintOfLoad({
      modelPath,
      args: [],
      flags: DEFAULT_FLAGS,
      kind: 'cuda',
      build: null,
    });
    expect(answer.ok ? '' : answer.error.code).toBe('bad_input');
  });

  it('may be called like what every object has: it is an architecture that is not known', async () => {
    for (const architecture of ['constructor', '__proto__', 'toString']) {
      const header = headerOfKeys(architecture, { ...KEYS, '.attention.sliding_window': 128 });
      const { kvBytes, recurrentBytes } = footprintOf(header, { contextTokens: 4096 });
      expect([kvBytes, recurrentBytes]).toEqual([32 * 4096 * 2 * 4096 * 2, 0]);
    }
  });
});

describe('what a header leaves out', () => {
  it.each([
    ['.attention.head_count', /how wide its attention is: keys and values are not counted/],
    ['.vocab_size', /how many tokens it knows: the outputs are not counted/],
    ['.context_length', /does not say one: 4096 tokens are counted/],
  ] as const)('%s is told', (key, note) => {
    const { [key]: _none, ...keys } = KEYS;
    expect(footprintOf(headerOfKeys('llama', keys)).notes.join(' ')).toMatch(note);
    expect(footprintOf(headerOfKeys('llama', KEYS)).notes.join(' ')).not.toMatch(note);
  });
});
