import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Runtime, startRuntime } from '../../electron/core/runtime.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import { gateIn, type TempFolder, tempFolder, URL_8080, until } from '../support/gate.ts';

let folder: TempFolder;
let root: string;
let configPath: string;
let runtime: Runtime | null;

beforeEach(() => {
  folder = tempFolder('lanes');
  root = join(folder.path, 'gates');
  configPath = join(folder.path, 'config.yaml');
  runtime = null;
});
afterEach(async () => {
  await runtime?.stop();
  folder[Symbol.dispose]();
});

function config(lanes: string): void {
  writeFileSync(
    configPath,
    `devices: [{ kind: system }]\nbackends: [{ name: router, kind: llama.cpp, url: "http://127.0.0.1:8080"${lanes} }]\n`,
  );
}

async function start(): Promise<Runtime> {
  const started = await startRuntime({
    configPath,
    stateDir: join(folder.path, 'state'),
    port: 0,
    pageDir: null,
    discoverPorts: [],
    systemLog: false,
    env: { VRAM_LANDLORD_GATE_DIR: root },
  });
  if (!started.ok) throw new Error(started.error.message);
  runtime = started.value;
  return runtime;
}

const width = (): string | null => {
  const path = join(root, '127.0.0.1_8080.width');
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
};

it('the config’s lanes are every process’s, from the start and with each change', async () => {
  config(', lanes: 2');
  const landlord = await start();
  expect(width()).toBe('2\n');
  const { gate } = gateIn(root);
  using _one = gate.tryTurn(URL_8080, { session: 'one' });
  using two = gate.tryTurn(URL_8080, { session: 'two' });
  expect([two.kind, gate.tryTurn(URL_8080, { session: 'three' }).kind]).toEqual(['held', 'busy']);
  const lane = (): unknown => landlord.state().lanes[0];
  await until(() => landlord.state().lanes[0]?.held === true, 'the lane to be seen as held');
  expect(lane()).toMatchObject({ backend: 'router', configured: true, width: 2 });
  config(', lanes: 3, front: 8082');
  await until(() => width() === '3\n', 'the new width');
  config('');
  await until(() => width() === null, 'the width to be taken back');
  await until(() => landlord.state().lanes[0]?.configured === false, 'the lane to be nobody’s wish');
  expect(readdirSync(root).filter((name) => /width|means/.test(name))).toEqual([]);
});

it('without lanes in the config nothing is made', async () => {
  config('');
  const landlord = await start();
  await until(() => landlord.state().lanes.length === 1, 'the lanes to be looked at');
  expect(existsSync(root)).toBe(false);
});

it('a root that can’t be written is one event, and the runtime runs', async () => {
  writeFileSync(root, 'a file');
  config(', lanes: 2');
  const landlord = await start();
  let opened: readonly LandlordEvent[] = [];
  await landlord.events({ kinds: ['fail_open'] }).then((found) => {
    if (found.ok) opened = found.value;
  });
  expect(opened).toMatchObject([{ backend: 'router', reason: expect.stringContaining(root) }]);
});
