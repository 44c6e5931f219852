import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Runtime, startRuntime } from '../../electron/core/runtime.ts';
import { resolvePaths } from '../../electron/core/state-dir/paths.ts';
import { acquireRuntimeLock } from '../../electron/core/state-dir/runtime-lock.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import {
  LANDLORD,
  LANE_8080,
  NODE,
  nodeHolder,
  type Other,
  startOther,
  type TempFolder,
  tempFolder,
  URL_8080,
  until,
  withPasswd,
} from '../support/gate.ts';

const LIBRARY = new URL('../../electron/core/gate/index.ts', import.meta.url).href;
const CONFIG = `
devices: [{ kind: system }]
backends: [{ name: router, kind: llama.cpp, url: "http://127.0.0.1:8080", lanes: 1 }]
`;

let folder: TempFolder;
let root: string;
let runtime: Runtime | null;
let events: LandlordEvent[];

/** A runtime whose files are where a process with this user's XDG_STATE_HOME looks. */
async function startHere(stateHome: string): Promise<void> {
  const configPath = join(folder.path, 'config.yaml');
  writeFileSync(configPath, CONFIG);
  const started = await startRuntime({
    configPath,
    stateDir: join(stateHome, 'vram-landlord'),
    port: 0,
    pageDir: null,
    discoverPorts: [],
    systemLog: false,
    env: { VRAM_LANDLORD_GATE_DIR: root },
  });
  if (!started.ok) throw new Error(started.error.message);
  runtime = started.value;
  runtime.onEvent((event) => events.push(event));
}

beforeEach(() => {
  folder = tempFolder('reports');
  root = join(folder.path, 'gates');
  runtime = null;
  events = [];
});
afterEach(async () => {
  await runtime?.stop();
  folder[Symbol.dispose]();
});

const seen = (kind: LandlordEvent['kind']): LandlordEvent[] => events.filter((event) => event.kind === kind);

function startTurn(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  prefix: readonly string[] = [],
): Other {
  const command = [...prefix, LANDLORD, 'turn', '--backend', URL_8080, ...args];
  return startOther(command, { env: { VRAM_LANDLORD_GATE_DIR: root, VRAM_LANDLORD_REPORTS: '', ...env } });
}

async function exitOf(turn: Other): Promise<number | null> {
  await turn.end();
  return turn.child.exitCode;
}

/** In time with the order of things: once this later event is there, an earlier one would be too. */
async function settle(): Promise<void> {
  runtime?.report({
    kind: 'deflected',
    reason: 'the last one',
    lane: null,
    session: null,
    model: null,
    numbers: {},
  });
  await until(() => events.at(-1)?.reason === 'the last one', 'the last event');
  events.pop();
}

describe('what other processes see of the gate is in the log of the runtime (rule 21)', () => {
  it('a turn that finds the lane busy: one event, with its session and the reason', async () => {
    const stateHome = join(folder.path, 'state');
    await startHere(stateHome);
    await using _holder = await nodeHolder(root, 'writer');
    const args = ['--session', 'nightly', '--model', 'qwen-27b', '--', 'true'];
    expect(await exitOf(startTurn(args, { XDG_STATE_HOME: stateHome }))).toBe(75);
    await settle();
    expect(seen('deflected')).toMatchObject([
      {
        session: 'nightly',
        backend: 'router',
        model: 'router/qwen-27b',
        reason: expect.stringMatching(
          /^local_backend_busy for nightly: local model in use by another session \(session writer, pid \d+/,
        ),
        numbers: { waitedMs: 0, holderPid: expect.any(Number), heldForMs: expect.any(Number) },
      },
    ]);
    expect(seen('fail_open')).toEqual([]);
  });

  it('a lock that can be none: the turns go through, and one event for all of them', async () => {
    const stateHome = join(folder.path, 'state');
    await startHere(stateHome);
    mkdirSync(join(root, `${LANE_8080}.lock`), { recursive: true });
    for (const code of [7, 8]) {
      const turn = startTurn(['--session', 'nightly', '--', 'sh', '-c', `exit ${code}`], {
        XDG_STATE_HOME: stateHome,
      });
      expect(await exitOf(turn)).toBe(code);
    }
    await settle();
    expect(seen('fail_open')).toMatchObject([
      { session: 'nightly', backend: 'router', reason: expect.stringContaining('is not a plain file') },
    ]);
  });

  it('a program that uses the library and ends at once is heard, and not where it says no', async () => {
    const stateHome = join(folder.path, 'state');
    await startHere(stateHome);
    await using _holder = await nodeHolder(root, 'writer');
    const script = `
      import { spawnSync } from 'node:child_process';
      import { tryTurn, walkFallbacks } from '${LIBRARY}';
      const chain = [{ url: '${URL_8080}' }, { url: 'https://api.example.com' }];
      const walk = await walkFallbacks(chain, { session: 'script' });
      spawnSync('sleep', ['0.5']);
      for (let turn = 0; turn < 5; turn += 1) tryTurn('${URL_8080}', { session: 'eager' });
      tryTurn('${URL_8080}', { session: 'quiet', reports: false });
      console.log(walk.kind);
    `;
    const env = { VRAM_LANDLORD_GATE_DIR: root, XDG_STATE_HOME: stateHome };
    const command = [...NODE, '--input-type=module', '-e', script];
    for (const reports of ['', 'off']) {
      await using program = startOther(command, { env: { ...env, VRAM_LANDLORD_REPORTS: reports } });
      expect(await program.line()).toBe('granted');
      await program.end();
    }
    await settle();
    expect(seen('deflected').map(({ session, numbers }) => [session, numbers.times])).toEqual([
      ['script', undefined],
      // What says the same while it waits to be told is one event, with how often.
      ['eager', 5],
    ]);
  });

  it('a runtime that hangs holds up no turn for longer than its limit', async () => {
    const stateHome = join(folder.path, 'state');
    const stateDir = join(stateHome, 'vram-landlord');
    mkdirSync(stateDir, { recursive: true });
    const mute = createServer((socket) => socket.on('error', () => undefined));
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const address = mute.address();
    const port = address === null || typeof address === 'string' ? 0 : address.port;
    const paths = resolvePaths({ env: {}, home: '/', cwd: '/', stateDir });
    const lock = await acquireRuntimeLock(paths, { pid: process.pid, startedAt: '', version: '' });
    if (!lock.ok) throw new Error(lock.error.message);
    await lock.value.publish(`http://127.0.0.1:${port}`);
    await using _holder = await nodeHolder(root, 'writer');
    expect(await exitOf(startTurn(['--', 'true'], { XDG_STATE_HOME: stateHome }))).toBe(75);
    await lock.value.release();
    mute.close();
  });

  using probe = tempFolder('reports');
  const canReplacePasswd = withPasswd(probe.path, join(probe.path, 'home')) !== null;
  // Else what is looked for beside XDG_STATE_HOME would be a landlord that this user really runs.
  if (canReplacePasswd) {
    it('a profile with a HOME of its own reaches the runtime of its user', async () => {
      const home = join(folder.path, 'home');
      const prefix = withPasswd(folder.path, home) ?? [];
      await startHere(join(home, '.local', 'state'));
      await using _holder = await nodeHolder(root, 'writer');
      const turn = startTurn(['--session', 'profile', '--', 'true'], { HOME: folder.path }, prefix);
      expect(await exitOf(turn)).toBe(75);
      await settle();
      expect(seen('deflected')).toMatchObject([{ session: 'profile' }]);
    });

    it('no runtime: nothing is lost, the turns go as they do with one', async () => {
      const prefix = withPasswd(folder.path, join(folder.path, 'home')) ?? [];
      const run = (...args: readonly string[]): Promise<number | null> =>
        exitOf(startTurn(['--', ...args], { HOME: folder.path }, prefix));
      expect(await run('sh', '-c', 'exit 3')).toBe(3);
      {
        await using _holder = await nodeHolder(root, 'writer');
        expect(await run('true')).toBe(75);
      }
      mkdirSync(join(root, 'x'));
      writeFileSync(join(folder.path, 'file'), '');
      root = join(folder.path, 'file');
      expect(await run('sh', '-c', 'exit 4')).toBe(4);
    });
  }
});
