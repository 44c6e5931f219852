import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { landlord } from '../support/landlord.ts';

describe('landlord engine add', () => {
  let folder = '';
  let config = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'landlord-engine-add-'));
    config = join(folder, 'config', 'config.yaml');
    await writeFile(join(folder, 'smol.gguf'), 'GGUF and more');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));
  const add = (...args: readonly string[]) =>
    landlord(['engine', ...args, '--config', config, '--state-dir', join(folder, 'state')]);

  it('writes a model into the settings, and says how to ask for it', async () => {
    const { code, out } = await add('add', 'smol', join(folder, 'smol.gguf'));
    expect(code).toBe(0);
    expect(out).toContain('embedded/smol');
    const text = await readFile(config, 'utf8');
    expect(text).toContain(`smol: ${join(folder, 'smol.gguf')}`);
    const again = await add('add', 'smol', join(folder, 'smol.gguf'));
    expect(again.code).toBe(0);
    expect(await readFile(config, 'utf8')).toBe(text);
  });

  it('takes no file that is no model, and changes nothing then', async () => {
    await writeFile(join(folder, 'other.txt'), 'no model');
    for (const file of ['other.txt', 'nowhere.gguf']) {
      const { code, err } = await add('add', 'smol', join(folder, file));
      expect(code).toBe(65);
      expect(err).toContain(file);
    }
    await expect(readFile(config, 'utf8')).rejects.toThrow('ENOENT');
    expect((await add('drop', 'smol', join(folder, 'smol.gguf'))).code).toBe(64);
    expect((await add('add', 'a/b', join(folder, 'smol.gguf'))).code).toBe(69);
  });
});
