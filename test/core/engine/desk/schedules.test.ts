import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEVICE, type DeskBench, decode, deskBench, MB, register } from '../../../support/desk-bench.ts';
import { expectedWords } from '../../../support/engine-stand-in.ts';

type Step =
  | { readonly type: 'decode'; readonly agent: number; readonly count: number; readonly prompt: string }
  | { readonly type: 'relieve'; readonly bytes: number }
  | { readonly type: 'crash'; readonly afterTicks: number };

const steps = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        type: fc.constant('decode' as const),
        agent: fc.nat(2),
        count: fc.integer({ min: 1, max: 24 }),
        prompt: fc.string({ minLength: 1, maxLength: 12 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant('relieve' as const),
        bytes: fc.integer({ min: 1, max: 400 * MB }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('crash' as const), afterTicks: fc.nat(40) }) },
  ),
  { minLength: 3, maxLength: 14 },
);

/** Steps that follow at once run together: agents beside each other, a crash in the middle of an answer. */
const schedule = fc.record({
  steps,
  together: fc.integer({ min: 1, max: 3 }),
  capMb: fc.integer({ min: 250, max: 500 }),
  hostBudgetBytes: fc.constantFrom(0, 400_000, 1000 * MB),
  fileBudgetBytes: fc.constantFrom(0, 400_000, 1000 * MB),
  shared: fc.boolean(),
  atOnce: fc.integer({ min: 1, max: 2 }),
});

const ENDS_EVERY = 37;
const NAMES = ['smol', 'qwen', 'llama'];

describe('200 random schedules of three agents', () => {
  it('lets each go on with exactly its own conversation, and keeps the book right after every step', async () => {
    await fc.assert(
      fc.asyncProperty(schedule, async (plan) => {
        await using bench = await deskBench({
          capBytes: plan.capMb * MB,
          hostBudgetBytes: plan.hostBudgetBytes,
          fileBudgetBytes: plan.fileBudgetBytes,
          engine: { endsEvery: ENDS_EVERY },
          limits: { tokens: 6, atOnce: plan.atOnce },
        });
        const names: string[] = [];
        for (const name of NAMES)
          if ((await register(bench.desk, name, `/models/${plan.shared ? 'one' : name}.gguf`)) === 'ok')
            names.push(name);
        const said = new Map<string, number[]>(names.map((name) => [name, [1]]));
        for (let from = 0; from < plan.steps.length; from += plan.together) {
          // Where an agent is asked twice at once, the first answer comes first.
          await Promise.all(
            plan.steps.slice(from, from + plan.together).map((step) => carryOut(bench, names, said, step)),
          );
          expect(bench.wrong()).toEqual([]);
          const booked = bench.desk.list().reduce((sum, agent) => sum + agent.bookedBytes, 0);
          expect(booked).toBe(bench.ledger.book(DEVICE)?.bookedBytes);
        }
        for (const name of names) await bench.desk.unregister(name);
        expect(bench.ledger.bookings()).toEqual([]);
        expect([bench.engine.liveContexts, bench.engine.loadedModels]).toEqual([0, 0]);
        for (const place of ['host', 'file'])
          expect(await readdir(join(bench.folder, place)).catch(() => [])).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});

async function carryOut(
  bench: DeskBench,
  names: readonly string[],
  said: Map<string, number[]>,
  step: Step,
): Promise<void> {
  if (step.type === 'crash') {
    // Also in the middle of somebody's answer, between two of its turns or at its end.
    for (let tick = 0; tick < step.afterTicks; tick += 1)
      await new Promise((resolve) => setImmediate(resolve));
    bench.engine.crash('it was killed');
    return;
  }
  if (step.type === 'relieve') {
    await bench.desk.relief.give(DEVICE, step.bytes, 'somebody needs it');
    return;
  }
  const name = names[step.agent % names.length] ?? 'smol';
  const answer = await decode(bench.desk, name, step.count, step.prompt);
  if (!answer.ok) {
    expect(answer.error.error.code).toBe('engine_ended');
    return;
  }
  const before = said.get(name) ?? [];
  const whole = [...before, ...[...step.prompt].map((letter) => letter.codePointAt(0) ?? 0)];
  const expected = expectedWords(whole, step.count, ENDS_EVERY);
  expect(answer.value.text).toBe(expected.text);
  said.set(name, [...whole, ...expected.tokens]);
}
