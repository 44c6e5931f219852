import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../electron/core/clock.ts';
import { answered, type DeskBench, decode, deskBench, MB, register } from '../../../support/desk-bench.ts';
import { type HeldTokens, heldTokens } from '../../../support/held-tokens.ts';
import { until } from '../../../support/router.ts';

const AWAITED = 10_000;
const ALL = 10_000;

interface Two extends AsyncDisposable {
  readonly bench: DeskBench;
  readonly gate: HeldTokens;
  /** Moves the clock on. */
  later(ms: number): void;
  /** Notes its name when it is answered. */
  ask(name: string, count: number): Promise<string>;
  readonly done: string[];
}

/** An indexer, which is batch, and a person's agent, with room for both and turns longer than any answer here. */
async function two(): Promise<Two> {
  const gate = heldTokens();
  let passedMs = 0;
  const bench = await deskBench({
    capBytes: 10_000 * MB,
    limits: { tokens: 400, promptTokens: 128 },
    engine: { pace: gate.pace },
    clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + passedMs },
  });
  expect(await register(bench.desk, 'indexer', undefined, { class: 'batch' })).toBe('ok');
  expect(await register(bench.desk, 'person')).toBe('ok');
  const done: string[] = [];
  return {
    bench,
    gate,
    done,
    later(ms) {
      passedMs += ms;
    },
    async ask(name, count) {
      const { text } = await answered(decode(bench.desk, name, count, 'Once'));
      done.push(name);
      return text;
    },
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  };
}

/** What the indexer says where nobody else asks. */
async function alone(): Promise<string> {
  await using quiet = await two();
  quiet.gate.let(ALL);
  return await quiet.ask('indexer', 300);
}

describe('a batch turn under way', () => {
  it('gives way within a token to an interactive one, and says in the end what it would have said', async () => {
    await using beside = await two();
    const long = beside.ask('indexer', 300);
    beside.gate.let(20);
    await until(() => beside.gate.asked() === 21, AWAITED, 'twenty tokens of the indexer');
    const short = beside.ask('person', 4);
    // The one that has begun, and the person's: all that is let through.
    beside.gate.let(5);
    await short;
    expect(beside.done).toEqual(['person']);
    beside.gate.let(ALL);
    expect(await long).toBe(await alone());
  });

  it('does not give way to another batch one, which waits for its turn', async () => {
    await using beside = await two();
    expect(await register(beside.bench.desk, 'other', undefined, { class: 'batch' })).toBe('ok');
    const asked = [beside.ask('indexer', 300)];
    beside.gate.let(20);
    await until(() => beside.gate.asked() === 21, AWAITED, 'twenty tokens of the indexer');
    asked.push(beside.ask('other', 4));
    beside.gate.let(ALL);
    await Promise.all(asked);
    expect(beside.done).toEqual(['indexer', 'other']);
  });

  it('gives way no more where it has its turn for having waited long', async () => {
    await using beside = await two();
    const first = beside.ask('person', 30);
    await until(() => beside.gate.asked() === 1, AWAITED, 'the person’s first token');
    const long = beside.ask('indexer', 300);
    beside.later(10_000);
    beside.gate.let(30);
    await first;
    await until(() => beside.gate.asked() === 31, AWAITED, 'the indexer’s first token');
    const second = beside.ask('person', 4);
    beside.gate.let(ALL);
    await Promise.all([long, second]);
    expect(beside.done).toEqual(['person', 'indexer', 'person']);
  });
});

it('reads a long prompt in parts also where nobody waits yet, since somebody may come', async () => {
  await using beside = await two();
  beside.gate.let(ALL);
  await answered(decode(beside.bench.desk, 'person', 4, 'y'.repeat(400)));
  // One more in the first, which is the one that waits to be read.
  expect(beside.bench.engine.asked.filter((what) => what.startsWith('read'))).toEqual([
    'read 129',
    'read 128',
    'read 128',
  ]);
});
