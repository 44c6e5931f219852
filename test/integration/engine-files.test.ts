import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, symlink, truncate, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI, { BadRequestError } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BASE, llama } from '../../build/models/synthetic-architectures.ts';
import { type AgentsLandlord, startAgents } from '../support/agents-landlord.ts';
import { answered, decode, deskBench, MB, register } from '../support/desk-bench.ts';
import { bert } from '../support/embedding-model.ts';
import { must, say, TALKER_SHAPE, testEngine } from '../support/engine.ts';
import { type EngineLandlord, startEngineLandlord } from '../support/engine-landlord.ts';
import { gguf } from '../support/gguf.ts';
import { writeGguf } from '../support/gguf-writer.ts';
import { until } from '../support/router.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-files-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** One like it, seen under the agent's path from now on. */
async function replace(path: string, seed: number): Promise<void> {
  await copyFile(await gguf({ ...TALKER_SHAPE, seed }), `${path}.new`);
  await rename(`${path}.new`, path);
}

const failure = async (landlord: AgentsLandlord): Promise<string> => {
  const [line = ''] = await landlord.ask('DECODE smol 4 more');
  return line;
};

describe('an agent whose model’s file', () => {
  const putAway = async (landlord: AgentsLandlord): Promise<void> => {
    must(await landlord.runtime.command({ type: 'unload', model: 'engine/smol', force: false }));
  };

  it('is replaced by another training goes on, reads what was said again, and says so', async () => {
    const path = join(folder, 'replaced.gguf');
    await replace(path, 31);
    await using landlord = await startAgents({ totalBytes: 10_000_000_000 });
    await landlord.ask(`REGISTER smol\t${path}`);
    await landlord.decode('smol', 12, 'Hello there');
    await replace(path, 32);
    // What is loaded is the old file still.
    expect((await landlord.decode('smol', 4, '')).fields.kv_reevaluated_tokens).toBeUndefined();
    await putAway(landlord);
    const { fields } = await landlord.decode('smol', 4, '');
    expect(fields).toMatchObject({ kv_swap_restored: 'false' });
    expect(Number(fields.kv_reevaluated_tokens)).toBeGreaterThan(20);
  });

  it('is replaced by a model of other words is told so, and goes on once it is back', async () => {
    const path = join(folder, 'stranger.gguf');
    await replace(path, 31);
    await using landlord = await startAgents({ totalBytes: 10_000_000_000 });
    await landlord.ask(`REGISTER smol\t${path}`);
    await landlord.decode('smol', 12, 'Hello there');
    await putAway(landlord);
    const words = { ...BASE, tokens: BASE.tokens + 1 };
    await copyFile(await writeGguf(join(folder, 'words.gguf'), llama(words)), path);
    expect(await failure(landlord)).toMatch(/^ERR state_mismatch: .*another model now/);
    await putAway(landlord);
    await replace(path, 31);
    expect((await landlord.decode('smol', 4, '')).fields.kv_swap_restored).toBe('true');
  });

  it('is deleted, cut or emptied under it gets a clear error each time, and the runtime lives', async () => {
    const path = join(folder, 'cut.gguf');
    await replace(path, 31);
    await using landlord = await startAgents({ totalBytes: 10_000_000_000 });
    await landlord.ask(`REGISTER smol\t${path}`);
    await landlord.decode('smol', 12, 'Hello there');
    // Cut while it is mapped: the kernel ends whoever reads on.
    await truncate(path, 4096);
    expect(await failure(landlord)).toMatch(/^ERR engine_ended: .*model files are whole/);
    expect(await failure(landlord)).toMatch(/^ERR bad_model_file: /);
    await unlink(path);
    expect(await failure(landlord)).toMatch(/^ERR bad_model_file: .*is not there/);
    await replace(path, 31);
    expect(Number((await landlord.decode('smol', 4, '')).fields.kv_reevaluated_tokens)).toBeGreaterThan(20);
    const [status] = landlord.runtime.state().devices;
    await landlord.ask('UNREGISTER smol');
    await until(
      () => landlord.runtime.state().devices[0]?.bookedBytes === 0,
      10_000,
      `nothing to be booked of ${status?.bookedBytes}`,
    );
  });
});

describe('a model of embeddings', () => {
  let landlord: EngineLandlord;
  let client: OpenAI;
  beforeAll(async () => {
    landlord = await startEngineLandlord({ vectors: await writeGguf(join(folder, 'bert.gguf'), bert()) });
    client = new OpenAI({ baseURL: `${landlord.runtime.url}/v1`, apiKey: 'none', maxRetries: 0 });
    await until(() => landlord.runtime.state().models.length === 1, 30_000, 'the model to be listed');
  });
  afterAll(() => landlord[Symbol.asyncDispose]());

  it('makes vectors, and what it needs for them is in its figure', async () => {
    const made = await client.embeddings.create({ model: 'embedded/vectors', input: ['one', 'two'] });
    expect(made.data.map(({ embedding }) => embedding.length)).toEqual([64, 64]);
    // Its weights are half a megabyte.
    await until(() => (landlord.model('vectors').measuredBytes ?? 0) > 1_000_000, 10_000, 'its buffers too');
    expect(landlord.model('vectors').contextTokens).toBeNull();
  });

  it('says what is wrong with an input, and goes on', async () => {
    const ask = (input: string | number[]) =>
      client.embeddings.create({ model: 'embedded/vectors', input }).then(
        () => 'made',
        (error: unknown) => (error instanceof BadRequestError ? error.message : String(error)),
      );
    expect(await ask('')).toMatch(/empty/);
    expect(await ask([5, 999_999_999])).toMatch(/no token 999999999; its last is 311/);
    expect(await ask('long '.repeat(600))).toMatch(/takes 511/);
    expect(await ask('short')).toBe('made');
  });

  it('does not chat, as if what it said meant something', async () => {
    const asked = client.chat.completions.create({
      model: 'embedded/vectors',
      messages: [{ role: 'user', content: 'Hello' }],
    });
    await expect(asked).rejects.toThrow(/makes embeddings only/);
  });

  it('is no agent', async () => {
    await using agents = await startAgents({ totalBytes: 10_000_000_000 });
    const [line] = await agents.ask(`REGISTER smol\t${join(folder, 'bert.gguf')}`);
    expect(line).toMatch(/^ERR not_supported: bert\.gguf makes embeddings only/);
    expect(agents.runtime.state().devices[0]?.bookedBytes).toBe(0);
  });
});

it('has one file under two names and a link once, and answers for each after one was unloaded', async () => {
  const path = await gguf({ ...TALKER_SHAPE, seed: 33 });
  await symlink(path, join(folder, 'link.gguf'));
  await using landlord = await startEngineLandlord({
    one: path,
    two: path,
    three: join(folder, 'link.gguf'),
  });
  const client = new OpenAI({ baseURL: `${landlord.runtime.url}/v1`, apiKey: 'none', maxRetries: 0 });
  await until(() => landlord.runtime.state().models.length === 3, 30_000, 'the models to be listed');
  const said = async (name: string): Promise<string | null | undefined> => {
    const answer = await client.chat.completions.create({
      model: `embedded/${name}`,
      messages: [{ role: 'user', content: 'Hello' }],
      max_tokens: 8,
      temperature: 0,
    });
    return answer.choices[0]?.message.content;
  };
  const first = await said('one');
  expect([await said('two'), await said('three')]).toEqual([first, first]);
  const bytes = ['one', 'two', 'three'].map((name) => landlord.model(name).measuredBytes ?? 0);
  // Their weights are with the first, and each has a context of its own.
  expect(bytes[0]).toBeGreaterThan((bytes[1] ?? 0) + 1_000_000);
  expect(bytes[2]).toBe(bytes[1]);
  must(await landlord.runtime.command({ type: 'unload', model: 'embedded/one', force: false }));
  await landlord.is('two', 'unloaded');
  expect(await said('two')).toBe(first);
});

/** A tmpfs of this size; null: this user may mount nothing. */
function smallDisk(path: string, kib: number): (() => void) | null {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'tmpfs', path], { stdio: 'ignore' });
    return () => execFileSync('umount', [path]);
  } catch {
    return null;
  }
}

describe('where host memory is really full', async () => {
  const probe = await mkdtemp(join(tmpdir(), 'landlord-probe-'));
  const undo = smallDisk(probe, 64);
  undo?.();
  await rm(probe, { recursive: true, force: true });
  // A full place of our own needs a mount of our own.
  const its = it.runIf(undo !== null);

  its('a state is refused whole, no half of it stays, and the context goes on', async () => {
    const disk = await mkdtemp(join(folder, 'full-'));
    const unmount = smallDisk(disk, 64);
    try {
      await using engine = testEngine();
      const model = await engine.load();
      const context = await engine.context(model);
      await say(engine.host, context.contextId, await engine.tokens(model, 'a b c '.repeat(60)), 8);
      const saved = await engine.host.saveState(context.contextId, join(disk, 'state'));
      expect(saved).toMatchObject({ ok: false, error: { code: 'storage_failed' } });
      expect(await readdir(disk)).toEqual([]);
      const here = await engine.host.saveState(context.contextId, join(engine.memoryFolder, 'state'));
      expect(here.ok).toBe(true);
      expect((await say(engine.host, context.contextId, [], 4)).tokens).toHaveLength(4);
      expect(engine.ended).toEqual([]);
    } finally {
      unmount?.();
    }
  });

  its(
    'agents’ states go to files, though the budget says there is room, and say the same as ever',
    async () => {
      const said = async (kib: number | null): Promise<{ texts: string[]; places: (string | null)[] }> => {
        await using engine = testEngine();
        await using bench = await deskBench({ capBytes: 250 * MB, host: engine.host });
        const disk = join(bench.folder, 'host');
        await mkdir(disk, { mode: 0o700 });
        const unmount = kib === null ? null : smallDisk(disk, kib);
        try {
          if (unmount !== null) execFileSync('chmod', ['700', disk]);
          const path = await gguf(TALKER_SHAPE);
          for (const name of ['one', 'two', 'three'])
            expect(await register(bench.desk, name, path, { contextTokens: 512 })).toBe('ok');
          const texts: string[] = [];
          for (let turn = 0; turn < 9; turn += 1) {
            const name = ['one', 'two', 'three'][turn % 3] ?? 'one';
            await bench.desk.putAway(name, false);
            const answer = await answered(decode(bench.desk, name, 12, turn < 3 ? 'a b c '.repeat(30) : 'x'));
            texts.push(answer.text);
          }
          for (const name of ['one', 'two', 'three']) await bench.desk.putAway(name, false);
          return { texts, places: bench.desk.states(String).map((agent) => agent.kv) };
        } finally {
          unmount?.();
        }
      };
      const wide = await said(null);
      const narrow = await said(64);
      expect(wide.places).toEqual(['host', 'host', 'host']);
      expect(narrow.places).toEqual(['file', 'file', 'file']);
      expect(narrow.texts).toEqual(wide.texts);
    },
  );
});
