import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { llama } from '../../build/models/synthetic-architectures.ts';
import { SMALL_MODELS, WIDE_MODELS } from '../../build/models/synthetic-models.ts';
import { footprintOfLoad } from '../../electron/core/ledger/footprint/footprint-of-load.ts';
import { type GgufSpec, writeGguf } from '../support/gguf-writer.ts';
import { loggedBuffers } from '../support/logged-buffers.ts';

/**
 * Our figures beside those a real llama-server logs. Its weights are holes of zeros in small files: it
 * loads them and reserves all its buffers, and computes nothing.
 */
const MIB = 1_048_576;
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-footprint-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const WAYS: readonly (readonly string[])[] = [
  ['-c', '4096'],
  ['-c', '3000', '-np', '3', '-ub', '128'],
  ['-c', '769', '-np', '3'],
  ['-c', '5000', '-np', '6', '-kvu', '--swa-full', '-ctk', 'q8_0', '-ctv', 'q8_0'],
  ['-c', '2048', '-np', '1', '-fa', 'off'],
];

async function compare(name: string, spec: GgufSpec, args: readonly string[]) {
  const path = await writeGguf(join(folder, `${name.replaceAll(/\W+/g, '-')}.gguf`), spec);
  const logged = await loggedBuffers(path, args);
  const ours = await footprintOfLoad({ modelPath: path, args, kind: 'cpu', build: logged.build });
  if (!ours.ok) throw new Error(ours.error.message);
  return { logged, ours: ours.value };
}

describe.each(Object.entries(SMALL_MODELS))('%s', (name, spec) => {
  it.each(WAYS.map((args) => [args.join(' '), args] as const))(
    'loaded with %s takes what llama-server logs',
    async (_line, args) => {
      const { logged, ours } = await compare(name, spec, args);
      expect(logged.computeMib).toBeGreaterThan(0);
      expect(ours.weightsBytes / MIB).toBeCloseTo(logged.weightsMib, 1);
      expect(Math.abs(ours.kvBytes / MIB - logged.kvMib)).toBeLessThan(0.02);
      expect(Math.abs(ours.recurrentBytes / MIB - logged.stateMib)).toBeLessThan(0.02);
      expect(Math.abs(ours.computeBytes / MIB - logged.computeMib)).toBeLessThan(
        Math.max(2, logged.computeMib * 0.15),
      );
    },
  );
});

describe.each(Object.entries(WIDE_MODELS))('of the widths of %s', (name, spec) => {
  it('has compute buffers within a tenth, or 32 MiB, of those logged', async () => {
    const { logged, ours } = await compare(name, spec, ['-c', '16384', '-np', '1']);
    expect(logged.computeMib).toBeGreaterThan(0);
    expect(Math.abs(ours.kvBytes / MIB - logged.kvMib)).toBeLessThan(0.02);
    expect(Math.abs(ours.weightsBytes / MIB - logged.weightsMib)).toBeLessThan(logged.weightsMib * 0.005);
    expect(Math.abs(ours.computeBytes / MIB - logged.computeMib)).toBeLessThan(
      Math.max(32, logged.computeMib / 10),
    );
  });
});

describe('slots', () => {
  const named = (models: Readonly<Record<string, GgufSpec>>, name: string): GgufSpec => {
    const spec = models[name];
    if (spec === undefined) throw new Error(`there is no ${name}`);
    return spec;
  };

  it.each([
    '-c 4096 -no-kvu',
    '-c 4096 -no-kvu -np 2',
    '--kv-unified-per-slot 1000',
    '--kv-unified-per-slot 1000 -np 3',
    '--kv-unified-per-slot 1000 -np 3 -kvu',
  ])('share a cache as llama-server has it with %s', async (line) => {
    const { logged, ours } = await compare('gemma3', named(SMALL_MODELS, 'gemma3'), line.split(' '));
    expect(logged.kvMib).toBeGreaterThan(0);
    expect(Math.abs(ours.kvBytes / MIB - logged.kvMib)).toBeLessThan(0.02);
  });

  it.each(Object.keys(WIDE_MODELS).filter((name) => /Falcon|3\.5/.test(name)))(
    'of %s have their states copied twice: compute buffers are within 3 %',
    async (name) => {
      const args = ['-c', '16384', '-np', '32'];
      const { logged, ours } = await compare(name, named(WIDE_MODELS, name), args);
      expect(logged.stateMib).toBeGreaterThan(0);
      expect(Math.abs(ours.computeBytes / MIB - logged.computeMib)).toBeLessThan(logged.computeMib * 0.03);
    },
  );
});

describe('scans', () => {
  it.each(['mamba', 'jamba', 'falcon-h1', 'granitehybrid', 'nemotron_h'])(
    'of %s have compute buffers within 2 %, or 0.5 MiB',
    async (name) => {
      const spec = SMALL_MODELS[name];
      if (spec === undefined) throw new Error(`there is no ${name}`);
      const { logged, ours } = await compare(name, spec, ['-c', '8192', '-np', '1']);
      expect(logged.computeMib).toBeGreaterThan(0);
      expect(Math.abs(ours.computeBytes / MIB - logged.computeMib)).toBeLessThan(
        Math.max(0.5, logged.computeMib * 0.02),
      );
    },
  );
});

describe('files of an older version', () => {
  const ofVersion = async (version: number): Promise<string> => {
    const path = await writeGguf(join(folder, `v${version}.gguf`), llama());
    const file = await open(path, 'r+');
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(version);
    await file.write(bytes, 0, 4, 4);
    await file.close();
    return path;
  };

  it('are loaded where they are version 2, and counted like the newest', async () => {
    const path = await ofVersion(2);
    const logged = await loggedBuffers(path, ['-c', '512']);
    const ours = await footprintOfLoad({
      modelPath: path,
      args: ['-c', '512'],
      kind: 'cpu',
      build: logged.build,
    });
    expect(ours.ok && ours.value.weightsBytes / MIB).toBeCloseTo(logged.weightsMib, 1);
  });

  it('are refused by both where they are version 1', async () => {
    const path = await ofVersion(1);
    await expect(loggedBuffers(path, ['-c', '512'])).rejects.toThrow();
    const ours = await footprintOfLoad({ modelPath: path, args: [], kind: 'cpu', build: null });
    expect(ours.ok).toBe(false);
  });
});
