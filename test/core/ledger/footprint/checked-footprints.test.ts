import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CheckedOptions,
  checkedFootprints,
} from '../../../../electron/core/ledger/footprint/checked-footprints.ts';
import type { Footprint } from '../../../../electron/core/ledger/footprint/estimate.ts';
import type { FootprintSource } from '../../../../electron/core/ledger/footprint/footprint-source.ts';
import type { LoadRequest } from '../../../../electron/core/ledger/footprint/load-request.ts';
import { fail, ok } from '../../../../shared/errors.ts';

let folder = '';
let file = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-checked-'));
  file = join(folder, 'm.gguf');
  await writeFile(file, 'GGUF');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const footprint = (totalBytes: number): Footprint => ({
  weightsBytes: totalBytes,
  kvBytes: 0,
  recurrentBytes: 0,
  computeBytes: 0,
  overheadBytes: 0,
  totalBytes,
  layers: 1,
  kvLayers: 1,
  contextTokens: 256,
  notes: [],
});

/** Answers with `bytes`, or refuses with null; counts its questions. */
function answering(bytes: number | null): FootprintSource & { asked: number } {
  return {
    asked: 0,
    async footprintOf() {
      this.asked += 1;
      return bytes === null ? fail('bad_input', 'Not this one.') : ok(footprint(bytes));
    },
  };
}

const load = (...args: string[]): LoadRequest => ({ modelPath: file, args, kind: 'cuda', build: null });

async function checking(reference: FootprintSource, more: Partial<CheckedOptions> = {}) {
  const saved: unknown[] = [];
  const better: LoadRequest[] = [];
  const ours = answering(100);
  const source = await checkedFootprints({
    ours,
    reference,
    version: '1',
    afterMs: 0,
    store: { load: async () => saved.at(-1), save: (value) => void saved.push(structuredClone(value)) },
    onBetter: (request) => void better.push(request),
    ...more,
  });
  const bytes = async (request = load()): Promise<number> => {
    const answer = await source.footprintOf(request);
    return answer.ok ? answer.value.totalBytes : Number.NaN;
  };
  const until = async (holds: () => boolean): Promise<void> => {
    for (let tries = 0; tries < 500 && !holds(); tries += 1)
      await new Promise((resolve) => setTimeout(resolve, 10));
    expect(holds()).toBe(true);
  };
  return { bytes, saved, better, ours, until };
}

describe('a footprint that llama.cpp checks', () => {
  it('is ours at once, and llama.cpp’s from when it is there; whoever asked is told', async () => {
    const reference = answering(120);
    const { bytes, better, ours, until } = await checking(reference);
    expect(await bytes()).toBe(100);
    await until(() => better.length === 1);
    expect(better).toEqual([load()]);
    expect(await bytes()).toBe(120);
    expect(ours.asked).toBe(1);
    expect(reference.asked).toBe(1);
  });

  it('is the same for flags that say nothing about memory', async () => {
    const { bytes, better, until } = await checking(answering(120));
    await bytes(load('-c', '4096', '--port', '4001'));
    await until(() => better.length === 1);
    expect(await bytes(load('--port', '4002', '-c', '4096'))).toBe(120);
    expect(await bytes(load('-c', '8192'))).toBe(100);
  });

  it('stays ours where llama.cpp can not open it, and is not asked for again', async () => {
    const reference = answering(null);
    const { bytes, better, saved, until } = await checking(reference);
    expect(await bytes()).toBe(100);
    await until(() => reference.asked === 1);
    expect(await bytes()).toBe(100);
    expect(await bytes()).toBe(100);
    expect([reference.asked, better.length, saved.length]).toEqual([1, 0, 0]);
  });

  it('is dropped where the file was replaced while it was read', async () => {
    let done = false;
    const replaced = {
      async footprintOf() {
        await utimes(file, 2, 2);
        done = true;
        return ok(footprint(120));
      },
    };
    const { bytes, saved, until } = await checking(replaced);
    await bytes();
    await until(() => done);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(saved).toEqual([]);
  });

  it('is news only where it differs', async () => {
    const { bytes, better, saved, until } = await checking(answering(100));
    await bytes();
    await until(() => saved.length === 1);
    expect(better).toEqual([]);
  });

  it('is kept over a restart, for this version and as long as the file is the same', async () => {
    const first = await checking(answering(120));
    await first.bytes();
    await first.until(() => first.saved.length === 1);
    const again = (version: string) =>
      checking(answering(null), {
        version,
        store: { load: async () => first.saved[0], save: () => undefined },
      });
    expect(await (await again('1')).bytes()).toBe(120);
    expect(await (await again('2')).bytes()).toBe(100);
    await utimes(file, 1, 1);
    expect(await (await again('1')).bytes()).toBe(100);
  });

  it('that was kept in a broken file is asked for anew', async () => {
    const store = {
      load: async () => [{ key: 1 }, { key: 'x', footprint: { totalBytes: -1 } }, null],
      save: () => undefined,
    };
    expect(await (await checking(answering(null), { store })).bytes()).toBe(100);
  });
});
