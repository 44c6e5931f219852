import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { llama } from '../../build/models/synthetic-architectures.ts';
import { qwen35 } from '../../build/models/synthetic-state-models.ts';
import { ggufHeader, writeGguf } from '../support/gguf-writer.ts';
import { landlord } from '../support/landlord.ts';

let folder = '';
let model = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-estimate-'));
  model = await writeGguf(join(folder, 'small.gguf'), llama());
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const estimate = (...args: readonly string[]) => landlord(['estimate', ...args, '--state-dir', folder]);
const parts = async (...args: readonly string[]): Promise<Record<string, number>> => {
  const ran = await estimate(model, '--quick', '--json', '--device', 'cuda', ...args);
  expect(ran.code).toBe(0);
  return JSON.parse(ran.out);
};

describe('landlord estimate', () => {
  it('shows a person the parts and their sum', async () => {
    const hybrid = await writeGguf(join(folder, 'hybrid.gguf'), qwen35());
    const { code, out } = await estimate(hybrid, '--ctx', '4096');
    expect(code).toBe(0);
    expect(out).toContain('qwen35, 8 layers, 2 of them with a cache, 4096 tokens of context');
    for (const part of ['weights', 'keys and values', 'recurrent state', 'compute buffers', 'together'])
      expect(out).toMatch(new RegExp(`^ +${part} +[\\d.]+ [MG]B$`, 'm'));
  });

  it('finds a download by its repository, with its projector, and a draft by its own', async () => {
    const flat = join(folder, 'maker_Small-GGUF_');
    await writeGguf(`${flat}small-Q8_0.gguf`, llama());
    await writeGguf(`${flat}mmproj-F16.gguf`, llama());
    const named = async (...rest: readonly string[]) => {
      const args = ['estimate', 'maker/Small-GGUF:Q8_0', '--quick', '--json', '--device', 'cuda', ...rest];
      return await landlord(args, { LLAMA_CACHE: folder });
    };
    const [whole, plain] = [await named(), await named('--', '--no-mmproj')];
    expect([whole.code, plain.code]).toEqual([0, 0]);
    const [weights, alone] = [whole, plain].map(({ out }) => JSON.parse(out).weightsBytes);
    expect(weights).toBeGreaterThan(alone);
    const drafted = await named('--', '--no-mmproj', '-hfd', 'maker/Small-GGUF');
    expect(JSON.parse(drafted.out).weightsBytes).toBeGreaterThan(alone);
    expect(await named('--', '-hfd', 'maker/other')).toMatchObject({
      code: 65,
      err: expect.stringContaining('maker/other is no repository that llama-server has downloaded'),
    });
    const other = await landlord(['estimate', 'maker/Small-GGUF:Q4_0'], { LLAMA_CACHE: folder });
    expect(other).toMatchObject({ code: 65, err: expect.stringContaining('is no file, nor a rep') });
  });

  it('gives a program the parts in bytes', async () => {
    const footprint = await parts('--ctx', '4096');
    expect(Object.keys(footprint)).toEqual([
      'weightsBytes',
      'kvBytes',
      'recurrentBytes',
      'computeBytes',
      'overheadBytes',
      'totalBytes',
      'layers',
      'kvLayers',
      'contextTokens',
      'notes',
    ]);
    expect(footprint).toMatchObject({
      kvBytes: 4 * 4096 * 128 * 2,
      layers: 4,
      kvLayers: 4,
      contextTokens: 4096,
    });
  });

  it('takes the flags as llama-server does', async () => {
    const plain = await parts('--ctx', '4096');
    expect((await parts('--ctx', '4000')).contextTokens).toBe(4096);
    expect((await parts()).contextTokens).toBe(8192);
    expect((await parts('--ctx', '0')).contextTokens).toBe(8192);
    expect((await parts('--ctx', '3000', '--parallel', '3')).contextTokens).toBe(3072);
    expect((await parts('--ctx', '2600', '--parallel', '3', '--kv-unified')).contextTokens).toBe(2816);
    const packed = await parts('--ctx', '4096', '--cache-type-k', 'q8_0', '--cache-type-v', 'q4_0');
    expect(packed.kvBytes).toBe(((plain.kvBytes ?? 0) * (34 + 18)) / 128);
    expect((await parts('--ctx', '4096', '--gpu-layers', '3')).kvBytes).toBe((plain.kvBytes ?? 0) / 2);
    expect((await parts('--ctx', '4096', '--ubatch', '256')).computeBytes).toBeLessThan(
      plain.computeBytes ?? 0,
    );
    expect((await parts('--ctx', '4096', '--flash-attn', 'off')).computeBytes).toBeGreaterThan(
      2 * (plain.computeBytes ?? 0),
    );
    expect((await parts('--ctx', '4096', '--mmproj', model)).weightsBytes).toBeGreaterThan(
      plain.weightsBytes ?? 0,
    );
  });

  it('takes any flag of llama-server after --, and its own before it', async () => {
    const plain = await parts('--ctx', '4096');
    const host = await parts('--ctx', '4096', '--', '-ot', '.*=CPU', '-nkvo');
    expect(host).toMatchObject({ weightsBytes: 0, kvBytes: 0 });
    expect((await parts('--', '-c', '4096', '-ctk', 'q8_0')).kvBytes).toBe(((plain.kvBytes ?? 0) * 98) / 128);
    expect((await parts('--ctx', '2048', '--', '-c', '4096')).contextTokens).toBe(2048);
    expect((await parts('--gpu-layers', 'all', '--', '-ngl', '0', '-c', '4096')).kvBytes).toBe(plain.kvBytes);
    const drafting = await parts('--ctx', '4096', '--', '-md', model);
    expect(drafting.kvBytes).toBe(2 * (plain.kvBytes ?? 0));
    expect((await estimate(model, '--', '-md', join(folder, 'none.gguf'))).code).toBe(65);
    expect((await estimate('--', '-c', '4096')).code).toBe(64);
    expect(await estimate(model, '-c', '4096')).toMatchObject({
      code: 64,
      err: expect.stringContaining("Unknown option '-c'. Flags as llama-server has them follow --."),
    });
  });

  it('asks llama.cpp itself, and says whether it could', async () => {
    const checked = await estimate(model, '--ctx', '4096');
    expect(checked.code).toBe(0);
    expect(checked.out).toMatch(/^llama\.cpp itself \(node-llama-cpp [\d.]+, .*comes to the same/m);
    const unheard = { ...llama(), architecture: 'unheard-of' };
    const alone = await estimate(await writeGguf(join(folder, 'unheard.gguf'), unheard));
    expect(alone.code).toBe(0);
    expect(alone.out).toMatch(/^By arithmetic alone\. llama\.cpp \(.*\) can not open it: [^\n]+\.$/m);
    expect((await estimate(model, '--quick')).out).not.toContain('arithmetic alone');
  });

  it('--fit says what fits into what is free now', async () => {
    const { code, out } = await estimate(model, '--fit', '--quick');
    expect(code).toBe(0);
    expect(out).toMatch(/^Fits into [\d.]+ GB of .*: all layers with 8192 tokens of context/m);
    const json = JSON.parse((await estimate(model, '--fit', '--quick', '--json')).out);
    expect(json.fit).toMatchObject({ kind: 'context', contextTokens: 8192 });
    expect(json.fit.roomBytes).toBeGreaterThan(json.totalBytes);
    // The same load has one figure, whoever has counted it.
    const checked = JSON.parse((await estimate(model, '--fit', '--json')).out);
    expect(checked.totalBytes).not.toBe(json.totalBytes);
    expect(checked.fit.footprint.totalBytes).toBe(checked.totalBytes);
  });

  it('answers 65 and one sentence for a file that can not be used', async () => {
    const cut = await writeGguf(join(folder, 'cut.gguf'), llama());
    await truncate(cut, 3_000);
    await writeFile(join(folder, 'other.gguf'), 'GGML, long ago\n');
    const projector = {
      architecture: 'clip',
      tokens: null,
      metadata: {},
      tensors: [{ name: 'mm.0.weight', shape: [8] }],
    };
    const projectorPath = await writeGguf(join(folder, 'projector.gguf'), projector);
    const counts = ggufHeader(llama());
    counts.writeBigUInt64LE(2n ** 63n, 8);
    await writeFile(join(folder, 'counts.gguf'), counts);
    for (const version of [1, 2]) {
      const old = ggufHeader(llama());
      old.writeUInt32LE(version, 4);
      await writeFile(join(folder, `version-${version}.gguf`), old);
    }
    await writeFile(join(folder, 'empty.gguf'), '');
    execFileSync('mkfifo', [join(folder, 'pipe.gguf')]);
    await symlink('ring-00002-of-00002.gguf', join(folder, 'ring-00001-of-00002.gguf'));
    await symlink('ring-00001-of-00002.gguf', join(folder, 'ring-00002-of-00002.gguf'));
    const names = [
      'other',
      'none',
      'counts',
      'version-1',
      'version-2',
      'empty',
      'pipe',
      'ring-00001-of-00002',
    ];
    for (const path of [cut, projectorPath, folder, ...names.map((name) => join(folder, `${name}.gguf`))]) {
      const ran = await estimate(path);
      expect(ran.code).toBe(65);
      expect(ran.out).toBe('');
      expect(ran.err).toMatch(/^landlord estimate: [^\n]+\.\n$/);
    }
    expect((await estimate(model, '--mmproj', cut)).code).toBe(65);
  });

  it.each([
    [['--ctx', 'many'], /--ctx takes a whole number/],
    [['--parallel', '0'], /--parallel takes a whole number from 1/],
    [['--cache-type-v', 'q9'], /q9 is no cache type/],
    [['--cache-type-k', 'q4_k'], /q4_k is no cache type/],
    [['other.gguf'], /one argument too many/],
    [['--flash-attn', 'maybe'], /on, off or auto/],
    [['--device', 'npu'], /cuda, hip/],
  ])('%j is a usage error', async (args, message) => {
    const ran = await estimate(model, ...args);
    expect(ran.code).toBe(64);
    expect(ran.err).toMatch(message);
  });
});
