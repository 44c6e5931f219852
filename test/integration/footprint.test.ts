import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { footprintOfLoad } from '../../electron/core/ledger/footprint/footprint-of-load.ts';
import { type GgufSpec, writeGguf } from '../support/gguf-writer.ts';
import { loggedBuffers } from '../support/logged-buffers.ts';
import {
  BASE,
  deepseek2,
  falconH1,
  gemma3,
  llama,
  qwen3,
  qwen3moe,
  qwen35,
} from '../support/synthetic-architectures.ts';
import { SMALL_MODELS } from '../support/synthetic-models.ts';

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
  ['-c', '5000', '-np', '6', '-kvu', '--swa-full', '-ctk', 'q8_0', '-ctv', 'q8_0'],
  ['-c', '2048', '-np', '1', '-fa', 'off'],
];

/** Packed, so that a file of real widths is small enough to be mapped at once. */
const Q6_K = 14;
const packed = (spec: GgufSpec): GgufSpec => ({
  ...spec,
  tensors: spec.tensors.map((tensor) =>
    tensor.shape.length > 1 && (tensor.shape[0] ?? 0) % 256 === 0 && !/norm|ssm_|gate_inp/.test(tensor.name)
      ? { ...tensor, type: Q6_K }
      : tensor,
  ),
});
const two = { ...BASE, layers: 2, context: 131_072 };
const REAL: Readonly<Record<string, GgufSpec>> = {
  'Llama 3.1 8B': llama({
    ...two,
    width: 4096,
    heads: 32,
    kvHeads: 8,
    headLength: 128,
    feedForward: 14_336,
    tokens: 128_256,
  }),
  'Qwen3 14B': qwen3({ ...two, width: 5120, heads: 40, kvHeads: 8, headLength: 128, feedForward: 17_408 }),
  'Qwen3 30B A3B': qwen3moe(
    { ...two, width: 2048, heads: 32, kvHeads: 4, headLength: 128, feedForward: 6144 },
    64,
    8,
    768,
  ),
  'Gemma 3 12B': gemma3(
    { ...two, layers: 6, width: 3840, heads: 16, kvHeads: 8, headLength: 256, feedForward: 15_360 },
    1024,
  ),
  'Qwen3.5 9B': qwen35(
    { ...two, layers: 4, width: 4096, heads: 16, kvHeads: 4, headLength: 256, feedForward: 12_288 },
    { kernel: 4, inner: 4096, size: 128, ranks: 32, groups: 16 },
  ),
  'Falcon-H1 1.5B': falconH1(
    { ...two, width: 2048, heads: 16, kvHeads: 2, headLength: 128, feedForward: 4096 },
    { kernel: 4, inner: 3072, size: 256, ranks: 48, groups: 1 },
  ),
  'DeepSeek V2 Lite': deepseek2(
    { ...two, width: 2048, heads: 16, feedForward: 10_944 },
    { rank: 512, rotated: 64, plain: 128, value: 128 },
  ),
};

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
        Math.max(1, logged.computeMib * 0.15),
      );
    },
  );
});

describe.each(Object.entries(REAL))('of the widths of %s', (name, spec) => {
  it('has compute buffers within a tenth, or 32 MiB, of those logged', async () => {
    const { logged, ours } = await compare(name, packed(spec), ['-c', '16384', '-np', '1']);
    expect(logged.computeMib).toBeGreaterThan(0);
    expect(Math.abs(ours.kvBytes / MIB - logged.kvMib)).toBeLessThan(0.02);
    expect(Math.abs(ours.weightsBytes / MIB - logged.weightsMib)).toBeLessThan(logged.weightsMib * 0.005);
    expect(Math.abs(ours.computeBytes / MIB - logged.computeMib)).toBeLessThan(
      Math.max(32, logged.computeMib / 10),
    );
  });
});
