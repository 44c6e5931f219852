import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { laneFiles } from '../../../electron/core/gate/lane-files.ts';
import { setUpLane } from '../../../electron/core/gate/lane-setup.ts';
import { lanesMeant, parseMeaning } from '../../../electron/core/gate/means.ts';
import { startTimeOf } from '../../../electron/core/gate/process-start.ts';
import { gateIn, runToEnd, tempFolder } from '../../support/gate.ts';

describe('ports that mean other lanes', () => {
  it('take the front’s lane, then the backend’s, from either port', () => {
    using folder = tempFolder();
    const means = { lanes: ['127.0.0.1_8082', '127.0.0.1_8081'], models: {} };
    for (const name of means.lanes) setUpLane(folder.path, { name, width: 1, means }, false);
    const { gate } = gateIn(folder.path);
    for (const port of [8081, 8082]) {
      using turn = gate.tryTurn(`http://localhost:${port}`);
      if (turn.kind !== 'held') throw new Error(turn.kind);
      expect(turn.locks).toEqual([
        `${folder.path}/127.0.0.1_8082.lock`,
        `${folder.path}/127.0.0.1_8081.lock`,
      ]);
      for (const other of means.lanes)
        expect(runToEnd(['flock', '-n', `${folder.path}/${other}.lock`, 'true']).status).toBe(1);
    }
  });

  it('hold none while another has one of them', () => {
    using folder = tempFolder();
    const means = { lanes: ['127.0.0.1_8082', '127.0.0.1_8081'], models: {} };
    setUpLane(folder.path, { name: '127.0.0.1_8082', width: 1, means }, false);
    const { gate } = gateIn(folder.path);
    using back = gate.tryTurn('http://localhost:8081', { session: 'a' });
    expect(back.kind).toBe('held');
    expect(gate.tryTurn('http://localhost:8082', { session: 'b' }).kind).toBe('busy');
    expect(runToEnd(['flock', '-n', `${folder.path}/127.0.0.1_8082.lock`, 'true']).status).toBe(0);
  });

  it('go by model behind a gateway, and take none where the gateway’s model is not local', () => {
    using folder = tempFolder();
    const models = { 'qwen-27b': ['127.0.0.1_8081'] };
    setUpLane(folder.path, { name: '127.0.0.1_7781', width: 1, means: { lanes: [], models } }, false);
    const lane = laneFiles(folder.path, '127.0.0.1_7781');
    expect(lanesMeant(lane, 'qwen-27b').lanes.map((entry) => entry.name)).toEqual(['127.0.0.1_8081']);
    expect(lanesMeant(lane, 'toString').lanes).toEqual([]);
    const { gate } = gateIn(folder.path);
    expect(gate.tryTurn('http://localhost:7781/v1', { model: 'cloud' })).toMatchObject({
      kind: 'skipped',
      why: 'no_lane',
    });
  });

  it('go by the backend a model’s name begins with, the longest first, and its own name before that', () => {
    using folder = tempFolder();
    const models = {
      'a/*': ['127.0.0.1_8081'],
      'a/b/*': ['127.0.0.1_8082'],
      'a/b/exact': ['127.0.0.1_8083'],
    };
    setUpLane(folder.path, { name: '127.0.0.1_7781', width: null, means: { lanes: [], models } }, false);
    const lane = laneFiles(folder.path, '127.0.0.1_7781');
    const meant = (model: string): readonly string[] => lanesMeant(lane, model).lanes.map(({ name }) => name);
    expect(meant('a/m')).toEqual(['127.0.0.1_8081']);
    expect(meant('a/b/m')).toEqual(['127.0.0.1_8082']);
    expect(meant('a/b/exact')).toEqual(['127.0.0.1_8083']);
    expect([meant('a'), meant('ab/m'), meant('x/a/m')]).toEqual([[], [], []]);
  });

  it('stand for others only while the process that said so lives', () => {
    using folder = tempFolder();
    const lane = laneFiles(folder.path, '127.0.0.1_7781');
    const say = (writer: { pid: number; startTime: number | null }): readonly string[] => {
      const means = { lanes: ['127.0.0.1_8081'], models: {}, writer };
      expect(setUpLane(folder.path, { name: lane.name, width: null, means }, false).ok).toBe(true);
      return lanesMeant(lane, null).lanes.map(({ name }) => name);
    };
    const ended = Number(runToEnd(['sh', '-c', 'echo $$']).stdout);
    const startTime = startTimeOf(process.pid);
    expect(startTime).not.toBeNull();
    expect(say({ pid: process.pid, startTime })).toEqual(['127.0.0.1_8081']);
    expect(say({ pid: process.pid, startTime: 1 })).toEqual(['127.0.0.1_7781']);
    expect(say({ pid: ended, startTime: null })).toEqual(['127.0.0.1_7781']);
  });

  it('are their own lane where the file says nothing that can be read', () => {
    for (const text of [
      '',
      '{}',
      '{"schema":"vram-landlord/gate-means/1","lanes":["../../x"]}',
      '{"schema":"vram-landlord/gate-means/1","lanes":7}',
      '{"schema":"vram-landlord/gate-means/1","lanes":[]}',
      '{"schema":"vram-landlord/gate-means/1","lanes":[],"models":{}}',
    ])
      expect(parseMeaning(text), text).toBeNull();
  });
});

describe('setting up a lane', () => {
  it('writes what differs from the usual, changes nothing twice, and takes it back', () => {
    using folder = tempFolder();
    const root = join(folder.path, 'new', 'gates');
    const wide = { name: '127.0.0.1_8080', width: 3, means: null };
    expect(setUpLane(root, wide, true).ok).toBe(true);
    const path = join(root, '127.0.0.1_8080.width');
    expect(readFileSync(path, 'utf8')).toBe('3\n');
    expect(statSync(path).mode & 0o777).toBe(0o644);
    const { ino } = statSync(path);
    setUpLane(root, wide, true);
    expect(statSync(path).ino).toBe(ino);
    setUpLane(root, { ...wide, width: 1 }, true);
    expect(readdirSync(root)).toEqual([]);
  });

  it('says in a sentence that it can not', () => {
    using folder = tempFolder();
    mkdirSync(join(folder.path, '127.0.0.1_8080.width', 'x'), { recursive: true });
    const done = setUpLane(folder.path, { name: '127.0.0.1_8080', width: 2, means: null }, false);
    expect(done).toMatchObject({ ok: false, error: { code: 'storage_failed' } });
    expect(readdirSync(folder.path)).toEqual(['127.0.0.1_8080.width']);
  });
});
