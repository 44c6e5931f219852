import { chmod, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BASE, llama } from '../../../../build/models/synthetic-architectures.ts';
import { footprintOfLoad } from '../../../../electron/core/ledger/footprint/footprint-of-load.ts';
import { footprintsInChild } from '../../../../electron/core/ledger/footprint/footprint-source.ts';
import { writeGguf } from '../../../support/gguf-writer.ts';

let folder = '';
/** A Node that notes each start of a child. */
let node = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-source-'));
  node = join(folder, 'node');
  await writeFile(node, `#!/bin/sh\necho started >> ${folder}/starts\nexec ${process.execPath} "$@"\n`);
  await chmod(node, 0o755);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const starts = async (): Promise<number> =>
  (await readFile(join(folder, 'starts'), 'utf8').catch(() => '')).split('\n').length - 1;
const loadOf = (modelPath: string, ...args: string[]) =>
  ({ modelPath, args, kind: 'cuda', build: 11_000 }) as const;

describe('footprints read in a child', () => {
  it('are those of the file and its flags', async () => {
    const path = await writeGguf(join(folder, 'a.gguf'), llama());
    const request = loadOf(path, '-c', '4096');
    expect(await footprintsInChild(process.execPath).footprintOf(request)).toEqual(
      await footprintOfLoad(request),
    );
  });

  it('that are asked for at once come from one child after another, each for all that wait', async () => {
    const before = await starts();
    const source = footprintsInChild(node);
    const paths = await Promise.all(
      [1, 2, 3, 4, 5].map((layers) => writeGguf(join(folder, `b${layers}.gguf`), llama({ ...BASE, layers }))),
    );
    const answers = await Promise.all(paths.map((path) => source.footprintOf(loadOf(path))));
    expect(answers.map((answer) => answer.ok && answer.value.layers)).toEqual([1, 2, 3, 4, 5]);
    expect((await starts()) - before).toBeLessThanOrEqual(2);
  });

  it('are kept until the file or the flags change', async () => {
    const source = footprintsInChild(node);
    const path = await writeGguf(join(folder, 'c.gguf'), llama());
    const ask = async (...args: string[]): Promise<number> => {
      const before = await starts();
      await source.footprintOf(loadOf(path, ...args));
      return (await starts()) - before;
    };
    expect(await ask('-c', '512')).toBe(1);
    expect(await ask('-c', '512')).toBe(0);
    expect(await ask('-c', '1024')).toBe(1);
    await utimes(path, 1, 1);
    expect(await ask('-c', '512')).toBe(1);
  });

  it('of a file that can not be used are an error, and tried again when it is there', async () => {
    const source = footprintsInChild(process.execPath);
    const path = join(folder, 'later.gguf');
    expect(await source.footprintOf(loadOf(path))).toMatchObject({ ok: false, error: { code: 'bad_input' } });
    await writeGguf(path, llama());
    expect((await source.footprintOf(loadOf(path))).ok).toBe(true);
  });

  it('are an error where the child can not be run, answers nonsense, or dies', async () => {
    for (const broken of ['/nonexistent/node', '/bin/cat', '/bin/false'])
      expect(await footprintsInChild(broken).footprintOf(loadOf('/m.gguf'))).toMatchObject({
        ok: false,
        error: { code: 'internal' },
      });
  });

  it('count the projector and the draft model that the command line names', async () => {
    const [model, other] = await Promise.all(
      ['d.gguf', 'e.gguf'].map((name) => writeGguf(join(folder, name), llama())),
    );
    const weights = async (...args: string[]): Promise<number> => {
      const answer = await footprintOfLoad(loadOf(model ?? '', ...args));
      return answer.ok ? answer.value.weightsBytes : 0;
    };
    const alone = await weights();
    expect(await weights('--mmproj', other ?? '')).toBeGreaterThan(alone);
    expect(await weights('-md', other ?? '')).toBe(2 * alone);
    expect(await weights('--mmproj', '/none.gguf')).toBe(0);
  });
});
