import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Runtime, startRuntime } from '../../electron/core/runtime.ts';
import { entry, type FakeLlama, fakeLlama } from '../support/fake-llama.ts';
import {
  gateIn,
  LANDLORD,
  runToEnd,
  startOther,
  type TempFolder,
  tempFolder,
  until,
} from '../support/gate.ts';
import { request } from '../support/http-request.ts';

/** A turn for our gateway's address is a turn for the backend behind it, for every process. */
let folder: TempFolder;
let root: string;
let runtime: Runtime | null;
let servers: FakeLlama[];

beforeEach(() => {
  folder = tempFolder('gateway-lane');
  root = join(folder.path, 'gates');
  runtime = null;
  servers = [];
});
afterEach(async () => {
  await runtime?.stop();
  for (const server of servers) await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function serverWith(...models: readonly string[]): Promise<FakeLlama> {
  const server = await fakeLlama();
  server.answers.set('GET /models', { body: { data: models.map((name) => entry(name, 'loaded')) } });
  server.answers.set('POST /v1/chat/completions', { body: { choices: [] } });
  servers.push(server);
  return server;
}

function configure(
  backends: Readonly<Record<string, { readonly url: string; readonly lanes: string }>>,
): string {
  const path = join(folder.path, 'config.yaml');
  const lines = Object.entries(backends).map(
    ([name, { url, lanes }]) => `  - { name: ${name}, kind: llama.cpp, url: "${url}"${lanes} }`,
  );
  writeFileSync(
    path,
    ['devices: [{ kind: system }]', 'agents: { hasty: { onBusy: reject } }', 'backends:', ...lines, ''].join(
      '\n',
    ),
  );
  return path;
}

async function start(configPath: string, models: number): Promise<Runtime> {
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
  await until(
    () => started.value.state().models.filter((one) => one.status === 'loaded').length === models,
    'its models',
  );
  return started.value;
}

const portOf = (url: string): number => Number(new URL(url).port);
const meansFile = (url: string): string => join(root, `127.0.0.1_${portOf(url)}.means`);
const lockOf = (url: string): string => join(root, `127.0.0.1_${portOf(url)}.lock`);
const env = (): Readonly<Record<string, string>> => ({ VRAM_LANDLORD_GATE_DIR: root });

/** An agent as they are: asks the address it was given, with no header of ours, and says what it got. */
const ASKS = `
import json, sys, urllib.request
def ask():
    body = json.dumps({"model": sys.argv[2], "messages": []}).encode()
    asked = urllib.request.Request(sys.argv[1] + "/v1/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        return f"{answer.status} {answer.headers['x-landlord-route']}"
print(ask(), flush=True)
sys.stdin.read()
`;

function ask(url: string, model: string): ReturnType<typeof request> {
  const headers = { 'content-type': 'application/json', 'x-landlord-session': 'hasty' };
  return request(
    portOf(url),
    'POST',
    '/v1/chat/completions',
    headers,
    JSON.stringify({ model, messages: [] }),
  );
}

describe('landlord turn on the gateway’s own address', () => {
  it('holds the lane of the backend behind it, and its requests by the gateway pass', async () => {
    const server = await serverWith('m');
    const { url } = await start(configure({ router: { url: server.url, lanes: ', lanes: 1' } }), 1);
    await until(() => existsSync(meansFile(url)), 'the gateway’s port to stand for its backend');
    const turn = [LANDLORD, 'turn', '--backend', `${url}/v1`, '--session', 'agent'];
    await using agent = startOther([...turn, '--', 'python3', '-c', ASKS, url, 'm'], { env: env() });
    expect(await agent.line()).toBe('200 local');
    const { gate } = gateIn(root);
    expect(gate.tryTurn(server.url, { session: 'other' })).toMatchObject({
      kind: 'busy',
      holder: { pid: agent.pid, session: 'agent' },
    });
    expect(runToEnd(['flock', '-n', lockOf(server.url), 'true']).status).toBe(1);
    expect(await ask(url, 'm')).toMatchObject({
      status: 503,
      json: { error: { code: 'local_backend_busy' } },
    });
    await agent.end();
    expect((await ask(url, 'm')).status).toBe(200);
    expect(existsSync(lockOf(url))).toBe(false);
  });

  it('means both ports of a backend with a front', async () => {
    const server = await serverWith('m');
    const front = await serverWith();
    const frontPort = portOf(front.url);
    const { url } = await start(
      configure({ router: { url: server.url, lanes: `, lanes: 1, front: ${frontPort}` } }),
      1,
    );
    await until(() => existsSync(meansFile(url)), 'the gateway’s port to stand for its backend');
    const { gate } = gateIn(root);
    using turn = gate.tryTurn(url);
    expect(turn).toMatchObject({ kind: 'held', locks: [lockOf(front.url), lockOf(server.url)] });
  });

  it('goes by the model where there are several, and without one takes none that it may never ask', async () => {
    const [one, two] = [await serverWith('only-one', 'both'), await serverWith('only-two', 'both')];
    const far = 'http://192.0.2.7:8080';
    const { url } = await start(
      configure({
        one: { url: one.url, lanes: ', lanes: 1' },
        two: { url: two.url, lanes: '' },
        far: { url: far, lanes: ', lanes: 1' },
      }),
      4,
    );
    await until(
      () => existsSync(meansFile(url)) && readFileSync(meansFile(url), 'utf8').includes('only-two'),
      'the gateway’s port to stand for both',
    );
    const { gate } = gateIn(root);
    const meant = (model: string | null): unknown => {
      using turn = gate.tryTurn(url, { model });
      return turn.kind === 'held' ? turn.locks : turn.kind;
    };
    expect(meant('one/anything')).toEqual([lockOf(one.url)]);
    expect(meant('only-one')).toEqual([lockOf(one.url)]);
    expect(meant('only-two-alias')).toEqual([lockOf(two.url)]);
    expect(meant('two/both')).toEqual([lockOf(two.url)]);
    expect([meant(null), meant('both'), meant('nobody’s'), meant('far/m')]).toEqual(Array(4).fill('skipped'));
    const turn = [LANDLORD, 'turn', '--backend', url];
    // The runtime is in this process: what asks it must not hold it up.
    await using agent = startOther([...turn, '--', 'python3', '-c', ASKS, url, 'only-one'], { env: env() });
    expect(await agent.line()).toBe('200 local');
    expect(runToEnd([LANDLORD, 'gate', url], env())).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('--model'),
    });
  });

  it('is an address like any other once the config sets no lane, the runtime has ended, or was killed', async () => {
    const server = await serverWith('m');
    const withLane = { router: { url: server.url, lanes: ', lanes: 1' } };
    const { url } = await start(configure(withLane), 1);
    const means = meansFile(url);
    await until(() => existsSync(means), 'the gateway’s port to stand for its backend');
    const text = readFileSync(means, 'utf8');
    configure({ router: { url: server.url, lanes: '' } });
    await until(() => !existsSync(means), 'the file to go with the lane');
    configure(withLane);
    await until(() => existsSync(means), 'the file to come back');
    await runtime?.stop();
    runtime = null;
    expect(existsSync(means)).toBe(false);
    // What a runtime leaves behind that nobody let end.
    const { status, stdout } = runToEnd(['sh', '-c', 'echo $$']);
    expect(status).toBe(0);
    writeFileSync(means, text.replace(/"pid":\d+/, `"pid":${stdout.trim()}`));
    const { gate, reports, onReport } = gateIn(root);
    using turn = gate.tryTurn(url, { onReport });
    expect(turn).toMatchObject({ kind: 'held', locks: [lockOf(url)] });
    expect(reports).toEqual([]);
  });
});
