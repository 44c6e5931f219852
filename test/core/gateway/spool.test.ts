import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Spool } from '../../../electron/core/gateway/spool.ts';
import { tempFolder } from '../../support/gate.ts';

it('the beginning of a long body lies in a file without a name, and is read any number of times', async () => {
  using folder = tempFolder('spool');
  await using spool = await Spool.open([join(folder.path, 'not-there'), folder.path]);
  if (spool === null) throw new Error('there is a place for it');
  // A prompt that is nobody else's to read, and that a kill must not leave behind.
  expect(await readdir(folder.path)).toEqual([]);
  await spool.append([Buffer.from('hello '), Buffer.alloc(100_000, 'x'), Buffer.from(' end')]);
  expect(spool.sizeBytes).toBe(100_010);
  for (let time = 0; time < 2; time += 1) {
    let text = '';
    for await (const part of spool.read(3, spool.sizeBytes)) text += part.toString();
    expect(text).toBe(`lo ${'x'.repeat(100_000)} end`);
  }
});

it('is none where there is no place for it', async () => {
  using folder = tempFolder('spool');
  await writeFile(join(folder.path, 'file'), '');
  expect(await Spool.open([join(folder.path, 'file'), '/proc'])).toBeNull();
});
