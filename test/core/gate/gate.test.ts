import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { acquireTurn } from '../../../electron/core/gate/acquire.ts';
import type { FileLocker } from '../../../electron/core/gate/locker.ts';
import { walkFallbacks } from '../../../electron/core/gate/walk-fallbacks.ts';
import { withTurn } from '../../../electron/core/gate/with-turn.ts';
import { fail, ok } from '../../../shared/errors.ts';
import {
  gateIn,
  LANE_8080,
  nodeHolder,
  pythonHolder,
  runToEnd,
  tempFolder,
  URL_8080,
} from '../../support/gate.ts';

describe('a turn', () => {
  it('holds the lane until it is released, once, however often', () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const turn = gate.tryTurn(URL_8080, { session: 'a', model: 'm' });
    if (turn.kind !== 'held') throw new Error(turn.kind);
    expect(turn.locks).toEqual([join(folder.path, `${LANE_8080}.lock`)]);
    expect(turn.env).toEqual({ LANDLORD_TURN: turn.turn });
    expect(gate.tryTurn('http://[::1]:8080', { session: 'b' }).kind).toBe('busy');
    turn.release();
    using next = gate.tryTurn(URL_8080, { session: 'b' });
    expect(next.kind).toBe('held');
    turn.release();
    expect(gate.tryTurn(URL_8080, { session: 'c' }).kind).toBe('busy');
  });

  it('writes who it is, after the lock, and needs no sidecar', () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path, { epochMs: () => Date.parse('2026-01-01T00:05:00Z') });
    const path = join(folder.path, `${LANE_8080}.json`);
    {
      using turn = gate.tryTurn(URL_8080, { sidecar: false });
      expect([turn.kind, existsSync(path)]).toEqual(['held', false]);
    }
    using turn = gate.tryTurn(URL_8080, { session: 's', model: 'm', class: 'batch', turn: 'mine/../1' });
    const written: unknown = JSON.parse(readFileSync(path, 'utf8'));
    expect(written).toMatchObject({
      pid: process.pid,
      session: 's',
      model: 'm',
      class: 'batch',
      turn: 'mine/../1',
      acquiredAt: '2026-01-01T00:05:00.000Z',
    });
    expect(turn.kind).toBe('held');
  });

  it('is deflected with holder, session and age, of a program of ours or any other', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    {
      await using holder = await nodeHolder(folder.path, 'writer');
      const busy = gate.tryTurn(URL_8080, { session: 'reader' });
      expect(busy).toMatchObject({
        kind: 'busy',
        code: 'local_backend_busy',
        lane: LANE_8080,
        holder: { pid: holder.pid, session: 'writer', model: 'qwen-27b' },
      });
      if (busy.kind === 'busy')
        expect(busy.message).toMatch(
          /^local model in use by another session \(session writer, pid \d+ .+, for \d+ (ms|s)\)$/,
        );
    }
    await using holder = await pythonHolder(join(folder.path, `${LANE_8080}.lock`));
    const busy = gate.tryTurn(URL_8080, { session: 'reader' });
    // The sidecar of the turn before lies there still: the kernel names another process, so it counts for nothing.
    expect(busy).toMatchObject({ kind: 'busy', heldForMs: null, holder: { pid: holder.pid, session: null } });
  });

  it('on another machine, or with no backend configured, is none of the gate’s: no file, no folder (rule 17)', () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    const { gate, reports, onReport } = gateIn(root);
    for (const url of [null, undefined, '', '  '])
      expect(gate.tryTurn(url, { onReport })).toMatchObject({ kind: 'skipped', why: 'not_configured' });
    expect(gate.tryTurn('https://api.example.com/v1', { onReport })).toMatchObject({
      kind: 'skipped',
      why: 'not_local',
    });
    expect(existsSync(root)).toBe(false);
    expect(reports).toEqual([]);
  });

  it('takes the first free slot of a wider lane, and no more than there are', () => {
    using folder = tempFolder();
    writeFileSync(join(folder.path, `${LANE_8080}.width`), '3\n');
    const { gate } = gateIn(folder.path);
    const turns = ['a', 'b', 'c', 'd'].map((session) => gate.tryTurn(URL_8080, { session }));
    expect(turns.map((turn) => turn.kind)).toEqual(['held', 'held', 'held', 'busy']);
    expect(turns.flatMap((turn) => (turn.kind === 'held' ? turn.locks : []))).toEqual(
      ['', '.1', '.2'].map((slot) => join(folder.path, `${LANE_8080}${slot}.lock`)),
    );
    turns[1]?.[Symbol.dispose]();
    using again = gate.tryTurn(URL_8080);
    expect(again).toMatchObject({ kind: 'held', locks: [join(folder.path, `${LANE_8080}.1.lock`)] });
    for (const turn of turns) turn[Symbol.dispose]();
  });
});

describe('the gate out of order lets every turn through, and tells it once (rule 17)', () => {
  const noLock: FileLocker = {
    tryLock: () => ({ kind: 'failed', errno: 'ENOLCK' }),
    unlock: () => undefined,
    makeInheritable: () => true,
    prepareExec: () => undefined,
  };
  type Case = readonly [string, (root: string) => ReturnType<typeof gateIn>];
  const cases: readonly Case[] = [
    [
      'root_not_a_folder',
      (root) => {
        writeFileSync(root, 'a file');
        return gateIn(root);
      },
    ],
    [
      'lock_not_a_file',
      (root) => {
        mkdirSync(join(root, `${LANE_8080}.lock`), { recursive: true });
        return gateIn(root);
      },
    ],
    ['lock_failed', (root) => gateIn(root, { locker: () => ok(noLock) })],
    [
      'no_locker',
      (root) => gateIn(root, { locker: () => fail('not_supported', 'koffi could not be loaded.') }),
    ],
    ['root_on_network', (root) => gateIn(root, { networkFileSystem: () => 'NFS' })],
    [
      'internal',
      (root) =>
        gateIn(root, {
          networkFileSystem: () => {
            throw new Error('a surprise');
          },
        }),
    ],
    [
      'internal',
      (root) =>
        gateIn(root, {
          locker: () => {
            throw new Error('a surprise');
          },
        }),
    ],
  ];

  it.each(cases)('%s', (reason, make) => {
    using folder = tempFolder();
    const { gate, reports, onReport } = make(join(folder.path, 'gates'));
    for (let turn = 0; turn < 3; turn += 1) {
      using got = gate.tryTurn(URL_8080, { onReport });
      expect(got).toMatchObject({ kind: 'open', reason });
    }
    expect(reports).toHaveLength(1);
    expect(reports[0]?.message).toMatch(/\.$/);
  });

  it('no_home: a user the passwd database does not know', () => {
    const { gate, reports, onReport } = gateIn('', { passwdHome: () => null, isFolder: () => false });
    for (let turn = 0; turn < 3; turn += 1)
      expect(gate.tryTurn(URL_8080, { onReport })).toMatchObject({ kind: 'open', reason: 'no_home' });
    expect(reports).toHaveLength(1);
  });

  it('bad_url: a URL that is none', () => {
    const { gate, reports, onReport } = gateIn('/nowhere');
    for (let turn = 0; turn < 3; turn += 1)
      expect(gate.tryTurn('8080', { onReport })).toMatchObject({ kind: 'open', reason: 'bad_url' });
    expect(reports).toHaveLength(1);
  });

  it('root_not_writable: a folder of another user', () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    mkdirSync(root, { mode: 0o555 });
    const { gate, reports, onReport } = gateIn(root);
    const isRoot = process.geteuid?.() === 0;
    for (let turn = 0; turn < 3; turn += 1) {
      // Root may write everywhere; nobody may not.
      if (isRoot) process.seteuid?.(65534);
      try {
        expect(gate.tryTurn(URL_8080, { onReport })).toMatchObject({
          kind: 'open',
          reason: 'root_not_writable',
        });
      } finally {
        if (isRoot) process.seteuid?.(0);
      }
    }
    expect(reports).toHaveLength(1);
  });

  it('a sidecar that can not be written is told, and the lane is held', () => {
    using folder = tempFolder();
    mkdirSync(join(folder.path, `${LANE_8080}.json`, 'x'), { recursive: true });
    const { gate, reports, onReport } = gateIn(folder.path);
    for (let turn = 0; turn < 3; turn += 1) {
      using got = gate.tryTurn(URL_8080, { onReport });
      expect(got.kind).toBe('held');
      expect(runToEnd(['flock', '-n', join(folder.path, `${LANE_8080}.lock`), 'true']).status).toBe(1);
    }
    expect(reports.map((report) => report.reason)).toEqual(['sidecar_not_written']);
  });

  it('a sidecar of garbage is told by who would read it, and replaced by the next turn', async () => {
    using folder = tempFolder();
    const { gate, reports, onReport } = gateIn(folder.path);
    await using holder = await pythonHolder(join(folder.path, `${LANE_8080}.lock`));
    writeFileSync(join(folder.path, `${LANE_8080}.json`), '{"schema":');
    for (let turn = 0; turn < 3; turn += 1) {
      expect(gate.tryTurn(URL_8080, { onReport })).toMatchObject({
        kind: 'busy',
        holder: { pid: holder.pid, session: null },
      });
    }
    expect(reports.map((report) => report.reason)).toEqual(['sidecar_garbage']);
    await holder.end();
    using turn = gate.tryTurn(URL_8080, { onReport, session: 'next' });
    expect(turn.kind).toBe('held');
    expect(readFileSync(join(folder.path, `${LANE_8080}.json`), 'utf8')).toContain('"next"');
  });

  it('a width of garbage is told, and the lane is one turn wide', () => {
    using folder = tempFolder();
    writeFileSync(join(folder.path, `${LANE_8080}.width`), 'wide');
    const { gate, reports, onReport } = gateIn(folder.path);
    using turn = gate.tryTurn(URL_8080, { onReport });
    expect(gate.tryTurn(URL_8080, { onReport, session: 'b' }).kind).toBe('busy');
    expect(turn.kind).toBe('held');
    expect(reports.map((report) => report.reason)).toEqual(['width_garbage']);
  });
});

describe('the lane is the file at its path', () => {
  it('after it was deleted under an idle process too (rule 19)', () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const path = join(folder.path, `${LANE_8080}.lock`);
    gate.tryTurn(URL_8080)[Symbol.dispose]();
    rmSync(path);
    using turn = gate.tryTurn(URL_8080);
    expect(turn.kind).toBe('held');
    expect(statSync(path).isFile()).toBe(true);
    expect(runToEnd(['flock', '-n', path, 'true']).status).toBe(1);
  });
});

describe('no process waits on itself (rule 20)', () => {
  it('a turn inside a turn passes, and not once the outer one is over', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    let late: () => string = () => '';
    const done = await withTurn(gate, URL_8080, { session: 'a' }, async (outer) => {
      if (outer.kind !== 'held') throw new Error(outer.kind);
      const inner = await withTurn(
        gate,
        'http://localhost:8080',
        { session: 'a', waitMs: 60_000 },
        (turn) => turn,
      );
      expect(inner).toMatchObject({ ok: true, value: { kind: 'nested', turn: outer.turn } });
      late = (await import('node:async_hooks')).AsyncLocalStorage.bind(() => {
        using turn = gate.tryTurn(URL_8080);
        return turn.kind;
      });
      return late();
    });
    expect(done).toEqual({ ok: true, value: 'nested' });
    expect(late()).toBe('held');
  });

  it('two sessions of one process exclude one another all the same', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const session = (name: string) =>
      withTurn(
        gate,
        URL_8080,
        { session: name },
        () => new Promise((resolve) => setTimeout(resolve, 50, name)),
      );
    const results = await Promise.all([session('a'), session('b')]);
    expect(results.map((result) => result.ok).sort()).toEqual([false, true]);
  });

  it('a turn that names the holder’s turn passes while that one really holds the lane', async () => {
    using folder = tempFolder();
    await using holder = await nodeHolder(folder.path, 'a');
    const { turn } = JSON.parse(readFileSync(join(folder.path, `${LANE_8080}.json`), 'utf8'));
    const inside = gateIn(folder.path, {}, { LANDLORD_TURN: turn }).gate;
    expect(inside.tryTurn(URL_8080)).toMatchObject({ kind: 'nested', turn });
    const other = gateIn(folder.path, {}, { LANDLORD_TURN: 'made-up' }).gate;
    expect(other.tryTurn(URL_8080).kind).toBe('busy');
    await holder.end();
    using after = inside.tryTurn(URL_8080);
    expect(after.kind).toBe('held');
  });

  it('a name of an old turn does not pass by another program’s lock', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    gate.tryTurn(URL_8080, { turn: 'old' })[Symbol.dispose]();
    await using _holder = await pythonHolder(join(folder.path, `${LANE_8080}.lock`));
    const { gate: stale } = gateIn(folder.path, {}, { LANDLORD_TURN: 'old' });
    expect(stale.tryTurn(URL_8080).kind).toBe('busy');
  });
});

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
