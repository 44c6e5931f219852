import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LoadedModel } from '../../electron/core/engine/engine-host.ts';
import { must, NEVER, say, TALKER_SHAPE, type TestEngine, testEngine } from '../support/engine.ts';
import { gguf, LARGE_SHAPE } from '../support/gguf.ts';

/** The engine over the real node-llama-cpp: what its parts promise to whoever keeps conversations. */
describe('one engine', () => {
  let engine: TestEngine;
  let model: LoadedModel;
  beforeAll(async () => {
    engine = testEngine();
    model = await engine.load();
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  it('loads a file once for all who ask, and gives it back with the last of them', async () => {
    const { host } = engine;
    const shape = { ...TALKER_SHAPE, seed: 12 };
    const shares: number[] = [];
    const [one, two] = await Promise.all([
      host.loadModel(
        { path: await gguf(shape), gpuLayers: null, onProgress: (share) => shares.push(share) },
        NEVER,
      ),
      host.loadModel({ path: await gguf(shape), gpuLayers: null }, NEVER),
    ]);
    expect(must(two).modelId).toBe(must(one).modelId);
    expect(shares.at(-1)).toBe(1);
    const full = must(await host.memory()).hostBytes ?? 0;
    must(await host.releaseModel(must(one).modelId));
    expect(must(await host.memory()).hostBytes).toBe(full);
    must(await host.releaseModel(must(one).modelId));
    expect(must(await host.memory()).hostBytes).toBe(full - (must(one).hostBytes ?? 0));
    expect(must(one).hostBytes).toBeGreaterThan(1_000_000);
  });

  it('unloads a model under whoever uses it, after they were told, and its contexts with it', async () => {
    const { host } = engine;
    const before = must(await host.memory()).hostBytes;
    const other = await engine.load({ ...TALKER_SHAPE, seed: 12 });
    const context = await engine.context(other);
    await say(host, context.contextId, await engine.tokens(other, 'Hello'), 4);
    const seen: string[] = [];
    const undo = host.onUnloading(async (modelId) => {
      must(await host.saveState(context.contextId, join(engine.memoryFolder, 'last')));
      seen.push(modelId);
    });
    must(await host.unloadModel(other.modelId));
    undo();
    expect(seen).toEqual([other.modelId]);
    expect(must(await host.memory()).hostBytes).toBe(before);
    const late = await host.decode(
      { contextId: context.contextId, tokens: [5], maxTokens: 1 },
      () => {},
      NEVER,
    );
    expect(late).toMatchObject({ ok: false, error: { code: 'unknown_model' } });
  });

  it('gives back what a context holds when that goes, the model staying', async () => {
    const { host } = engine;
    const before = must(await host.memory()).hostBytes ?? 0;
    const context = await engine.context(model, { contextTokens: 2048 });
    expect(context.hostBytes).toBeGreaterThan(1_000_000);
    expect(must(await host.memory()).hostBytes).toBe(before + (context.hostBytes ?? 0));
    must(await host.disposeContext(context.contextId));
    expect(must(await host.memory()).hostBytes).toBe(before);
    must(await host.disposeContext(context.contextId));
  });

  it('says what is wrong with a file that is no model', async () => {
    const missing = await engine.host.loadModel({ path: '/nowhere/x.gguf', gpuLayers: null }, NEVER);
    expect(missing).toMatchObject({ ok: false, error: { code: 'bad_model_file' } });
    const wrong = await engine.host.loadModel({ path: process.execPath, gpuLayers: null }, NEVER);
    expect(wrong).toMatchObject({ ok: false, error: { code: 'bad_model_file' } });
    expect(engine.ended).toEqual([]);
  });

  it('refuses sizes past any memory before llama.cpp is asked', async () => {
    const ask = (contextTokens: number) =>
      engine.host.createContext({ modelId: model.modelId, contextTokens });
    expect(await ask(1 << 30)).toMatchObject({ ok: false, error: { code: 'bad_input' } });
    expect(await ask(0)).toMatchObject({ ok: false, error: { code: 'bad_input' } });
    // 12 layers of 16 M cells: 384 GiB.
    const large = await engine.load(LARGE_SHAPE);
    const context = await engine.host.createContext({
      modelId: large.modelId,
      contextTokens: 1 << 24,
      cacheTypeK: 'F32',
      cacheTypeV: 'F32',
    });
    expect(context).toMatchObject({ ok: false, error: { code: 'engine_out_of_memory' } });
    must(await engine.host.releaseModel(large.modelId));
    expect(engine.ended).toEqual([]);
  });

  it('tells pieces of whole characters that join to the text', async () => {
    const { host } = engine;
    const context = await engine.context(model);
    const pieces: string[] = [];
    const told: number[] = [];
    const first = must(
      await host.decode(
        { contextId: context.contextId, tokens: await engine.tokens(model, 'Hello'), maxTokens: 40 },
        (piece) => {
          pieces.push(piece.text);
          told.push(piece.token);
        },
        NEVER,
      ),
    );
    expect(told).toEqual(first.tokens);
    expect(pieces.join('')).toBe(first.text);
    expect(first).toMatchObject({ stopped: 'limit', stoppedOnEos: false, pendingToken: told.at(-1) });
    expect(first.heldTokens).toBe(first.promptTokens + 39);
    must(await host.disposeContext(context.contextId));
  });

  it('stops at the end of the context instead of forgetting its beginning', async () => {
    const { host } = engine;
    const context = await engine.context(model, { contextTokens: 256 });
    const prompt = await engine.tokens(model, 'abcdefgh '.repeat(25));
    const first = await say(host, context.contextId, prompt, 200);
    expect(first.stopped).toBe('context_full');
    expect(first.heldTokens).toBe(context.contextTokens - 1);
    expect(first.tokens.length).toBe(context.contextTokens - 1 - prompt.length + 1);
    const more = await host.decode(
      { contextId: context.contextId, tokens: prompt, maxTokens: 1 },
      () => {},
      NEVER,
    );
    expect(more).toMatchObject({
      ok: false,
      // Nothing of it was read.
      error: { code: 'context_full', numbers: { heldTokens: context.contextTokens - 1 } },
    });
    must(await host.disposeContext(context.contextId));
  });

  it('ends a long prompt within a batch when cancelled, and goes on from what was read', async () => {
    const { host } = engine;
    const context = await engine.context(model, { contextTokens: 4096 });
    const reference = await engine.context(model, { contextTokens: 4096 });
    const prompt = await engine.tokens(model, 'the quick brown fox '.repeat(180));
    const abort = new AbortController();
    // The call is on its way before the signal is; a prompt of 3600 tokens takes far longer than both.
    const cancelled = host.decode(
      { contextId: context.contextId, tokens: prompt, maxTokens: 5 },
      () => {},
      abort.signal,
    );
    abort.abort();
    const done = must(await cancelled);
    expect(done.stopped).toBe('cancelled');
    // Not at the end of the prompt, where a generation would have begun.
    expect(done.promptTokens).toBeLessThan(prompt.length / 2);
    expect(done.promptTokens % context.batchTokens).toBe(0);
    expect(done.heldTokens).toBe(done.promptTokens);
    const rest = await say(host, context.contextId, prompt.slice(done.promptTokens), 12);
    const whole = await say(host, reference.contextId, prompt, 12);
    expect(rest.tokens).toEqual(whole.tokens);
    must(await host.disposeContext(context.contextId));
    must(await host.disposeContext(reference.contextId));
  });

  it('ends a generation within a token when cancelled, and what was said stands', async () => {
    const { host } = engine;
    const context = await engine.context(model, { contextTokens: 2048 });
    const reference = await engine.context(model, { contextTokens: 2048 });
    const prompt = await engine.tokens(model, 'Tell me');
    const abort = new AbortController();
    let told = 0;
    const done = must(
      await host.decode(
        { contextId: context.contextId, tokens: prompt, maxTokens: 1500 },
        () => {
          told += 1;
          if (told === 3) abort.abort();
        },
        abort.signal,
      ),
    );
    expect(done.stopped).toBe('cancelled');
    expect(done.tokens.length).toBeLessThan(1500);
    const rest = await say(host, context.contextId, [], 10);
    const whole = await say(host, reference.contextId, prompt, done.tokens.length + 10);
    expect([...done.tokens, ...rest.tokens]).toEqual(whole.tokens);
    must(await host.disposeContext(context.contextId));
    must(await host.disposeContext(reference.contextId));
  });

  it('decodes in two contexts at once, neither changing what the other says', async () => {
    const { host } = engine;
    const contexts = await Promise.all([engine.context(model), engine.context(model)]);
    const prompts = await Promise.all([engine.tokens(model, 'Left'), engine.tokens(model, 'Right')]);
    const order: number[] = [];
    const both = await Promise.all(
      contexts.map((context, at) =>
        host.decode(
          { contextId: context.contextId, tokens: prompts[at] ?? [], maxTokens: 60 },
          () => order.push(at),
          NEVER,
        ),
      ),
    );
    // They took turns: neither waited for the whole of the other.
    expect(order.lastIndexOf(0)).toBeGreaterThan(order.indexOf(1));
    expect(order.lastIndexOf(1)).toBeGreaterThan(order.indexOf(0));
    for (const [at, context] of contexts.entries()) {
      must(await host.clearContext(context.contextId));
      const alone = await say(host, context.contextId, prompts[at] ?? [], 60);
      const together = both[at];
      expect(together === undefined ? [] : must(together).tokens).toEqual(alone.tokens);
      must(await host.disposeContext(context.contextId));
    }
  });

  it('goes on bit for bit with a quantised cache', async () => {
    const { host } = engine;
    const context = await engine.context(model, { cacheTypeK: 'Q8_0', cacheTypeV: 'Q8_0' });
    const prompt = await engine.tokens(model, 'Hello there');
    await say(host, context.contextId, prompt, 8);
    const record = must(await host.saveState(context.contextId, join(engine.memoryFolder, 'q8')));
    const there = await say(host, context.contextId, [], 20);
    must(await host.restoreState(context.contextId, record));
    expect((await say(host, context.contextId, [], 20)).tokens).toEqual(there.tokens);
    must(await host.disposeContext(context.contextId));
  });

  it('reads a prompt alone where nothing is to be generated, and keeps its last token for the next', async () => {
    const { host } = engine;
    const context = await engine.context(model);
    const reference = await engine.context(model);
    const prompt = await engine.tokens(model, 'word '.repeat(40));
    const read = await say(host, context.contextId, prompt, 0);
    expect(read).toMatchObject({ promptTokens: prompt.length, tokens: [], pendingToken: prompt.at(-1) });
    expect(read.heldTokens).toBe(prompt.length - 1);
    const spoken = await say(host, context.contextId, [], 10);
    expect(spoken.tokens).toHaveLength(10);
    must(await host.disposeContext(context.contextId));
    must(await host.disposeContext(reference.contextId));
  });

  it('reads a file ahead, whole, and says so', async () => {
    const path = await gguf(TALKER_SHAPE);
    expect(must(await engine.host.readAhead(path, NEVER))).toBe(model.fileBytes);
    expect(await engine.host.readAhead('/nowhere', NEVER)).toMatchObject({
      error: { code: 'bad_model_file' },
    });
  });

  it('leaves no file but the states that were asked for', async () => {
    expect((await readdir(engine.memoryFolder)).sort()).toEqual(['last', 'q8']);
  });
});
