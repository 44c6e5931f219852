import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allHeld, commandOf, ghostsIn, inspectLane } from '../../../electron/core/gate/inspect.ts';
import { type LockTable, readLockTable } from '../../../electron/core/gate/kernel-locks.ts';
import { laneFiles } from '../../../electron/core/gate/lane-files.ts';
import { createLaneWatch } from '../../../electron/core/gate/lane-watch.ts';
import { heldInLine, turnHolds } from '../../../electron/core/gate/nested.ts';
import {
  gateIn,
  LANE_8080,
  nodeHolder,
  pythonHolder,
  startOther,
  tempFolder,
  URL_8080,
  until,
} from '../../support/gate.ts';

const BACKENDS = [
  { name: 'router', url: URL_8080 },
  { name: 'cloud', url: 'https://api.example.com' },
  { name: 'embedded', url: null },
];

describe('looking at a lane', () => {
  it('does not take a turn of this process for held that has ended since the table was read', () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const lane = laneFiles(folder.path, LANE_8080);
    const turn = gate.tryTurn(URL_8080);
    const before = readLockTable();
    expect(inspectLane(lane, before)).toMatchObject({ held: true, holders: [{ pid: process.pid }] });
    turn[Symbol.dispose]();
    expect(inspectLane(lane, before)).toMatchObject({ held: false, holders: [] });
  });

  it('tells idle, holder and width, and takes nothing', async () => {
    using folder = tempFolder();
    const lane = laneFiles(folder.path, LANE_8080);
    expect(inspectLane(lane)).toMatchObject({
      held: false,
      width: 1,
      holders: [],
      waiting: 0,
      slots: [{ inode: null }],
    });
    await using holder = await nodeHolder(folder.path, 'writer');
    const { ino } = statSync(join(folder.path, `${LANE_8080}.lock`));
    expect(inspectLane(lane)).toMatchObject({
      held: true,
      slots: [{ inode: ino, note: null }],
      holders: [{ pid: holder.pid, session: 'writer', model: 'qwen-27b', class: 'interactive' }],
    });
    await holder.end();
    const { gate } = gateIn(folder.path);
    for (let look = 0; look < 50; look += 1) {
      expect(inspectLane(lane).held).toBe(false);
      using turn = gate.tryTurn(URL_8080);
      expect(turn.kind).toBe('held');
    }
  });

  it('sees a holder whose locker has gone: the flock program took it for a shell', async () => {
    using folder = tempFolder();
    const path = join(folder.path, `${LANE_8080}.lock`);
    writeFileSync(path, '');
    await using shell = startOther([
      'sh',
      '-c',
      'exec 9<"$1" && flock -n 9 && echo held && read _',
      'sh',
      path,
    ]);
    await shell.line();
    const lane = laneFiles(folder.path, LANE_8080);
    expect(inspectLane(lane)).toMatchObject({ held: true, holders: [{ pid: shell.pid }] });
    expect(inspectLane(lane).slots[0]?.note).toContain(String(shell.pid));
  });

  it('does not believe a sidecar of a process that no longer holds it', async () => {
    using folder = tempFolder();
    const first = await nodeHolder(folder.path, 'writer');
    await first.kill();
    const lane = laneFiles(folder.path, LANE_8080);
    expect(inspectLane(lane)).toMatchObject({ held: false, holders: [] });
    await using other = await pythonHolder(join(folder.path, `${LANE_8080}.lock`));
    expect(inspectLane(lane).holders).toMatchObject([{ pid: other.pid, session: null, acquiredAt: null }]);
  });

  it('says unknown where the kernel’s table is not there or not whole, never idle (rule 12)', () => {
    using folder = tempFolder();
    const lane = laneFiles(folder.path, LANE_8080);
    writeFileSync(join(folder.path, `${LANE_8080}.lock`), '');
    expect(inspectLane(lane, null).held).toBeNull();
    expect(inspectLane(lane, { locks: [], complete: false }).held).toBeNull();
    expect(inspectLane(lane, { locks: [], complete: true }).held).toBe(false);
  });

  it('counts a wide lane as held when every slot is', () => {
    expect(allHeld([true, true])).toBe(true);
    expect(allHeld([true, false, null])).toBe(false);
    expect(allHeld([true, null])).toBeNull();
  });

  it('counts those who wait: our own, and others blocked in flock', async () => {
    using folder = tempFolder();
    const path = join(folder.path, `${LANE_8080}.lock`);
    const { gate } = gateIn(folder.path);
    using _turn = gate.tryTurn(URL_8080, { session: 'a' });
    await using _blocked = startOther(['flock', path, 'true']);
    const { acquireTurn } = await import('../../../electron/core/gate/acquire.ts');
    const controller = new AbortController();
    const waiting = acquireTurn(gate, URL_8080, { session: 'b', waitMs: 60_000, signal: controller.signal });
    const lane = laneFiles(folder.path, LANE_8080);
    await until(() => inspectLane(lane).waiting === 2, 'two who wait');
    controller.abort();
    await waiting;
  });

  it('finds locks held on files that are not at their path', async () => {
    using folder = tempFolder();
    const path = join(folder.path, `${LANE_8080}.lock`);
    await using holder = await pythonHolder(path);
    expect(ghostsIn(folder.path)).toEqual([]);
    renameSync(path, `${path}.old`);
    expect(ghostsIn(folder.path)).toMatchObject([{ pid: holder.pid, path: `${path}.old` }]);
    writeFileSync(path, '');
    rmSync(`${path}.old`);
    expect(ghostsIn(folder.path)).toMatchObject([{ pid: holder.pid }]);
  });
});

describe('who holds it by the kernel’s word, in a line of ancestors (rule 20)', () => {
  it('finds a parent that has it open, and nobody once it is free', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const lane = laneFiles(folder.path, LANE_8080);
    const turn = gate.tryTurn(URL_8080, { session: 'agent', turn: 't9' });
    await using child = startOther(['sh', '-c', 'sleep 60 & echo $!; wait']);
    const grandchild = Number(await child.line());
    expect(heldInLine(lane, grandchild)).toEqual({ pid: process.pid, session: 'agent', turn: 't9' });
    expect(turnHolds(lane, 't9')).toBe(true);
    expect(turnHolds(lane, 't8')).toBe(false);
    turn[Symbol.dispose]();
    expect(turnHolds(lane, 't9')).toBe(false);
    expect(heldInLine(lane, grandchild)).toBeNull();
    process.kill(grandchild, 'SIGKILL');
  });
});

describe('watching lanes', () => {
  it('gives one lane a local backend, with its holder and since when we saw it', async () => {
    using folder = tempFolder();
    const { gate } = gateIn(folder.path);
    const watch = createLaneWatch(gate);
    expect(watch.read(BACKENDS, 0)).toMatchObject([
      { state: { backend: 'router', held: false, holders: [], waiting: 0, width: 1 }, heldSinceMs: null },
    ]);
    await using holder = await nodeHolder(folder.path, 'writer');
    expect(watch.read(BACKENDS, 1000)).toMatchObject([
      { state: { held: true, holders: [{ pid: holder.pid }] }, heldSinceMs: 1000 },
    ]);
    expect(watch.read(BACKENDS, 9000)).toMatchObject([{ heldSinceMs: 1000 }]);
    await holder.end();
    await using next = await nodeHolder(folder.path, 'reader');
    expect(watch.read(BACKENDS, 9500)).toMatchObject([
      { state: { holders: [{ pid: next.pid, session: 'reader' }] }, heldSinceMs: 9500 },
    ]);
  });

  it('reads the kernel’s table once for all lanes', () => {
    using folder = tempFolder();
    let reads = 0;
    const table = (): LockTable | null => {
      reads += 1;
      return readLockTable();
    };
    createLaneWatch(gateIn(folder.path).gate, table).read(
      [...BACKENDS, { name: 'b', url: 'http://localhost:9090' }],
      0,
    );
    expect(reads).toBe(1);
  });
});

it('tells what a holder runs without the keys it was given', async () => {
  const child = spawn(process.execPath, [
    ...[
      '-e',
      'setInterval(() => {}, 1000)',
      '--',
      '--api-key',
      'abcdef',
      '-H',
      'Authorization: Bearer a1b2c3d4',
    ],
    'http://user:pa55@host/?token=xyz',
  ]);
  try {
    await once(child, 'spawn');
    const command = commandOf(child.pid ?? 0) ?? '';
    expect(command).toContain('setInterval');
    expect(command).not.toMatch(/abcdef|a1b2c3d4|pa55|xyz/);
  } finally {
    child.kill('SIGKILL');
  }
});
