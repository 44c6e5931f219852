import { describe, expect, it } from 'vitest';
import { ok } from '../../../../shared/errors.ts';
import {
  answered,
  DEVICE,
  type DeskBench,
  decode,
  deskBench,
  MB,
  register,
} from '../../../support/desk-bench.ts';
import { type HeldTokens, heldTokens } from '../../../support/held-tokens.ts';
import { until } from '../../../support/router.ts';

const WIDE = { capBytes: 10_000 * MB };
const AWAITED = 10_000;
const ALL = 1_000;

const refusalOf = async (result: ReturnType<typeof decode>): Promise<string> => {
  const done = await result;
  return done.ok ? 'ok' : done.error.error.code;
};

/** A long answer of `smol` is under way. */
async function speaking(
  bench: DeskBench,
  gate: HeldTokens,
): Promise<{ readonly long: ReturnType<typeof decode> }> {
  await register(bench.desk, 'smol');
  const long = decode(bench.desk, 'smol', 400, 'Once');
  await until(() => gate.asked() === 1, AWAITED, 'its first token to begin');
  return { long };
}

describe('an agent that is unregistered in the middle of its answer', () => {
  it('takes no more requests, and nothing of it comes back', async () => {
    const gate = heldTokens();
    await using bench = await deskBench({ ...WIDE, engine: { pace: gate.pace } });
    const { long } = await speaking(bench, gate);
    const gone = bench.desk.unregister('smol');
    const late = decode(bench.desk, 'smol', 4, 'and');
    gate.let(ALL);
    expect((await gone).ok).toBe(true);
    expect(await refusalOf(long)).toBe('cancelled');
    expect(await refusalOf(late)).not.toBe('ok');
    expect(bench.ledger.bookedOn(DEVICE)).toEqual([]);
    expect([bench.engine.liveContexts, bench.engine.loadedModels]).toEqual([0, 0]);
  });

  it('is another one where the name is registered anew meanwhile', async () => {
    const gate = heldTokens();
    await using bench = await deskBench({ ...WIDE, engine: { pace: gate.pace } });
    const { long } = await speaking(bench, gate);
    const gone = bench.desk.unregister('smol');
    const anew = register(bench.desk, 'smol');
    gate.let(ALL);
    expect(await anew).toBe('ok');
    await gone;
    // What is kept over a restart is the new one's.
    expect(bench.facts.has('agent/smol')).toBe(true);
    expect(await refusalOf(long)).toBe('cancelled');
    expect(bench.desk.list().map(({ agent }) => agent)).toEqual(['smol']);
    const { promptTokens } = await answered(decode(bench.desk, 'smol', 4, 'ab'));
    // Its begin token too: nothing was said before.
    expect(promptTokens).toBe(3);
    expect(bench.wrong()).toEqual([]);
  });
});

it('tells as released what is given back, not the weights that others use', async () => {
  await using bench = await deskBench(WIDE);
  for (const name of ['one', 'two']) await register(bench.desk, name, '/models/shared.gguf');
  await answered(decode(bench.desk, 'one', 4, 'x'));
  const first = await bench.desk.unregister('one');
  expect(first.ok && first.value.releasedBytes).toBe(50 * MB);
  const last = await bench.desk.unregister('two');
  expect(last.ok && last.value.releasedBytes).toBe(100 * MB);
});

describe('a name that is registered again', () => {
  it('keeps its context, and is refused another size of it', async () => {
    await using bench = await deskBench(WIDE);
    await register(bench.desk, 'smol', undefined, { contextTokens: 512 });
    expect(await register(bench.desk, 'smol', undefined, { contextTokens: 1024 })).toBe('bad_input');
    expect(await register(bench.desk, 'smol', undefined, { contextTokens: 512 })).toBe('ok');
    expect(await register(bench.desk, 'smol')).toBe('ok');
    expect(bench.desk.list().map(({ contextTokens }) => contextTokens)).toEqual([512]);
  });

  it('changes its class where that is said, over a restart too', async () => {
    await using bench = await deskBench(WIDE);
    await register(bench.desk, 'smol');
    await register(bench.desk, 'smol', undefined, { class: 'batch' });
    const classes = (desk: DeskBench['desk']) => desk.states(String).map((agent) => agent.class);
    expect(classes(bench.desk)).toEqual(['batch']);
    await register(bench.desk, 'smol');
    expect(classes(await bench.again())).toEqual(['batch']);
  });
});

it('refuses a model of embeddings, which no agent can talk with, and keeps nothing of it', async () => {
  await using bench = await deskBench(WIDE);
  expect(await register(bench.desk, 'smol', '/models/embedding.gguf')).toBe('not_supported');
  expect(bench.ledger.bookedOn(DEVICE)).toEqual([]);
  expect(bench.engine.loadedModels).toBe(0);
  expect(bench.desk.list()).toEqual([]);
});

it('asks for the context of each of two that register one file at once', async () => {
  await using bench = await deskBench({
    capBytes: 200 * MB,
    estimate: async ({ contextTokens }) =>
      ok({
        weightsBytes: 100 * MB,
        kvBytes: (contextTokens ?? 0) * 10_000,
        recurrentBytes: 0,
        computeBytes: 0,
        overheadBytes: 0,
        totalBytes: 100 * MB + (contextTokens ?? 0) * 10_000,
        layers: 4,
        kvLayers: 4,
        contextTokens: contextTokens ?? 4096,
        notes: [],
      }),
  });
  const done = await Promise.all([
    register(bench.desk, 'small', '/models/shared.gguf', { contextTokens: 64 }),
    register(bench.desk, 'large', '/models/shared.gguf', { contextTokens: 65_536 }),
  ]);
  expect(done).toEqual(['ok', 'CAP']);
});

describe('a conversation', () => {
  it('goes on as it was after a decode that failed half way, whose context is not trusted any more', async () => {
    await using bench = await deskBench(WIDE);
    await using calm = await deskBench(WIDE);
    for (const { desk } of [bench, calm]) {
      await register(desk, 'smol');
      await answered(decode(desk, 'smol', 8, 'Hello'));
    }
    bench.engine.failsOnce = true;
    expect(await refusalOf(decode(bench.desk, 'smol', 8, ''))).toBe('internal');
    const { text } = await answered(decode(bench.desk, 'smol', 8, ''));
    expect(text).toBe((await answered(decode(calm.desk, 'smol', 8, ''))).text);
    expect(bench.wrong()).toEqual([]);
  });

  it('does not go on with a model of other words, and does once the old file is back', async () => {
    await using bench = await deskBench(WIDE);
    await register(bench.desk, 'smol');
    await answered(decode(bench.desk, 'smol', 8, 'Hello'));
    await bench.desk.putAway('smol', false);
    bench.engine.vocabulary = 'hieroglyphs';
    expect(await refusalOf(decode(bench.desk, 'smol', 8, ''))).toBe('state_mismatch');
    await bench.desk.putAway('smol', false);
    const again = await bench.again();
    expect(await refusalOf(decode(again, 'smol', 8, ''))).toBe('state_mismatch');
    await again.putAway('smol', false);
    bench.engine.vocabulary = 'letters';
    expect(await refusalOf(decode(again, 'smol', 8, ''))).toBe('ok');
  });
});

it('shows an agent while its model loads, and how far that is', async () => {
  const shown: (number | null)[] = [];
  await using bench = await deskBench(WIDE);
  const { loadModel } = bench.engine;
  bench.engine.loadModel = async (request) => {
    for (const share of [0, 0.5, 1]) {
      request.onProgress?.(share);
      shown.push(bench.desk.states(String)[0]?.loadProgress ?? null);
    }
    return await loadModel.call(bench.engine, request);
  };
  expect(await register(bench.desk, 'smol')).toBe('ok');
  expect(shown).toEqual([0, 0.5, 1]);
  expect(bench.desk.states(String)).toMatchObject([{ loadProgress: null, weightsBytes: 100 * MB }]);
});
