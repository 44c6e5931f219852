import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ensureSyntheticGguf,
  LARGE_SHAPE,
  syntheticHeader,
  syntheticWeightsBytes,
  TINY_SHAPE,
} from '../../../electron/core/demo/synthetic-gguf.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-gguf-'));
});
afterAll(() => rm(folder, { recursive: true }));

const hash = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex');

describe('synthetic models', () => {
  it('have the magic, the version and as many tensors as layers ask for', () => {
    const header = syntheticHeader(TINY_SHAPE);
    expect(header.subarray(0, 4).toString()).toBe('GGUF');
    expect(header.readUInt32LE(4)).toBe(3);
    expect(header.readBigUInt64LE(8)).toBe(BigInt(9 * TINY_SHAPE.layers + 3));
    expect(header.length % 32).toBe(0);
  });

  it('weigh what llama.cpp reports for them: 181.27 MiB of 12 layers of 512, 0.62 of 2 of 64', () => {
    expect(syntheticWeightsBytes(LARGE_SHAPE) / 2 ** 20).toBeCloseTo(181.27, 2);
    expect(syntheticWeightsBytes(TINY_SHAPE)).toBe(652_544);
  });

  it('are whole, the same for the same seed, and others for another', async () => {
    const path = await ensureSyntheticGguf(folder, TINY_SHAPE);
    expect((await stat(path)).size).toBe(
      syntheticHeader(TINY_SHAPE).length + syntheticWeightsBytes(TINY_SHAPE),
    );
    const first = await hash(path);
    await rm(path);
    expect(await hash(await ensureSyntheticGguf(folder, TINY_SHAPE))).toBe(first);
    expect(await hash(await ensureSyntheticGguf(folder, { ...TINY_SHAPE, seed: 9 }))).not.toBe(first);
  });

  it('are written anew when a run was cut in the middle', async () => {
    const path = await ensureSyntheticGguf(folder, TINY_SHAPE);
    const whole = await hash(path);
    await truncate(path, 1_000);
    expect(await hash(await ensureSyntheticGguf(folder, TINY_SHAPE))).toBe(whole);
  });
});
