import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  findHubFiles,
  hubFileArgs,
  hubFolders,
  hubModelIn,
} from '../../../../electron/core/ledger/footprint/hub-files.ts';

const COMMIT = 'a1'.repeat(20);
let home = '';
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'landlord-hub-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const write = async (path: string, text = 'GGUF'): Promise<void> => {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
};
const hub = (...parts: string[]): string =>
  join(home, '.cache', 'huggingface', 'hub', 'models--maker--Big-GGUF', ...parts);
const snapshot = (file: string): string => hub('snapshots', COMMIT, file);

async function downloaded(...files: string[]): Promise<void> {
  await write(hub('refs', 'main'), `${COMMIT}\n`);
  for (const file of files) await write(snapshot(file));
}

async function found(...args: string[]) {
  const model = hubModelIn(['llama-server', ...args]);
  return model === null ? null : await findHubFiles(model, hubFolders({}, home));
}

describe('a model that is named by its repository', () => {
  it('is the file with its tag, whatever other files there are', async () => {
    await downloaded('Big-Q8_0.gguf', 'Big-UD-Q4_K_XL.gguf', 'imatrix.gguf', 'mtp-Big-Q4_K_M.gguf');
    expect(await found('-hf', 'maker/Big-GGUF:UD-Q4_K_XL')).toEqual({
      modelPath: snapshot('Big-UD-Q4_K_XL.gguf'),
      projectorPath: null,
    });
    expect((await found('--hf-repo', 'maker/Big-GGUF'))?.modelPath).toBe(snapshot('Big-Q8_0.gguf'));
    expect((await found('--hf-repo=maker/Big-GGUF:q8_0'))?.modelPath).toBe(snapshot('Big-Q8_0.gguf'));
    expect(await found('-hf', 'maker/Big-GGUF:Q5_K_M')).toBeNull();
  });

  it('may lie in parts, in a folder, behind links', async () => {
    await downloaded();
    await write(hub('blobs', 'x'));
    const parts = [1, 2].map((part) => snapshot(`Q4_K_M/Big-Q4_K_M-0000${part}-of-00002.gguf`));
    await mkdir(dirname(parts[0] ?? ''), { recursive: true });
    await symlink(hub('blobs', 'x'), parts[0] ?? '');
    expect(await found('-hf', 'maker/Big-GGUF:Q4_K_M')).toBeNull();
    await symlink(hub('blobs', 'x'), parts[1] ?? '');
    expect((await found('-hf', 'maker/Big-GGUF:Q4_K_M'))?.modelPath).toBe(parts[0]);
  });

  it('has the projector that is nearest to it, unless it is told not to', async () => {
    await downloaded('Big-Q4_K_M.gguf', 'mmproj-F32.gguf', 'mmproj-BF16.gguf');
    const args = ['-hf', 'maker/Big-GGUF:Q4_K_M'];
    expect((await found(...args))?.projectorPath).toBe(snapshot('mmproj-BF16.gguf'));
    expect(await hubFileArgs(args, hubFolders({}, home))).toEqual([
      ...['--model', snapshot('Big-Q4_K_M.gguf')],
      ...['--mmproj', snapshot('mmproj-BF16.gguf')],
    ]);
    for (const without of [['--no-mmproj'], ['--no-mmproj-auto'], ['--mmproj', '/own.gguf']])
      expect((await found(...args, ...without))?.projectorPath).toBeNull();
  });

  it('may be a draft beside a file, or beside another', async () => {
    await downloaded('Big-Q4_K_M.gguf', 'Big-Q8_0.gguf', 'mmproj-F32.gguf');
    const draft = ['--spec-draft-model', snapshot('Big-Q8_0.gguf')];
    const flagsFor = (...args: string[]) => hubFileArgs(args, hubFolders({}, home));
    for (const flag of ['-hfd', '--spec-draft-hf', '--hf-repo-draft'])
      expect(await flagsFor('-m', '/m.gguf', flag, 'maker/Big-GGUF:Q8_0')).toEqual(draft);
    expect(await flagsFor('-hf', 'maker/Big-GGUF', '--no-mmproj', '-hfd', 'maker/Big-GGUF:Q8_0')).toEqual([
      ...['--model', snapshot('Big-Q4_K_M.gguf')],
      ...draft,
    ]);
    expect(await flagsFor('-m', '/m.gguf', '-md', '/d.gguf', '-hfd', 'maker/Big-GGUF')).toEqual([]);
    expect(await flagsFor('-m', '/m.gguf', '-hfd', 'maker/none')).toEqual([]);
  });

  it('is found by its file, and in the folder of before March 2026', async () => {
    const old = (file: string): string => join(home, '.cache', 'llama.cpp', `maker_Big-GGUF_${file}`);
    await write(old('Big-Q4_K_M.gguf'));
    await write(old('other.gguf'));
    await write(join(home, '.cache', 'llama.cpp', 'maker_Bigger_Q4_K_M.gguf'));
    expect((await found('-hf', 'maker/Big-GGUF'))?.modelPath).toBe(old('Big-Q4_K_M.gguf'));
    expect((await found('-hf', 'maker/Big-GGUF', '-hff', 'other.gguf'))?.modelPath).toBe(old('other.gguf'));
  });

  it('is looked for where the environment says first', async () => {
    await downloaded('Big-Q4_K_M.gguf');
    const own = join(home, 'own');
    const base = join(own, 'hub', 'models--maker--Big-GGUF');
    await write(join(base, 'refs', 'main'), COMMIT);
    await write(join(base, 'snapshots', COMMIT, 'Big-Q4_K_M.gguf'));
    const model = hubModelIn(['-hf', 'maker/Big-GGUF']);
    if (model === null) throw new Error('no model');
    const files = await findHubFiles(model, hubFolders({ HF_HOME: own }, home));
    expect(files?.modelPath).toBe(join(base, 'snapshots', COMMIT, 'Big-Q4_K_M.gguf'));
  });

  it('is none where a file is named, nor where the name is no repository’s', () => {
    expect(hubModelIn(['-hf', 'maker/m', '-m', '/x.gguf'])).toBeNull();
    for (const name of ['m', '../../etc/x', 'a/b/c', 'maker/m:../x', ''])
      expect(hubModelIn(['-hf', name])).toBeNull();
  });
});
