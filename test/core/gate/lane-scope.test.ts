import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { laneSetups, lanesOfBackend, lanesOfModel } from '../../../electron/core/gate/backend-lanes.ts';
import { setUpLane } from '../../../electron/core/gate/lane-setup.ts';
import { parseMeaning } from '../../../electron/core/gate/means.ts';
import { lanesBehindGateway } from '../../../electron/core/gateway/gateway-lanes.ts';
import { LaneWriter } from '../../../electron/core/loop/lane-writer.ts';
import { ok } from '../../../shared/errors.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import { backendSetting } from '../../support/backend-setting.ts';
import { gateIn, tempFolder } from '../../support/gate.ts';
import { modelView } from '../../support/model-view.ts';

const CARD = 'pci:0000:03:00.0';
const one = backendSetting({
  name: 'one',
  url: 'http://127.0.0.1:8080',
  lanes: 1,
  lane: 'device',
  device: CARD,
});
const two = backendSetting({
  name: 'two',
  url: 'http://localhost:8081',
  lanes: 1,
  lane: 'device',
  device: CARD,
});
const other = backendSetting({
  name: 'other',
  url: 'http://127.0.0.1:8082',
  lanes: 1,
  lane: 'device',
  device: 'pci:0000:04:00.0',
});
const each = backendSetting({ name: 'each', url: 'http://127.0.0.1:8080', lanes: 1, lane: 'model' });

function gateOf(root: string, backends: readonly BackendSetting[], models: readonly string[] = []) {
  for (const setup of laneSetups(backends, undefined, () => models)) {
    const done = setUpLane(root, setup, false);
    if (!done.ok) throw new Error(done.error.message);
  }
  return gateIn(root).gate;
}

describe('lane: device', () => {
  it('backends on one device share a lane beside their own; those on another do not', () => {
    using folder = tempFolder();
    const gate = gateOf(folder.path, [one, two, other]);
    using first = gate.tryTurn('http://127.0.0.1:8080', { session: 'a' });
    expect(first.kind).toBe('held');
    expect(gate.tryTurn('http://127.0.0.1:8081', { session: 'b' }).kind).toBe('busy');
    using elsewhere = gate.tryTurn('http://127.0.0.1:8082', { session: 'c' });
    expect(elsewhere.kind).toBe('held');
    if (first.kind === 'held') first.release();
    using second = gate.tryTurn('http://localhost:8081', { session: 'b' });
    expect(second.kind).toBe('held');
    // Whoever has the device has it whatever backend is asked.
    expect(gate.tryTurn('http://127.0.0.1:8080', { session: 'a' }).kind).toBe('busy');
  });

  it('is taken last, so that two turns never wait for each other, and named as any lane is', () => {
    const lanes = lanesOfBackend({ ...one, front: 9000 });
    expect(lanes).toEqual(['127.0.0.1_9000', '127.0.0.1_8080', `device-${CARD}_0`]);
    const [setup] = laneSetups([one]);
    expect(parseMeaning(JSON.stringify({ schema: 'vram-landlord/gate-means/1', ...setup?.means }))).toEqual(
      setup?.means,
    );
    expect(lanesOfBackend({ ...one, device: '../Weird device' }).at(-1)).toBe('device-..-weird-device_0');
  });

  it('is as wide as the narrowest of those that share it', () => {
    const setups = laneSetups([
      { ...one, lanes: 3 },
      { ...two, lanes: 2 },
    ]);
    expect(setups.find((setup) => setup.name.startsWith('device-'))?.width).toBe(2);
  });
});

describe('lane: model', () => {
  it('turns on two models of one backend do not wait for each other; two on one do', () => {
    using folder = tempFolder();
    const gate = gateOf(folder.path, [each], ['qwen', 'gemma']);
    using first = gate.tryTurn('http://127.0.0.1:8080', { session: 'a', model: 'qwen' });
    using second = gate.tryTurn('http://127.0.0.1:8080', { session: 'b', model: 'gemma' });
    expect([first.kind, second.kind]).toEqual(['held', 'held']);
    expect(gate.tryTurn('http://127.0.0.1:8080', { session: 'c', model: 'qwen' }).kind).toBe('busy');
  });

  it('the gateway’s port means the model’s own lane, by each of its names', () => {
    const views = [
      modelView({ backend: 'each', name: 'qwen', aliases: ['fast'] }),
      modelView({ backend: 'each', name: 'gemma' }),
    ];
    const own = lanesOfModel(each, 'qwen');
    expect(own).toHaveLength(1);
    expect(own).not.toEqual(lanesOfModel(each, 'gemma'));
    for (const backends of [[each], [each, { ...two, lane: 'backend' as const }]]) {
      const means = lanesBehindGateway(backends, views, 7781);
      for (const name of ['each/qwen', 'qwen', 'fast']) expect(means?.models[name]).toEqual(own);
      expect(parseMeaning(JSON.stringify({ schema: 'vram-landlord/gate-means/1', ...means }))).toEqual(means);
    }
  });

  it('follows the models as they come and go, and is taken back with the setting', async () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    const { gate } = gateIn(root);
    const store = { get: async () => null, set: async () => ok(undefined) };
    const writer = await LaneWriter.create(gate, { tell: () => undefined }, store);
    writer.write([each]);
    writer.follow([each], [modelView({ backend: 'each', name: 'qwen' })]);
    using first = gate.tryTurn('http://127.0.0.1:8080', { session: 'a', model: 'qwen' });
    expect(first.kind === 'held' && first.locks[0]).toMatch(/127\.0\.0\.1-8080-m[0-9a-f]{10}_0\.lock$/);
    writer.write([{ ...each, lane: 'backend' }]);
    expect(readdirSync(root).filter((name) => name.endsWith('.means'))).toEqual([]);
  });
});

it('without a scope a backend has its one lane, as ever', () => {
  const plain = backendSetting({ lanes: 1 });
  expect(laneSetups([plain])).toEqual([{ name: '127.0.0.1_8080', width: 1, means: null }]);
  expect(lanesOfModel(plain, 'qwen')).toEqual(['127.0.0.1_8080']);
});
