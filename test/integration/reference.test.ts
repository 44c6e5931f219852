import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { llama } from '../../build/models/synthetic-architectures.ts';
import { SMALL_MODELS } from '../../build/models/synthetic-models.ts';
import type { Footprint } from '../../electron/core/ledger/footprint/estimate.ts';
import { footprintOfLoad } from '../../electron/core/ledger/footprint/footprint-of-load.ts';
import { referencesInChild } from '../../electron/core/ledger/footprint/reference-source.ts';
import { type GgufSpec, writeGguf } from '../support/gguf-writer.ts';

/** Our arithmetic beside llama.cpp's own, run without memory by node-llama-cpp. */
const MIB = 1_048_576;
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-reference-'));
});
const references = referencesInChild({ nodePath: process.execPath });
afterAll(async () => {
  references.stop();
  await rm(folder, { recursive: true, force: true });
});

const WAYS: readonly (readonly string[])[] = [
  ['-c', '4096'],
  ['-c', '6144', '-np', '3', '-ub', '128'],
  ['-c', '8192', '-np', '2', '-ctk', 'q8_0', '-ctv', 'q8_0', '--swa-full'],
  ['-c', '2048', '-np', '1', '-fa', 'off'],
];

async function both(name: string, spec: GgufSpec, args: readonly string[]) {
  const modelPath = await writeGguf(join(folder, `${name.replaceAll(/\W+/g, '-')}.gguf`), spec);
  const request = { modelPath, args, kind: 'cpu', build: null } as const;
  return { ours: await footprintOfLoad(request), theirs: await references.footprintOf(request) };
}

describe.each(Object.entries(SMALL_MODELS))('%s', (name, spec) => {
  it('has the weights and caches that llama.cpp computes, and compute buffers near to its own', async () => {
    for (const args of WAYS) {
      const { ours, theirs } = await both(name, spec, args);
      if (!ours.ok || !theirs.ok) throw new Error(`${args.join(' ')}: ${JSON.stringify(theirs)}`);
      const mib = ({ weightsBytes, kvBytes, recurrentBytes }: Footprint): readonly number[] =>
        [weightsBytes, kvBytes, recurrentBytes].map((bytes) => bytes / MIB);
      expect(mib(theirs.value)).toEqual(mib(ours.value));
      expect(theirs.value.notes.at(-1)).toMatch(/comes to the same weights and caches/);
      expect(Math.abs(theirs.value.computeBytes - ours.value.computeBytes) / MIB).toBeLessThan(
        Math.max(4, (theirs.value.computeBytes / MIB) * 0.25),
      );
    }
  });
});

describe('what llama.cpp can not open', () => {
  it('is answered with why, and ours stands: an architecture that it does not know', async () => {
    const spec = llama();
    const { ours, theirs } = await both('unheard', { ...spec, architecture: 'unheard-of' }, ['-c', '512']);
    expect(ours.ok).toBe(true);
    expect(theirs).toMatchObject({ ok: false, error: { code: 'bad_input' } });
  });
});
