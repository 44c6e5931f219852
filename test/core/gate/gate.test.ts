import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { inspectLane } from '../../../electron/core/gate/inspect.ts';
import { laneFiles } from '../../../electron/core/gate/lane-files.ts';
import { turnHolds } from '../../../electron/core/gate/nested.ts';
import { sidecarOf, writeSidecar } from '../../../electron/core/gate/sidecar.ts';
import { withTurn } from '../../../electron/core/gate/with-turn.ts';
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

  it('a stranger that has copied the name of the holder’s turn does not pass', async () => {
    using folder = tempFolder();
    await using holder = await nodeHolder(folder.path, 'a');
    const { turn } = JSON.parse(readFileSync(join(folder.path, `${LANE_8080}.json`), 'utf8'));
    const stranger = gateIn(folder.path, {}, { LANDLORD_TURN: turn }).gate;
    expect(stranger.tryTurn(URL_8080).kind).toBe('busy');
    await holder.end();
    using after = stranger.tryTurn(URL_8080);
    expect(after.kind).toBe('held');
  });

  it('turns inside turns on several lanes pass each of them, in any order', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const other = 'http://127.0.0.1:9090';
    const kinds = await withTurn(gate, URL_8080, { session: 'a' }, async (outer) => {
      const inner = await withTurn(gate, other, { session: 'a' }, async (turn) => {
        const again = await withTurn(gate, URL_8080, { waitMs: 60_000 }, (nested) => nested);
        if (!again.ok || outer.kind !== 'held' || turn.kind !== 'held') throw new Error('not so');
        expect(turn.env).toEqual({ LANDLORD_TURN: `${outer.turn},${turn.turn}` });
        return again.value.kind;
      });
      return inner;
    });
    expect(kinds).toEqual({ ok: true, value: { ok: true, value: 'nested' } });
  });

  it('another thread of this process is another turn', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    using turn = gate.tryTurn(URL_8080, { sidecar: false });
    expect(turn.kind).toBe('held');
    const worker = new Worker(new URL('../../support/gate-turns.ts', import.meta.url), {
      argv: [URL_8080],
      env: { VRAM_LANDLORD_GATE_DIR: folder.path, VRAM_LANDLORD_REPORTS: 'off' },
      stdout: true,
    });
    let said = '';
    worker.stdout.on('data', (part) => {
      said += String(part);
    });
    await once(worker, 'exit');
    expect(JSON.parse(said)).toMatchObject({ kinds: ['busy', 'busy', 'busy'] });
  });

  it('an old sidecar of this very process does not speak for a later turn without one', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const lane = laneFiles(folder.path, LANE_8080);
    gate.tryTurn(URL_8080, { turn: 'old' })[Symbol.dispose]();
    expect(existsSync(join(folder.path, `${LANE_8080}.json`))).toBe(false);
    for (const sidecar of [false, 'soon'] as const) {
      // As left by a program that this process was before it became this one.
      writeSidecar(
        join(folder.path, `127.0.0.1_${sidecar === false ? 9001 : 9002}.json`),
        sidecarOf({ session: null, model: null, class: null, turn: 'old' }, 0),
        0o600,
      );
      const port = sidecar === false ? 9001 : 9002;
      using turn = gate.tryTurn(`http://localhost:${port}`, { sidecar });
      expect(turn.kind).toBe('held');
      expect(turnHolds(laneFiles(folder.path, `127.0.0.1_${port}`), 'old')).toBe(false);
    }
    using now = gate.tryTurn(URL_8080, { sidecar: false });
    expect([now.kind, turnHolds(lane, 'old')]).toEqual(['held', false]);
  });

  it.each(['startTime', 'pid'])('a sidecar of another %s, or none, proves nothing', (field) => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const lane = laneFiles(folder.path, LANE_8080);
    const path = join(folder.path, `${LANE_8080}.json`);
    using turn = gate.tryTurn(URL_8080, { turn: 'mine' });
    expect([turn.kind, turnHolds(lane, 'mine')]).toEqual(['held', true]);
    const written: Record<string, unknown> = JSON.parse(readFileSync(path, 'utf8'));
    for (const value of [undefined, null, Number(written[field]) + 1]) {
      writeFileSync(path, JSON.stringify({ ...written, [field]: value }));
      expect(turnHolds(lane, 'mine'), String(value)).toBe(false);
      expect(inspectLane(lane)).toMatchObject({ held: true, holders: [{ session: null, turn: null }] });
    }
  });

  it('a release leaves the sidecar of the turn that replaced its lock alone', () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const first = gate.tryTurn(URL_8080, { turn: 'first' });
    rmSync(join(folder.path, `${LANE_8080}.lock`));
    using second = gate.tryTurn(URL_8080, { turn: 'second' });
    first[Symbol.dispose]();
    expect(second.kind).toBe('held');
    expect(readFileSync(join(folder.path, `${LANE_8080}.json`), 'utf8')).toContain('"second"');
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
