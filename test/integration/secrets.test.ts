import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TINY_SHAPE } from '../support/gguf.ts';
import { freePort } from '../support/llama-server.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';
import { type ServeProcess, startServeProcess } from '../support/serve-process.ts';
import { SocketClient } from '../support/socket-client.ts';
import { startUpstreamEcho, type UpstreamEcho } from '../support/upstream-echo.ts';

/** Each is found wherever it should not be: no part of them occurs by itself. */
const SECRETS = {
  gatewayKey: 'sk-marker-gateway-7f3a91c2d4',
  cloudKey: 'sk-marker-cloud-5e8b0a6f13',
  clientKey: 'sk-marker-client-c9d27e4481',
  cookie: 'marker-cookie-19ac83be57',
  prompt: 'marker prompt the quick zebra 8842',
  agentPrompt: 'marker agent prompt 5523',
  other: 'marker-variable-of-the-environment-3310',
} as const;

let router: TestRouter;
let cloud: UpstreamEcho;
let served: ServeProcess;
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-secrets-'));
  router = await startRouter({ models: { tiny: { shape: TINY_SHAPE } } });
  cloud = await startUpstreamEcho();
  const front = await freePort();
  served = await startServeProcess({
    folder,
    env: {
      GATEWAY_KEY: SECRETS.gatewayKey,
      CLOUD_KEY: SECRETS.cloudKey,
      SOMETHING_ELSE: SECRETS.other,
    },
    config: [
      'server: { apiKeyEnv: GATEWAY_KEY }',
      'devices:',
      '  - { kind: system }',
      'backends:',
      `  - { name: router, kind: llama.cpp, url: "${router.url}", front: ${front} }`,
      'fallbacks:',
      `  - { name: cloud, url: "${cloud.url}/v1", apiKeyEnv: CLOUD_KEY }`,
      '',
    ].join('\n'),
  });
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await cloud.close();
  await router[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Every file below a folder, by its path, as text. */
async function files(of: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const entry of await readdir(of, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) {
      const path = join(entry.parentPath, entry.name);
      found.set(path, await readFile(path, 'latin1'));
    }
  return found;
}

it('keys, credentials and what is said are in no log, event, database, state, metric or output, also after refusals and a crash', async () => {
  const gateway = async (headers: Readonly<Record<string, string>>, model: string): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${served.port}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie: `session=${SECRETS.cookie}`, ...headers },
      body: JSON.stringify({
        model,
        user: 'writer',
        messages: [{ role: 'user', content: SECRETS.prompt }],
        max_tokens: 4,
      }),
    });
    await answer.text();
    return answer.status;
  };
  const key = { authorization: `Bearer ${SECRETS.gatewayKey}` };
  expect(await gateway(key, 'tiny')).toBe(200);
  // Wrong keys, unknown models, a body that is no JSON, a path that is none: each has its refusal.
  expect(await gateway({ authorization: `Bearer ${SECRETS.clientKey}` }, 'tiny')).toBe(401);
  expect(await gateway({ 'x-api-key': SECRETS.clientKey }, 'tiny')).toBe(401);
  expect(await gateway(key, 'not-there')).toBeGreaterThanOrEqual(400);
  for (const [method, path, body] of [
    ['POST', '/api/sleep', `{"for": "${SECRETS.prompt}`],
    ['POST', '/v1/chat/completions', `not json ${SECRETS.prompt}`],
    ['GET', `/api/none?key=${SECRETS.clientKey}`, undefined],
    ['GET', `/?key=${SECRETS.clientKey}`, undefined],
  ] as const) {
    const answer = await fetch(`http://127.0.0.1:${served.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${SECRETS.clientKey}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    });
    expect(await answer.text(), path).not.toContain('marker');
  }
  using client = new SocketClient(served.socketPath);
  await client.ask(`DECODE nobody 4 ${SECRETS.agentPrompt}`);
  // The lane is held, or the model away: the turn goes to the cloud, with its own key and not the client's.
  await (await served.post('/api/sleep')).text();
  await gateway(key, 'tiny');
  const state = JSON.stringify(await served.state());
  const events = JSON.stringify(await served.events());
  const metrics = await (await served.ask('/metrics')).text();
  const settings = await (await served.post('/api/settings')).text();
  const history = await (await served.post('/api/history', {})).text();
  // What it says when it dies of itself, and what it leaves.
  served.child.kill('SIGABRT');
  await served.end();
  const places = new Map([
    ...(await files(folder)),
    ['state', state],
    ['events', events],
    ['metrics', metrics],
    ['settings', settings],
    ['history', history],
    ['output', served.out() + served.err()],
  ]);
  expect(places.size).toBeGreaterThan(10);
  const found: string[] = [];
  for (const [place, text] of places)
    for (const [name, secret] of Object.entries(SECRETS))
      for (const shape of [
        secret,
        Buffer.from(secret).toString('base64').slice(0, -4),
        encodeURIComponent(secret),
      ])
        if (text.includes(shape)) found.push(`${name} in ${place}`);
  expect(found).toEqual([]);
  // The token lies in its own file alone.
  const token = (await readFile(join(served.stateDir, 'token'), 'utf8')).trim();
  const holders = [...places].filter(([, text]) => text.includes(token)).map(([place]) => place);
  expect(holders).toEqual([join(served.stateDir, 'token')]);
  for (const { authorization } of cloud.asked) expect(authorization).toBe(`Bearer ${SECRETS.cloudKey}`);
  expect(JSON.stringify(cloud.asked)).not.toMatch(/marker-gateway|marker-client|marker-cookie|environment/);
});

it('a key that is asked for and not set lets nobody in, and what the config says of it is in force at once', async () => {
  const own = await mkdtemp(join(tmpdir(), 'landlord-no-key-'));
  const config = (line: string): string => `${line}\ndevices:\n  - { kind: system }\nbackends: []\n`;
  const isSet = { DOOR_KEY: `${SECRETS.gatewayKey}\n` };
  await using one = await startServeProcess({
    folder: own,
    env: isSet,
    config: config('server: { apiKeyEnv: FORGOTTEN_KEY }'),
  });
  const status = async (key: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${one.port}/v1/models`, { headers: { authorization: `Bearer ${key}` } }))
      .status;
  for (const guess of ['', 'undefined', 'null', 'FORGOTTEN_KEY', SECRETS.gatewayKey])
    expect(await status(guess), guess).toBe(401);
  expect(await status(await one.token())).toBe(200);
  const told = (await one.state()).notices.map(({ text }) => text).join('\n');
  expect(told).toContain('FORGOTTEN_KEY (server.apiKeyEnv) is not set');
  await writeFile(one.configFile, config('server: { apiKeyEnv: DOOR_KEY }'));
  await until(async () => (await status(SECRETS.gatewayKey)) === 200, 20_000, 'the key to open');
  expect(await status(SECRETS.clientKey)).toBe(401);
  await writeFile(one.configFile, config('server: {}'));
  await until(async () => (await status(SECRETS.clientKey)) === 200, 20_000, 'the door to be open');
  await rm(own, { recursive: true, force: true });
});
