import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { acquireTurn, pollBehind } from '../../../electron/core/gate/acquire.ts';
import { walkFallbacks } from '../../../electron/core/gate/walk-fallbacks.ts';
import { withTurn } from '../../../electron/core/gate/with-turn.ts';
import { gateIn, LANE_8080, nodeHolder, tempFolder, URL_8080 } from '../../support/gate.ts';

describe('withTurn', () => {
  it('frees the lane when its function is over, by a value or by a throw', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    expect(await withTurn(gate, URL_8080, {}, () => 7)).toEqual({ ok: true, value: 7 });
    await expect(
      withTurn(gate, URL_8080, {}, () => Promise.reject(new Error('the provider failed'))),
    ).rejects.toThrow('the provider failed');
    using turn = gate.tryTurn(URL_8080);
    expect(turn.kind).toBe('held');
  });

  it('does not run its function when the lane is in use', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    using _turn = gate.tryTurn(URL_8080, { session: 'a' });
    let ran = false;
    const done = await withTurn(gate, URL_8080, { session: 'b' }, () => {
      ran = true;
    });
    expect(done).toMatchObject({ ok: false, error: { code: 'local_backend_busy' } });
    expect(ran).toBe(false);
  });
});

describe('those who wait', () => {
  it('look more rarely the further behind they are, and often enough to pass a head that stands still', () => {
    expect(pollBehind(0)).toEqual({ from: 20, to: 50 });
    expect(pollBehind(1)).toEqual({ from: 20, to: 50 });
    expect(pollBehind(9)).toEqual({ from: 40, to: 100 });
    expect(pollBehind(500)).toEqual({ from: 80, to: 200 });
  });
});

describe('the fallback chain', () => {
  const chain = [
    { name: 'local', url: URL_8080 },
    { name: 'other-local', url: 'http://localhost:9090' },
    { name: 'cloud', url: 'https://api.example.com/v1' },
  ];

  it('passes over local backends in use, wherever they stand, and says so', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    using _one = gate.tryTurn(URL_8080, { session: 'a' });
    using _two = gate.tryTurn('http://127.0.0.1:9090', { session: 'a' });
    const told: string[] = [];
    const walk = await walkFallbacks(gate, chain, {
      session: 'b',
      onDeflected: ({ entry }) => told.push(entry.name),
    });
    expect(walk).toMatchObject({ kind: 'granted', index: 2, turn: { kind: 'skipped' } });
    expect(told).toEqual(['local', 'other-local']);
    const cloudFirst = [...chain].reverse();
    // Its provider failed: the walk goes on behind it, and a saturated engine is no way out.
    expect(await walkFallbacks(gate, cloudFirst, { session: 'b', from: 1 })).toMatchObject({
      kind: 'exhausted',
      deflections: [{ index: 1 }, { index: 2 }],
    });
  });

  it('begins with the local model at every new turn (rule 18)', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const where = async (): Promise<string | null> => {
      const walk = await walkFallbacks(gate, chain, { session: 'cron' });
      if (walk.kind !== 'granted') return null;
      walk.turn[Symbol.dispose]();
      return walk.entry.name;
    };
    expect(await where()).toBe('local');
    const other = gate.tryTurn(URL_8080, { session: 'a' });
    expect(await where()).toBe('other-local');
    other[Symbol.dispose]();
    expect(await where()).toBe('local');
  });
});

describe('waiting', () => {
  it('gets the lane when its holder ends, and says how long it took', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    await using holder = await nodeHolder(folder.path, 'a');
    const waiting = acquireTurn(gate, URL_8080, { session: 'b', waitMs: 60_000 });
    await holder.kill();
    using turn = await waiting;
    expect(turn.kind).toBe('held');
    if (turn.kind === 'held') expect(turn.waitedMs).toBeGreaterThan(0);
    expect(readdirSync(folder.path).filter((name) => name.endsWith('.queue'))).toEqual([]);
  });

  it('is bounded, and leaves no ticket', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    using _turn = gate.tryTurn(URL_8080, { session: 'a' });
    const busy = await acquireTurn(gate, URL_8080, { session: 'b', waitMs: 80 });
    expect(busy.kind).toBe('busy');
    expect(readdirSync(folder.path).filter((name) => name.endsWith('.queue'))).toEqual([]);
  });

  it('asks the kernel whose the lane is once, and not where that is known', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    using _turn = gate.tryTurn(URL_8080, { session: 'a' });
    const narrow = vi.fn(gate.narrow);
    await acquireTurn({ ...gate, narrow }, URL_8080, { session: 'b', waitMs: 60 });
    expect(narrow).toHaveBeenCalledTimes(1);
    const known = { session: 'b', waitMs: 60, othersHoldIt: true };
    const busy = await acquireTurn({ ...gate, narrow }, URL_8080, known);
    expect([busy.kind, narrow.mock.calls.length]).toEqual(['busy', 1]);
  });

  it('ends when it is cancelled, before or meanwhile', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    using _turn = gate.tryTurn(URL_8080, { session: 'a' });
    const controller = new AbortController();
    const waiting = acquireTurn(gate, URL_8080, { session: 'b', waitMs: 60_000, signal: controller.signal });
    controller.abort();
    expect((await waiting).kind).toBe('cancelled');
    expect((await acquireTurn(gate, URL_8080, { waitMs: 60_000, signal: AbortSignal.abort() })).kind).toBe(
      'cancelled',
    );
    expect(readdirSync(folder.path).filter((name) => name.endsWith('.queue'))).toEqual([]);
  });

  it('goes on without an order where no ticket can be had', async () => {
    using folder = tempFolder();
    const { gate, reports, onReport } = gateIn(folder.path);
    writeFileSync(join(folder.path, `${LANE_8080}.queue`), 'a file in its place');
    const held = gate.tryTurn(URL_8080, { session: 'a' });
    expect(held.kind).toBe('held');
    const waiting = acquireTurn(gate, URL_8080, { session: 'b', waitMs: 60_000, onReport });
    held[Symbol.dispose]();
    using turn = await waiting;
    expect(turn.kind).toBe('held');
    expect(reports.map((report) => report.reason)).toEqual(['queue_failed']);
  });

  it('keeps newcomers of its class and lower behind, and lets interactive before batch', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const held = gate.tryTurn(URL_8080, { session: 'a' });
    const waiting = acquireTurn(gate, URL_8080, { session: 'b', class: 'batch', waitMs: 60_000 });
    held[Symbol.dispose]();
    expect(gate.tryTurn(URL_8080, { session: 'c', class: 'batch' })).toMatchObject({ kind: 'busy' });
    using interactive = gate.tryTurn(URL_8080, { session: 'd' });
    expect(interactive.kind).toBe('held');
    interactive[Symbol.dispose]();
    using turn = await waiting;
    expect(turn.kind).toBe('held');
  });
});
