import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SMALL_MODELS } from '../../build/models/synthetic-models.ts';
import { must, NEVER, say, type TestEngine, testEngine } from '../support/engine.ts';
import { writeRandom } from '../support/random-weights.ts';

/** Past every sliding window of these models, and no multiple of a batch. */
const PROMPT_TOKENS = 700;
const ANSWER_TOKENS = 24;

/** One model of each kind of memory that llama.cpp has. */
describe('a state that is swapped', () => {
  let folder: string;
  let engine: TestEngine;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'landlord-kinds-'));
    engine = testEngine();
  });
  afterAll(async () => {
    await engine[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  it.each(Object.entries(SMALL_MODELS))(
    'of %s goes on token for token, in a new context and in another’s place',
    async (name, spec) => {
      const path = await writeRandom(join(folder, `${name.replaceAll(/\W+/g, '-')}.gguf`), spec);
      const model = must(await engine.host.loadModel({ path, gpuLayers: null }, NEVER));
      const prompt = Array.from(
        { length: PROMPT_TOKENS },
        (_, at) => 259 + ((at * 7 + ((at * at) % 11)) % 50),
      );
      const first = await engine.context(model, { contextTokens: 1024 });
      await say(engine.host, first.contextId, prompt, ANSWER_TOKENS);
      const record = must(await engine.host.saveState(first.contextId, join(engine.memoryFolder, 'state')));
      const straight = await say(engine.host, first.contextId, [], ANSWER_TOKENS);

      const anew = await engine.context(model, { contextTokens: 1024 });
      must(await engine.host.restoreState(anew.contextId, record));
      expect((await say(engine.host, anew.contextId, [], ANSWER_TOKENS)).tokens).toEqual(straight.tokens);

      // Another agent was there before.
      must(await engine.host.clearContext(anew.contextId));
      await say(engine.host, anew.contextId, prompt.slice(0, 300), 8);
      must(await engine.host.restoreState(anew.contextId, record));
      expect((await say(engine.host, anew.contextId, [], ANSWER_TOKENS)).tokens).toEqual(straight.tokens);
      must(await engine.host.unloadModel(model.modelId));
      expect(engine.ended).toEqual([]);
    },
    120_000,
  );
});
