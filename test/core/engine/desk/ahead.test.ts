import { describe, expect, it } from 'vitest';
import { answered, decode, deskBench, MB, register } from '../../../support/desk-bench.ts';
import { heldTokens } from '../../../support/held-tokens.ts';
import { until } from '../../../support/router.ts';

const ALL = 1_000;

describe('the next one’s context', () => {
  it('is made ready when it asks in the middle of another’s turn', async () => {
    const gate = heldTokens();
    await using bench = await deskBench({ capBytes: 400 * MB, engine: { pace: () => gate.pace() } });
    for (const name of ['one', 'two']) await register(bench.desk, name);
    const first = decode(bench.desk, 'one', 20, 'hello');
    gate.let(5);
    await until(() => gate.asked() === 6, 5_000, 'five tokens of one');
    const second = decode(bench.desk, 'two', 2, 'hello');
    await until(() => bench.engine.liveContexts === 2, 5_000, 'the context of two');
    // One is still at its turn: nothing has let it go on.
    expect(gate.asked()).toBe(6);
    gate.let(ALL);
    await answered(first);
    await answered(second);
  });

  it('is not begun before the running turn has its first token, which it would delay', async () => {
    const gate = heldTokens();
    await using bench = await deskBench({ capBytes: 400 * MB, engine: { pace: () => gate.pace() } });
    for (const name of ['one', 'two']) await register(bench.desk, name);
    const first = decode(bench.desk, 'one', 20, 'hello');
    const second = decode(bench.desk, 'two', 2, 'hello');
    await until(() => gate.asked() === 1, 5_000, 'the first token to begin');
    // Whatever was begun beside it would be there by now.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(bench.engine.liveContexts).toBe(1);
    gate.let(1);
    await until(() => bench.engine.liveContexts === 2, 5_000, 'the context of two');
    gate.let(ALL);
    await answered(first);
    await answered(second);
  });

  it('is begun at once beside a turn that is over too soon, and beside a prompt that is read in parts', async () => {
    for (const [tokens, prompt] of [
      [3, 'hello'],
      [20, 'a long prompt '.repeat(10)],
    ] as const) {
      const gate = heldTokens();
      await using bench = await deskBench({
        capBytes: 400 * MB,
        engine: { pace: () => gate.pace() },
        limits: { promptTokens: 64 },
      });
      for (const name of ['one', 'two']) await register(bench.desk, name);
      const first = decode(bench.desk, 'one', tokens, prompt);
      const second = decode(bench.desk, 'two', 2, 'hello');
      await until(() => bench.engine.liveContexts === 2, 5_000, 'the context of two');
      gate.let(ALL);
      await answered(first);
      await answered(second);
    }
  });
});
