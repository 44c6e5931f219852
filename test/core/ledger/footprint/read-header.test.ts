import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BASE, gemma3, llama } from '../../../../build/models/synthetic-architectures.ts';
import { qwen35 } from '../../../../build/models/synthetic-state-models.ts';
import { readHeader } from '../../../../electron/core/ledger/footprint/read-header.ts';
import { type GgufSpec, ggufHeader, writeGguf } from '../../../support/gguf-writer.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-gguf-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let files = 0;
async function fileOf(bytes: Uint8Array, name = `m${files++}.gguf`): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, bytes);
  return path;
}

async function messageFor(path: string): Promise<string> {
  const read = await readHeader(path);
  expect(read.ok).toBe(false);
  const message = read.ok ? '' : read.error.message;
  // One sentence, for a person.
  expect(message).toMatch(/^[^\n]{20,300}\.$/);
  return message;
}

const whole = (spec: GgufSpec): Buffer => ggufHeader(spec);
/** With one field overwritten at its place. */
function patched(at: number, value: bigint): Buffer {
  const bytes = whole(llama());
  bytes.writeBigUInt64LE(value, at);
  return bytes;
}

describe('a usable file', () => {
  it('gives its architecture, its metadata and every tensor', async () => {
    const read = await readHeader(await writeGguf(join(folder, 'good.gguf'), gemma3()));
    expect(read.ok && read.value).toMatchObject({ architecture: 'gemma3', hasWeights: true });
    if (!read.ok) return;
    expect(read.value.metadata['gemma3.block_count']).toBe(12);
    expect(read.value.tensors).toHaveLength(gemma3().tensors.length);
    expect(read.value.tensors[0]).toEqual({
      name: 'token_embd.weight',
      shape: [256, 312],
      type: 0,
      bytes: 256 * 312 * 4,
    });
  });

  it('keeps lists of one value a layer, and of the tokens only how many there are', async () => {
    const spec = qwen35();
    const read = await readHeader(await writeGguf(join(folder, 'lists.gguf'), { ...spec, tokens: 40_000 }));
    if (!read.ok) throw new Error(read.error.message);
    expect(read.value.metadata['qwen35.rope.dimension_sections']).toEqual([11, 11, 10, 0]);
    expect(read.value.listLengths['tokenizer.ggml.tokens']).toBe(40_000);
    expect(read.value.metadata['tokenizer.ggml.tokens']).toEqual([]);
  });

  it('may be of version 2', async () => {
    const bytes = whole(llama());
    bytes.writeUInt32LE(2, 4);
    const read = await readHeader(await fileOf(bytes));
    expect(read.ok).toBe(true);
  });

  it('may be a header alone, and says so', async () => {
    const read = await readHeader(await fileOf(whole(llama())));
    expect(read.ok && read.value.hasWeights).toBe(false);
  });

  it('may hold a type of numbers that is not known yet: it is as long as the way to the next tensor', async () => {
    const spec = llama();
    const tensors = spec.tensors.map((tensor, index) => (index === 1 ? { ...tensor, type: 250 } : tensor));
    const read = await readHeader(await writeGguf(join(folder, 'type.gguf'), { ...spec, tensors }));
    expect(read.ok && read.value.tensors[1]?.bytes).toBe(256 * 4);
  });
});

describe('a split model', () => {
  const part = (index: number, count: number): GgufSpec => ({
    architecture: 'llama',
    tokens: null,
    metadata: {
      'split.no': index,
      'split.count': count,
      ...(index === 0 ? { '.block_count': 2, '.embedding_length': 64 } : {}),
    },
    tensors: [{ name: `blk.${index}.attn_q.weight`, shape: [64, 64] }],
  });
  const parts = async (name: string, specs: readonly GgufSpec[]): Promise<string[]> => {
    const count = String(specs.length).padStart(5, '0');
    return Promise.all(
      specs.map((spec, index) =>
        writeGguf(join(folder, `${name}-${String(index + 1).padStart(5, '0')}-of-${count}.gguf`), spec),
      ),
    );
  };

  it('is read from all its parts, whichever is named', async () => {
    const paths = await parts('split', [part(0, 3), part(1, 3), part(2, 3)]);
    for (const path of [paths[0], paths[2]]) {
      const read = await readHeader(path ?? '');
      if (!read.ok) throw new Error(read.error.message);
      expect(read.value.tensors.map((tensor) => tensor.name)).toHaveLength(3);
      expect(read.value.metadata['llama.block_count']).toBe(2);
    }
  });

  it('is refused where a part is missing, by that part’s name', async () => {
    const paths = await parts('gap', [part(0, 3), part(1, 3), part(2, 3)]);
    await rm(paths[1] ?? '');
    expect(await messageFor(paths[0] ?? '')).toContain('gap-00002-of-00003.gguf');
  });

  it('is refused where one part stands in for another, so that nothing is counted twice', async () => {
    const paths = await parts('round', [part(0, 2), part(1, 2)]);
    await rm(paths[1] ?? '');
    await symlink(paths[0] ?? '', paths[1] ?? '');
    expect(await messageFor(paths[0] ?? '')).toMatch(/says that it is part 1 of 2, not part 2/);
  });

  it('is refused where its parts have a tensor twice, or not all of them', async () => {
    const twice = await parts('twice', [part(0, 2), { ...part(1, 2), tensors: part(0, 2).tensors }]);
    expect(await messageFor(twice[0] ?? '')).toMatch(/have a tensor twice/);
    const first = part(0, 2);
    const metadata = { ...first.metadata, 'split.tensors.count': 3 };
    const fewer = await parts('fewer', [{ ...first, metadata }, part(1, 2)]);
    expect(await messageFor(fewer[0] ?? '')).toMatch(/have 3 tensors, and they have 2/);
  });

  it('is refused where it says that it has parts and its name does not', async () => {
    const path = await writeGguf(join(folder, 'renamed.gguf'), part(0, 4));
    expect(await messageFor(path)).toMatch(/one of 4 parts/);
  });
});

describe('a file that can not be used', () => {
  it('is cut off at any place of its header', async () => {
    const bytes = whole(llama());
    for (let length = 1; length < bytes.length - 32; length += 613)
      expect(await messageFor(await fileOf(bytes.subarray(0, length), 'cut.gguf'))).toMatch(/cut off|GGUF/);
  });

  it('is cut off in its weights', async () => {
    const path = await writeGguf(join(folder, 'half.gguf'), llama());
    await truncate(path, 1_000_000);
    expect(await messageFor(path)).toMatch(/cut off: its weights end at \d+ bytes and it has 1000000/);
  });

  it('begins with something else', async () => {
    expect(await messageFor(await fileOf(Buffer.from('#!/bin/sh\necho hello, this is no model\n')))).toMatch(
      /does not begin with GGUF/,
    );
  });

  it.each([
    [1, /version 1/],
    [4, /version 4/],
    [0x0300_0000, /big-endian/],
  ])('is of version %i', async (version, wanted) => {
    const bytes = whole(llama());
    bytes.writeUInt32LE(version, 4);
    expect(await messageFor(await fileOf(bytes))).toMatch(wanted);
  });

  it.each([2n ** 63n, 2n ** 64n - 1n, 10n ** 7n])('says that it has %i tensors or keys', async (count) => {
    expect(await messageFor(await fileOf(patched(8, count)))).toMatch(/tensors, which can not be/);
    expect(await messageFor(await fileOf(patched(16, count)))).toMatch(/keys, which can not be/);
  });

  it.each([2n ** 63n, 2n ** 40n, 2n ** 24n])('has a list of %i elements', async (count) => {
    const bytes = whole(llama());
    const at = bytes.indexOf('tokenizer.ggml.tokens') + 'tokenizer.ggml.tokens'.length + 8;
    bytes.writeBigUInt64LE(count, at);
    expect(await messageFor(await fileOf(bytes))).toMatch(/can not be|cut off/);
  });

  it('has a text longer than the file', async () => {
    const bytes = whole(llama());
    bytes.writeBigUInt64LE(
      2n ** 63n,
      bytes.indexOf('tokenizer.ggml.model') + 'tokenizer.ggml.model'.length + 4,
    );
    expect(await messageFor(await fileOf(bytes))).toMatch(/cut off/);
  });

  it('has a tensor larger than any number', async () => {
    const bytes = whole(llama());
    const at = bytes.indexOf('token_embd.weight') + 'token_embd.weight'.length + 4;
    bytes.writeBigUInt64LE(2n ** 32n, at);
    bytes.writeBigUInt64LE(2n ** 32n, at + 8);
    expect(await messageFor(await fileOf(bytes))).toMatch(/damaged|usable/);
  });

  it('has a tensor with a name longer than any', async () => {
    const spec = llama();
    const bytes = whole({ ...spec, tensors: [{ name: 'x'.repeat(2_000), shape: [8] }, ...spec.tensors] });
    expect(await messageFor(await fileOf(bytes))).toContain('a name of 2000 bytes');
  });

  it('names a tensor or a key twice, which no server loads', async () => {
    const spec = llama();
    const [first] = spec.tensors;
    if (first === undefined) throw new Error('The model has no tensors.');
    const twice = whole({ ...spec, tensors: [...spec.tensors, first] });
    expect(await messageFor(await fileOf(twice))).toContain('token_embd.weight twice');
    const bytes = whole({ ...spec, metadata: { ...spec.metadata, 'llama.block_counT': 4 } });
    bytes.write('t', bytes.indexOf('block_counT') + 'block_coun'.length);
    expect(await messageFor(await fileOf(bytes))).toContain('llama.block_count twice');
  });

  it('has lists within lists', async () => {
    const bytes = whole(llama());
    bytes.writeUInt32LE(9, bytes.indexOf('tokenizer.ggml.scores') + 'tokenizer.ggml.scores'.length + 4);
    expect(await messageFor(await fileOf(bytes))).toMatch(/unknown type 9/);
  });

  it('is empty', async () => {
    expect(await messageFor(await fileOf(Buffer.alloc(0)))).toMatch(/is empty/);
  });

  it('is a folder', async () => {
    await mkdir(join(folder, 'folder.gguf'));
    expect(await messageFor(join(folder, 'folder.gguf'))).toMatch(/is a folder/);
  });

  it('is a pipe: nobody is waited for', async () => {
    const path = join(folder, 'pipe.gguf');
    execFileSync('mkfifo', [path]);
    expect(await messageFor(path)).toMatch(/is a pipe/);
  });

  it('is not there, or its links lead round', async () => {
    expect(await messageFor(join(folder, 'none.gguf'))).toMatch(/no such file/);
    await symlink('loop-b.gguf', join(folder, 'loop-a.gguf'));
    await symlink('loop-a.gguf', join(folder, 'loop-b.gguf'));
    expect(await messageFor(join(folder, 'loop-a.gguf'))).toMatch(/circle/);
  });

  it('has any byte changed: it is read or refused with a sentence', async () => {
    const bytes = whole(llama({ ...BASE, layers: 1 }));
    await fc.assert(
      fc.asyncProperty(
        fc.nat(bytes.length - 1),
        fc.uint8Array({ minLength: 1, maxLength: 8 }),
        async (at, noise) => {
          const changed = Buffer.from(bytes);
          changed.set(noise.subarray(0, changed.length - at), at);
          const read = await readHeader(await fileOf(changed, 'noise.gguf'));
          if (!read.ok) expect(read.error.message).toMatch(/^[^\n]+\.$/);
        },
      ),
      { numRuns: 300 },
    );
  });
});
