import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LaneWriter } from '../../../electron/core/loop/lane-writer.ts';
import { ok } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { backendSetting } from '../../support/backend-setting.ts';
import { gateIn, tempFolder } from '../../support/gate.ts';

interface Scene {
  /** As the runtime does at each start. */
  start(): Promise<LaneWriter>;
  readonly told: NewEvent[];
  readonly gate: ReturnType<typeof gateIn>['gate'];
}

function sceneIn(root: string, world: Parameters<typeof gateIn>[1] = {}): Scene {
  const facts = new Map<string, unknown>();
  const told: NewEvent[] = [];
  const { gate } = gateIn(root, world);
  const store = {
    get: async (key: string) => facts.get(key),
    set: async (key: string, value: unknown) => {
      facts.set(key, value);
      return ok(undefined);
    },
  };
  return {
    start: () => LaneWriter.create(gate, { tell: (event) => void told.push(event) }, store),
    told,
    gate,
  };
}

describe('lanes of the config', () => {
  it('are written where every process looks: the width, and both ports of a backend with a front', async () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    const { start, told, gate } = sceneIn(root);
    const writer = await start();
    writer.write([
      backendSetting({ lanes: 3 }),
      backendSetting({ name: 'big', url: 'http://localhost:8081', front: 8082, lanes: 1 }),
    ]);
    expect(readdirSync(root).sort()).toEqual([
      '127.0.0.1_8080.width',
      '127.0.0.1_8081.means',
      '127.0.0.1_8082.means',
    ]);
    const turns = Array.from(
      { length: 4 },
      (_, i) => gate.tryTurn('http://127.0.0.1:8080', { session: `${i}` }).kind,
    );
    expect(turns).toEqual(['held', 'held', 'held', 'busy']);
    for (const port of [8081, 8082]) {
      using turn = gate.tryTurn(`http://127.0.0.1:${port}/v1`);
      expect(turn.kind === 'held' ? turn.locks : turn.kind).toEqual([
        `${root}/127.0.0.1_8082.lock`,
        `${root}/127.0.0.1_8081.lock`,
      ]);
    }
    expect(told).toEqual([]);
  });

  it('change nothing where they stand already', async () => {
    using folder = tempFolder();
    const { start } = sceneIn(folder.path);
    const backends = [backendSetting({ lanes: 3, front: 8082 })];
    (await start()).write(backends);
    const inodes = (): number[] =>
      readdirSync(folder.path).map((name) => statSync(join(folder.path, name)).ino);
    const before = inodes();
    const again = await start();
    again.write(backends);
    again.write(backends);
    expect(before).toHaveLength(4);
    expect(inodes()).toEqual(before);
  });

  it('follow the config, also across a restart, and touch no lane that it never named', async () => {
    using folder = tempFolder();
    const { start } = sceneIn(folder.path);
    const others = join(folder.path, '127.0.0.1_9999.width');
    writeFileSync(others, '2\n');
    const writer = await start();
    writer.write([
      backendSetting({ lanes: 3 }),
      backendSetting({ name: 'b', url: 'http://localhost:8090', lanes: 2 }),
    ]);
    writer.write([backendSetting({ lanes: 4 })]);
    expect(readFileSync(join(folder.path, '127.0.0.1_8080.width'), 'utf8')).toBe('4\n');
    expect(readdirSync(folder.path).sort()).toEqual(['127.0.0.1_8080.width', '127.0.0.1_9999.width']);
    (await start()).write(null);
    expect(readdirSync(folder.path)).toEqual(['127.0.0.1_9999.width']);
  });

  it('that were found by themselves, are elsewhere or say nothing of lanes make nothing, not even a folder', async () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    const { start, told } = sceneIn(root);
    const writer = await start();
    writer.write(null);
    writer.write([
      backendSetting({ lanes: 3, found: true }),
      backendSetting({ name: 'far', url: 'http://192.0.2.7:8080', lanes: 3 }),
      backendSetting({ name: 'plain' }),
      backendSetting({ name: 'embedded', kind: 'embedded', url: null, lanes: 2 }),
    ]);
    expect(existsSync(root)).toBe(false);
    expect(told).toEqual([]);
  });

  it('in a root that can’t be written are one event, and another only after it worked again', async () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    writeFileSync(root, 'a file');
    const { start, told } = sceneIn(root);
    const writer = await start();
    const backends = [backendSetting({ lanes: 3 })];
    writer.write(backends);
    writer.write(backends);
    expect(told).toMatchObject([
      { kind: 'fail_open', backend: 'router', reason: expect.stringContaining(root) },
    ]);
    rmSync(root);
    writer.write(backends);
    expect(told).toHaveLength(1);
    rmSync(root, { recursive: true });
    writeFileSync(root, 'a file');
    writer.write(backends);
    expect(told).toHaveLength(2);
  });

  it('in a root on a network are one event, and nothing is written there', async () => {
    using folder = tempFolder();
    const { start, told } = sceneIn(folder.path, { networkFileSystem: () => 'NFS' });
    (await start()).write([backendSetting({ lanes: 3 })]);
    expect(told).toMatchObject([{ kind: 'fail_open', reason: expect.stringContaining('NFS') }]);
    expect(readdirSync(folder.path)).toEqual([]);
  });
});
