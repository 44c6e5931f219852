import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DecodeAnswer } from '../../../../electron/core/engine/desk/desk-api.ts';
import {
  answered,
  DEVICE,
  type DeskBench,
  decode,
  deskBench,
  MB,
  register,
} from '../../../support/desk-bench.ts';
import { expectedWords } from '../../../support/engine-stand-in.ts';

const NEVER = new AbortController().signal;
/** Weights of three agents and the context of one. */
const ROOM_FOR_ONE = { capBytes: 350 * MB };

/** What a conversation has come to, for the same one without a desk. */
class Script {
  said: number[] = [1];

  next(prompt: string, count: number): string {
    this.said.push(...[...prompt].map((letter) => letter.codePointAt(0) ?? 0));
    const { text, tokens } = expectedWords(this.said, count);
    this.said.push(...tokens);
    return text;
  }
}

/** What a state of 15 tokens is expected to take at most, and less than that and another one. */
const ONE_STATE_BYTES = 346_330;

const swap = ({ evicted, restored, reevaluatedTokens }: DecodeAnswer) => ({
  evicted,
  restored,
  reevaluatedTokens,
});

async function three(bench: DeskBench): Promise<void> {
  for (const name of ['smol', 'qwen', 'llama']) expect(await register(bench.desk, name)).toBe('ok');
}

describe('agents and their contexts', () => {
  it('lets three agents decode in turn where one context has room, and says truly what was swapped', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    await three(bench);
    const scripts = { smol: new Script(), qwen: new Script() };
    const first = await answered(decode(bench.desk, 'smol', 24, 'Hello, my name is'));
    expect(swap(first)).toEqual({ evicted: [], restored: false, reevaluatedTokens: 0 });
    expect(first.text).toBe(scripts.smol.next('Hello, my name is', 24));
    expect(first.promptTokens).toBe(18);
    const second = await answered(decode(bench.desk, 'qwen', 24, 'Good day'));
    expect(swap(second)).toEqual({ evicted: ['smol'], restored: false, reevaluatedTokens: 0 });
    expect(second.text).toBe(scripts.qwen.next('Good day', 24));
    const third = await answered(decode(bench.desk, 'smol', 24, ' and'));
    expect(swap(third)).toEqual({ evicted: ['qwen'], restored: true, reevaluatedTokens: 0 });
    expect(third.text).toBe(scripts.smol.next(' and', 24));
    const again = await answered(decode(bench.desk, 'smol', 4, ' more'));
    expect(swap(again)).toEqual({ evicted: [], restored: false, reevaluatedTokens: 0 });
    expect(bench.desk.list().map(({ agent, kv }) => [agent, kv])).toEqual([
      ['smol', 'device'],
      ['qwen', 'host'],
      ['llama', 'none'],
    ]);
    expect(bench.wrong()).toEqual([]);
  });

  it('keeps as many contexts live as the ledger admits', async () => {
    await using bench = await deskBench({ capBytes: 400 * MB });
    await three(bench);
    for (const name of ['smol', 'qwen', 'llama']) await answered(decode(bench.desk, name, 2, 'x'));
    expect(bench.desk.status()).toMatchObject([{ agents: 3, liveContexts: 2, allocatedBytes: 400 * MB }]);
    // The least recently used one has left.
    expect(bench.desk.list().map(({ kv }) => kv)).toEqual(['host', 'device', 'device']);
  });

  it('books weights once for two agents of one file, and moves them into one context in place', async () => {
    await using bench = await deskBench({ capBytes: 150 * MB });
    expect(await register(bench.desk, 'one', '/models/shared.gguf')).toBe('ok');
    expect(await register(bench.desk, 'two', '/models/shared.gguf')).toBe('ok');
    expect(bench.ledger.book(DEVICE)?.bookedBytes).toBe(100 * MB);
    const scripts = { one: new Script(), two: new Script() };
    for (let round = 0; round < 6; round += 1) {
      const name = round % 2 === 0 ? 'one' : 'two';
      const answer = await answered(decode(bench.desk, name, 5, `round ${round}`));
      expect(answer.text).toBe(scripts[name].next(`round ${round}`, 5));
    }
    expect(bench.engine.asked.filter((one) => one === 'create')).toHaveLength(1);
    expect(bench.engine.asked.filter((one) => one.startsWith('load'))).toHaveLength(1);
    const booked = bench.desk.list().reduce((sum, agent) => sum + agent.bookedBytes, 0);
    expect(booked).toBe(bench.ledger.book(DEVICE)?.bookedBytes);
  });

  it('gives everything back when the last agent of a file leaves', async () => {
    await using bench = await deskBench({ ...ROOM_FOR_ONE, overheadBytes: 7 * MB });
    expect(await register(bench.desk, 'one', '/models/shared.gguf')).toBe('ok');
    expect(await register(bench.desk, 'two', '/models/shared.gguf')).toBe('ok');
    await answered(decode(bench.desk, 'one', 5, 'hello'));
    await bench.desk.unregister('one');
    expect(bench.ledger.book(DEVICE)?.bookedBytes).toBe(107 * MB);
    expect(bench.engine.liveContexts).toBe(0);
    await bench.desk.unregister('two');
    expect(bench.ledger.bookings()).toEqual([]);
    expect(bench.engine.loadedModels).toBe(0);
    expect(bench.facts.size).toBe(0);
    expect(await readdir(join(bench.folder, 'host')).catch(() => [])).toEqual([]);
  });
});

describe('admission', () => {
  it('refuses with the numbers what would not fit even alone beside the weights that stay', async () => {
    await using bench = await deskBench({ capBytes: 249 * MB });
    expect(await register(bench.desk, 'smol')).toBe('ok');
    const refused = await bench.desk.register(
      {
        agent: 'qwen',
        path: '/models/qwen.gguf',
        holder: null,
        fit: false,
        class: null,
        contextTokens: null,
      },
      NEVER,
    );
    expect(refused).toMatchObject({
      ok: false,
      error: { denial: { code: 'CAP', capBytes: 249 * MB, bookedBytes: 100 * MB, requestedBytes: 150 * MB } },
    });
    expect(bench.engine.asked).toEqual(['load /models/smol.gguf']);
    expect(bench.desk.list().map(({ agent }) => agent)).toEqual(['smol']);
    expect(bench.ledger.book(DEVICE)?.bookedBytes).toBe(100 * MB);
    expect(bench.events.filter(({ kind }) => kind === 'denied')).toHaveLength(1);
  });

  it('names the floor where that is what stands in the way', async () => {
    await using bench = await deskBench({ capBytes: 10_000 * MB });
    bench.free(155 * MB);
    expect(await register(bench.desk, 'smol')).toBe('FLOOR');
    bench.free(165 * MB);
    expect(await register(bench.desk, 'smol')).toBe('ok');
  });

  it('moves idle contexts out for the weights of a newcomer', async () => {
    await using bench = await deskBench({ capBytes: 250 * MB });
    expect(await register(bench.desk, 'smol')).toBe('ok');
    await answered(decode(bench.desk, 'smol', 2, 'x'));
    expect(await register(bench.desk, 'qwen')).toBe('ok');
    await answered(decode(bench.desk, 'qwen', 2, 'x'));
    expect(bench.desk.list().map(({ kv }) => kv)).toEqual(['host', 'device']);
  });

  it('asks idle models to leave where contexts do not give enough', async () => {
    await using bench = await deskBench({ capBytes: 200 * MB });
    const job = {
      id: 'model:big',
      kind: 'model',
      name: 'big',
      deviceId: DEVICE,
      predictedBytes: 150 * MB,
      nowMs: 0,
    } as const;
    expect(bench.ledger.reserve(job).ok).toBe(true);
    expect(await register(bench.desk, 'smol')).toBe('CAP');
    bench.roomToMake = () => void bench.ledger.release('model:big');
    expect(await register(bench.desk, 'smol')).toBe('ok');
  });

  it('takes back everything when a load fails', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    bench.engine.badPath = '/models/smol.gguf';
    expect(await register(bench.desk, 'smol')).toBe('bad_model_file');
    expect(bench.ledger.bookings()).toEqual([]);
    expect(bench.desk.list()).toEqual([]);
    expect(await register(bench.desk, 'none-such', '/models/missing.gguf')).toBe('bad_model_file');
    bench.engine.badPath = null;
    expect(await register(bench.desk, 'smol')).toBe('ok');
  });

  it('answers a second registration of the same file with yes, of another with no', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    expect(await register(bench.desk, 'smol')).toBe('ok');
    expect(await register(bench.desk, 'smol')).toBe('ok');
    expect(await register(bench.desk, 'smol', '/models/other.gguf')).toBe('bad_input');
    expect(bench.engine.asked).toEqual(['load /models/smol.gguf']);
  });

  it('admits with the layers that fit, where that is asked for', async () => {
    await using bench = await deskBench({ capBytes: 110 * MB });
    const request = {
      agent: 'smol',
      path: '/models/smol.gguf',
      holder: null,
      class: null,
      contextTokens: null,
    };
    expect((await bench.desk.register({ ...request, fit: false }, NEVER)).ok).toBe(false);
    const fitted = await bench.desk.register({ ...request, fit: true }, NEVER);
    expect(fitted).toMatchObject({ ok: true, value: { gpuLayers: 2 } });
  });

  it('releases an agent bound to whoever holds it, and keeps one that another holds too', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    const [one, two] = [{}, {}];
    const request = {
      agent: 'smol',
      path: '/models/smol.gguf',
      fit: false,
      class: null,
      contextTokens: null,
    };
    await bench.desk.register({ ...request, holder: one }, NEVER);
    await bench.desk.register({ ...request, holder: two }, NEVER);
    await bench.desk.released(one);
    expect(bench.desk.list()).toHaveLength(1);
    await bench.desk.released(two);
    expect(bench.desk.list()).toEqual([]);
    expect(bench.ledger.bookings()).toEqual([]);
  });

  it('leaves no trace of one whose holder left while it loaded', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    const gone = new AbortController();
    const pending = bench.desk.register(
      { agent: 'smol', path: '/models/smol.gguf', holder: {}, fit: false, class: null, contextTokens: null },
      gone.signal,
    );
    gone.abort();
    expect(await pending).toMatchObject({ ok: false, error: { error: { code: 'cancelled' } } });
    expect(bench.ledger.bookings()).toEqual([]);
    expect(bench.engine.loadedModels).toBe(0);
  });
});

describe('what was said is never lost', () => {
  it('goes on with the same conversation after the engine ended in the middle of an answer', async () => {
    let tokens = 0;
    await using bench = await deskBench({
      ...ROOM_FOR_ONE,
      engine: {
        pace: async () => {
          tokens += 1;
          if (tokens === 30) bench.engine.crash('it was killed');
          await new Promise((resolve) => setImmediate(resolve));
        },
      },
    });
    await three(bench);
    const script = new Script();
    expect((await answered(decode(bench.desk, 'smol', 20, 'Once'))).text).toBe(script.next('Once', 20));
    const failed = await decode(bench.desk, 'smol', 20, ' upon');
    expect(failed).toMatchObject({ ok: false, error: { error: { code: 'engine_ended' } } });
    expect(failed.ok ? '' : failed.error.error.message).toContain('send it again');
    expect(bench.ledger.bookings()).toEqual([]);
    expect(bench.desk.list().map(({ agent }) => agent)).toEqual(['smol', 'qwen', 'llama']);
    const next = await answered(decode(bench.desk, 'smol', 20, ' upon'));
    expect(next.text).toBe(script.next(' upon', 20));
    expect(next.reevaluatedTokens).toBeGreaterThan(0);
    expect(bench.wrong()).toEqual([]);
  });

  it('reads a conversation again where its state is damaged, and says so', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    await three(bench);
    const script = new Script();
    script.next('Once', 10);
    await answered(decode(bench.desk, 'smol', 10, 'Once'));
    await answered(decode(bench.desk, 'qwen', 10, 'x'));
    const dir = join(bench.folder, 'host');
    for (const name of await readdir(dir)) await writeFile(join(dir, name), '[1,2');
    const next = await answered(decode(bench.desk, 'smol', 10, ' more'));
    expect(swap(next)).toEqual({ evicted: ['qwen'], restored: false, reevaluatedTokens: 15 });
    expect(next.text).toBe(script.next(' more', 10));
  });

  it('spills to files when host memory is short, and reads anew when both are', async () => {
    const spill = { ...ROOM_FOR_ONE, hostBudgetBytes: 0 };
    await using bench = await deskBench(spill);
    await three(bench);
    await answered(decode(bench.desk, 'smol', 10, 'Once'));
    await answered(decode(bench.desk, 'qwen', 10, 'x'));
    expect(bench.desk.list()[0]?.kv).toBe('file');
    await using none = await deskBench({ ...spill, fileBudgetBytes: 0 });
    await three(none);
    const script = new Script();
    script.next('Once', 10);
    await answered(decode(none.desk, 'smol', 10, 'Once'));
    await answered(decode(none.desk, 'qwen', 10, 'x'));
    expect(none.desk.list()[0]?.kv).toBe('none');
    const next = await answered(decode(none.desk, 'smol', 5, '!'));
    expect(next.text).toBe(script.next('!', 5));
    expect(swap(next)).toMatchObject({ restored: false, reevaluatedTokens: 15 });
  });

  it('moves the state that waits longest to a file when a newer one needs host memory', async () => {
    await using bench = await deskBench({ ...ROOM_FOR_ONE, hostBudgetBytes: ONE_STATE_BYTES });
    await three(bench);
    for (const name of ['smol', 'qwen', 'llama']) await answered(decode(bench.desk, name, 10, 'Once'));
    expect(bench.desk.list().map(({ kv }) => kv)).toEqual(['file', 'host', 'device']);
    const files = await readdir(join(bench.folder, 'file'));
    expect(files).toHaveLength(1);
  });

  it('knows its agents and what was said after a restart', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    await three(bench);
    const scripts = { smol: new Script(), qwen: new Script() };
    scripts.smol.next('Once', 10);
    scripts.qwen.next('Twice', 10);
    await answered(decode(bench.desk, 'smol', 10, 'Once'));
    await answered(decode(bench.desk, 'qwen', 10, 'Twice'));
    await bench.desk.stop();
    await bench.engine.stop();
    for (const line of bench.ledger.bookings()) bench.ledger.release(line.id);
    const desk = await bench.again();
    expect(desk.list().map(({ agent, kv }) => [agent, kv])).toEqual([
      ['smol', 'file'],
      ['qwen', 'file'],
      ['llama', 'none'],
    ]);
    const next = await answered(decode(desk, 'smol', 5, '!'));
    expect(next.text).toBe(scripts.smol.next('!', 5));
    expect(swap(next)).toEqual({ evicted: [], restored: true, reevaluatedTokens: 0 });
    expect((await answered(decode(desk, 'qwen', 5, '?'))).text).toBe(scripts.qwen.next('?', 5));
  });

  it('keeps what was said until a client left', async () => {
    const gone = new AbortController();
    let tokens = 0;
    await using bench = await deskBench({
      ...ROOM_FOR_ONE,
      engine: {
        pace: async () => {
          tokens += 1;
          if (tokens === 8) gone.abort();
          await new Promise((resolve) => setImmediate(resolve));
        },
      },
    });
    await three(bench);
    const script = new Script();
    const left = await decode(bench.desk, 'smol', 500, 'Once', gone.signal);
    expect(left).toMatchObject({ ok: false, error: { error: { code: 'cancelled' } } });
    expect(tokens).toBe(8);
    script.next('Once', 7);
    expect((await answered(decode(bench.desk, 'smol', 6, '.'))).text).toBe(script.next('.', 6));
  });

  it('refuses a prompt past the context, and says when an answer has filled it', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    const small = { agent: 'smol', path: '/models/smol.gguf', holder: null, fit: false, class: null };
    await bench.desk.register({ ...small, contextTokens: 64 }, NEVER);
    const full = await answered(decode(bench.desk, 'smol', 500, 'a'.repeat(40)));
    expect(full).toMatchObject({ contextFull: true, stoppedOnEos: false });
    expect(await decode(bench.desk, 'smol', 1, 'more')).toMatchObject({
      ok: false,
      error: { error: { code: 'context_full' } },
    });
  });
});

describe('fair turns', () => {
  const order = (bench: DeskBench, asks: readonly Promise<unknown>[]) => Promise.all(asks).then(() => bench);

  it('gives an interactive agent its turn before batch ones that came earlier', async () => {
    await using bench = await deskBench({ capBytes: 10_000 * MB });
    for (const name of ['first', 'batch']) {
      await bench.desk.register(
        {
          agent: name,
          path: `/models/${name}.gguf`,
          holder: null,
          fit: false,
          class: name === 'batch' ? 'batch' : null,
          contextTokens: null,
        },
        NEVER,
      );
    }
    await register(bench.desk, 'person');
    const done: string[] = [];
    const ask = (name: string) => decode(bench.desk, name, 8, 'x').then(() => void done.push(name));
    await order(bench, [ask('first'), ask('batch'), ask('person')]);
    expect(done).toEqual(['first', 'person', 'batch']);
  });

  it('lets a short request through in the middle of a long one', async () => {
    await using bench = await deskBench({ ...ROOM_FOR_ONE, limits: { tokens: 16 } });
    await three(bench);
    const scripts = { smol: new Script(), qwen: new Script() };
    const done: string[] = [];
    const long = answered(decode(bench.desk, 'smol', 400, 'Once')).finally(() => done.push('long'));
    const short = answered(decode(bench.desk, 'qwen', 8, 'Hi')).finally(() => done.push('short'));
    expect((await long).text).toBe(scripts.smol.next('Once', 400));
    expect((await short).text).toBe(scripts.qwen.next('Hi', 8));
    expect(done).toEqual(['short', 'long']);
    expect((await long).restored).toBe(true);
    expect((await long).evicted).toEqual(['qwen']);
  });

  it('answers the requests of one agent one after the other', async () => {
    await using bench = await deskBench({ ...ROOM_FOR_ONE, limits: { tokens: 4 } });
    await three(bench);
    const script = new Script();
    const asks = ['a', 'b', 'c'].map((prompt) => answered(decode(bench.desk, 'smol', 10, prompt)));
    const texts = (await Promise.all(asks)).map(({ text }) => text);
    expect(texts).toEqual(['a', 'b', 'c'].map((prompt) => script.next(prompt, 10)));
  });

  it('makes the next context ready while another decodes, where there is room', async () => {
    await using bench = await deskBench({ capBytes: 10_000 * MB, limits: { tokens: 4 } });
    await three(bench);
    await Promise.all(['smol', 'qwen'].map((name) => decode(bench.desk, name, 40, 'x')));
    await bench.desk.relief.give(DEVICE, 100 * MB, 'somebody wants it');
    const [, second] = await Promise.all(
      ['smol', 'qwen'].map((name) => answered(decode(bench.desk, name, 8, 'x'))),
    );
    expect(second?.restored).toBe(true);
    const state = bench.desk.states((at) => String(at)).find(({ agent }) => agent === 'qwen');
    expect(state?.lastSwitchMs).toBe(0);
  });

  it('cancels what waits when its agent is unregistered', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    await three(bench);
    const running = decode(bench.desk, 'smol', 200, 'x');
    const waiting = decode(bench.desk, 'qwen', 8, 'x');
    await bench.desk.unregister('qwen');
    expect(await waiting).toMatchObject({ ok: false, error: { error: { code: 'cancelled' } } });
    expect((await running).ok).toBe(true);
    expect(bench.wrong()).toEqual([]);
  });
});

describe('giving memory back', () => {
  it('moves idle contexts first, weights after, and brings them back with the next request', async () => {
    await using bench = await deskBench({ capBytes: 10_000 * MB });
    await three(bench);
    const script = new Script();
    script.next('Once', 10);
    for (const name of ['smol', 'qwen']) await answered(decode(bench.desk, name, 10, 'Once'));
    expect(await bench.desk.relief.give(DEVICE, 30 * MB, 'free memory is under the floor')).toBe(50 * MB);
    expect(bench.desk.list().map(({ kv }) => kv)).toEqual(['host', 'device', 'none']);
    expect(bench.events.at(-1)).toMatchObject({ kind: 'evicted', session: 'smol' });
    expect(bench.events.at(-1)?.reason).toContain('under the floor');
    await bench.desk.relief.give(DEVICE, Number.MAX_SAFE_INTEGER, 'everything is being drained');
    expect(bench.ledger.bookings()).toEqual([]);
    expect(bench.engine.loadedModels).toBe(0);
    const next = await answered(decode(bench.desk, 'smol', 5, '!'));
    expect(next.text).toBe(script.next('!', 5));
    expect(next.restored).toBe(true);
  });

  it('refuses new turns while everything is being drained, and big loads during sleep', async () => {
    await using bench = await deskBench(ROOM_FOR_ONE);
    await three(bench);
    bench.policy = { ...bench.policy, draining: true };
    expect(await decode(bench.desk, 'smol', 1, 'x')).toMatchObject({
      ok: false,
      error: { error: { code: 'draining' } },
    });
    bench.policy = { draining: false, asleep: true, isBig: () => true };
    expect(await register(bench.desk, 'other')).toBe('big_models_asleep');
  });
});
