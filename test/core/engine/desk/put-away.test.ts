import { describe, expect, it } from 'vitest';
import { answered, DEVICE, decode, deskBench, MB, register } from '../../../support/desk-bench.ts';

describe('an agent that is put away', () => {
  it('gives its context and its weights back, and goes on where it was', async () => {
    await using bench = await deskBench({ capBytes: 1_000 * MB });
    await register(bench.desk, 'one');
    const twin = await deskBench({ capBytes: 1_000 * MB });
    await register(twin.desk, 'one');
    const before = await answered(decode(bench.desk, 'one', 5, 'hello'));
    expect((await answered(decode(twin.desk, 'one', 5, 'hello'))).text).toBe(before.text);
    expect(await bench.desk.putAway('one', false)).toMatchObject({
      ok: true,
      value: { freedBytes: 150 * MB },
    });
    expect(bench.ledger.bookings()).toEqual([]);
    expect(bench.engine.loadedModels).toBe(0);
    expect(bench.desk.list()).toMatchObject([{ agent: 'one', kv: 'host' }]);
    const after = await answered(decode(bench.desk, 'one', 5, 'and'));
    expect(after).toMatchObject({ restored: true, reevaluatedTokens: 0 });
    expect(after.text).toBe((await answered(decode(twin.desk, 'one', 5, 'and'))).text);
    await twin[Symbol.asyncDispose]();
  });

  it('has its state still after a run that could not read who it was', async () => {
    await using bench = await deskBench({ capBytes: 1_000 * MB });
    await register(bench.desk, 'one');
    await answered(decode(bench.desk, 'one', 5, 'hello'));
    await bench.desk.putAway('one', false);
    const facts = [...bench.facts];
    bench.facts.clear();
    expect((await bench.again(false)).list()).toEqual([]);
    for (const [key, value] of facts) bench.facts.set(key, value);
    const again = await bench.again();
    const after = await answered(decode(again, 'one', 5, 'and'));
    expect(after).toMatchObject({ restored: true, reevaluatedTokens: 0 });
  });

  it('leaves weights that another agent works with', async () => {
    await using bench = await deskBench({ capBytes: 1_000 * MB });
    for (const name of ['one', 'two']) await register(bench.desk, name, '/models/shared.gguf');
    for (const name of ['one', 'two']) await answered(decode(bench.desk, name, 5, 'hello'));
    expect(await bench.desk.putAway('one', false)).toMatchObject({ value: { freedBytes: 50 * MB } });
    expect(bench.ledger.book(DEVICE)?.bookedBytes).toBe(150 * MB);
  });

  it('is not cut at its turn, save where that is wanted', async () => {
    await using bench = await deskBench({ capBytes: 1_000 * MB });
    await register(bench.desk, 'one');
    const running = decode(bench.desk, 'one', 1_000_000, 'hello');
    expect(await bench.desk.putAway('one', false)).toMatchObject({
      ok: false,
      error: { error: { code: 'model_busy' } },
    });
    expect(await bench.desk.putAway('one', true)).toMatchObject({ ok: true });
    expect(await running).toMatchObject({ ok: false, error: { error: { code: 'cancelled' } } });
    expect(bench.ledger.bookings()).toEqual([]);
    expect(await bench.desk.putAway('nobody', false)).toBeNull();
  });
});
