import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { modelNameOf } from '../../../electron/core/engine/gguf-path.ts';
import { addModel, forgetAgent } from '../../../electron/core/questions/engine-answers.ts';
import { readHere } from '../../../electron/core/settings/config-reader.ts';
import { SettingsFile } from '../../../electron/core/settings/settings-file.ts';
import { resolvePaths } from '../../../electron/core/state-dir/paths.ts';
import { answered, decode, deskBench, MB, register } from '../../support/desk-bench.ts';

describe('a model file of whoever has no server', () => {
  let folder = '';
  let settings: SettingsFile;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'landlord-add-'));
    const paths = resolvePaths({ env: {}, home: folder, cwd: folder, stateDir: join(folder, 'state') });
    settings = new SettingsFile({
      paths,
      home: folder,
      reader: readHere,
      now: Date.now,
      onSettings: () => {},
      onEvent: () => {},
    });
    await writeFile(join(folder, 'Smol LM (2).gguf'), 'GGUF and more');
  });
  afterEach(async () => {
    await settings.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const config = (): Promise<string> => readFile(settings.file, 'utf8');

  it('becomes one of the engine in a config that is not there yet, by its file’s name', async () => {
    const path = join(folder, 'Smol LM (2).gguf');
    const added = await addModel(settings, { name: null, file: path });
    expect(added).toMatchObject({ ok: true, value: { models: ['embedded/smol-lm-2'] } });
    expect(await config()).toContain('kind: embedded');
    expect(await config()).toContain(`smol-lm-2: ${path}`);
    // As pasted from a shell, under a name of one's own; the other stays.
    const again = await addModel(settings, { name: 'mine', file: `  '${path}' ` });
    expect(again).toMatchObject({ ok: true, value: { models: ['embedded/mine'] } });
    expect(await config()).toMatch(/smol-lm-2: [\s\S]*mine: /);
  });

  it('is refused with a reason where it is none, and nothing is written', async () => {
    await writeFile(join(folder, 'note.txt'), 'no model');
    execFileSync('mkfifo', [join(folder, 'pipe.gguf')]);
    const why = async (file: string): Promise<string> => {
      const done = await addModel(settings, { name: null, file });
      return done.ok ? 'added' : done.error.message;
    };
    expect(await why('models/smol.gguf')).toContain('whole path');
    expect(await why(join(folder, 'note.txt'))).toContain('no GGUF file');
    expect(await why(join(folder, 'nowhere.gguf'))).toContain('There is no file');
    expect(await why(folder)).toContain("can't be read");
    // A pipe that nobody writes into would be waited for.
    expect(await why(join(folder, 'pipe.gguf'))).toContain("can't be read");
    await expect(config()).rejects.toThrow('ENOENT');
  });

  it.each([
    ['/models/Qwen3-4B-Q4_K_M.gguf', 'qwen3-4b-q4_k_m'],
    ['/models/.hidden.GGUF', 'hidden'],
    ['/models/模型.gguf', 'model'],
  ])('%s is called %s', (path, name) => {
    expect(modelNameOf(path)).toBe(name);
  });
});

describe('an agent that a person forgets', () => {
  it('is gone with all it held, and says how much that was', async () => {
    await using bench = await deskBench({ capBytes: 1_000 * MB });
    await register(bench.desk, 'smol');
    await answered(decode(bench.desk, 'smol', 4, 'x'));
    const gone = await forgetAgent(bench.desk, { agent: 'smol' });
    expect(gone).toMatchObject({ ok: true, value: { numbers: { releasedBytes: 150 * MB } } });
    expect(bench.desk.list()).toEqual([]);
    expect(await forgetAgent(bench.desk, { agent: 'smol' })).toMatchObject({ error: { code: 'bad_input' } });
  });

  it('is not there where there is no engine', async () => {
    expect(await forgetAgent(null, { agent: 'smol' })).toMatchObject({ error: { code: 'not_supported' } });
  });
});
