import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LAUNCHER } from '../support/landlord.ts';
import { freePort } from '../support/llama-server.ts';
import { until } from '../support/router.ts';
import { type ServeProcess, startServeProcess } from '../support/serve-process.ts';

/** Keys as providers make them, and passwords as people do. */
const secret = fc.oneof(
  fc.stringMatching(/^sk-[A-Za-z0-9]{20,40}$/),
  fc.stringMatching(/^[A-Za-z0-9+/]{24,40}={0,2}$/),
  fc.stringMatching(/^[a-f0-9]{32}$/),
  fc.stringMatching(/^[a-z]{6}[0-9]{4}[!$%^*()_.~-]{2}[a-z]{3}$/),
);
/** Written raw into an address, one like `80/…` reads as a port and a path. */
const readsAsPort = /^\d{1,5}[/?#]/;
const [backendKey = '', cloudKey = '', gatewayKey = '', password = '', query = '', pasted = '', option = ''] =
  fc.sample(
    secret.filter((text) => !readsAsPort.test(text)),
    7,
  );
const SECRETS = { backendKey, cloudKey, gatewayKey, password, query, pasted, option };
/** Different bytes than the key, same secret. */
const shapes = (text: string): readonly string[] => [
  text,
  encodeURIComponent(text),
  Buffer.from(text).toString('base64').replace(/=+$/, '').slice(0, -1),
  JSON.stringify(text).slice(1, -1),
];

/** A server that says back whatever it was sent, in every place an answer has. */
function echo(status: (path: string) => number, models: readonly string[] = []): Server {
  return createServer((request, response) => {
    const said = `key ${request.headers.authorization} is wrong: ${request.method} ${request.url}, see http://user:${password}@host/?api_key=${query}`;
    request.resume().on('end', () => {
      const isList = models.length > 0 && /^\/(?:v1\/)?models/.test(request.url ?? '');
      if (isList) {
        const data = models.map((id) => ({ id, status: { value: 'loaded' } }));
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
        return;
      }
      response.writeHead(status(request.url ?? '/'), {
        'content-type': 'application/json',
        'x-request-id': said.replaceAll(/[^\x20-\x7e]/g, ' '),
      });
      response.end(JSON.stringify({ error: { message: said, code: said, type: said }, message: said }));
    });
  });
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

let served: ServeProcess;
let folder = '';
const servers: Server[] = [];
let config: (more: string) => string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-echo-'));
  servers.push(
    echo(() => 500),
    echo(() => 401, ['x']),
    echo(() => 500),
    echo((path) => (path.includes('models') ? 200 : 500)),
    echo(() => 401),
  );
  const [broken = 0, half = 0, ollama = 0, swap = 0, cloud = 0] = await Promise.all(servers.map(listen));
  const own = await freePort();
  config = (more) =>
    [
      'server: { apiKeyEnv: GATEWAY_KEY }',
      'devices:',
      '  - { kind: system }',
      'backends:',
      `  - { name: broken, kind: openai, url: "http://127.0.0.1:${broken}", apiKeyEnv: BACKEND_KEY }`,
      `  - { name: half, kind: llama.cpp, url: "http://127.0.0.1:${half}", apiKeyEnv: BACKEND_KEY }`,
      `  - { name: ollama, kind: ollama, url: "http://127.0.0.1:${ollama}", apiKeyEnv: BACKEND_KEY }`,
      `  - { name: swap, kind: llama-swap, url: "http://127.0.0.1:${swap}", apiKeyEnv: BACKEND_KEY }`,
      `  - { name: own, kind: llama.cpp, url: "http://127.0.0.1:${own}", command: [${JSON.stringify(process.execPath)}, -e, "setTimeout(() => process.exit(3), 300)", --, --api-key, ${JSON.stringify(option)}] }`,
      'fallbacks:',
      `  - { name: cloud, url: "http://127.0.0.1:${cloud}/v1", apiKeyEnv: CLOUD_KEY }`,
      more,
    ].join('\n');
  served = await startServeProcess({
    folder,
    env: { GATEWAY_KEY: gatewayKey, CLOUD_KEY: cloudKey, BACKEND_KEY: backendKey },
    config: config(''),
  });
});
afterAll(async () => {
  await served?.[Symbol.asyncDispose]();
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  await rm(folder, { recursive: true, force: true });
});

const landlord = async (...args: readonly string[]): Promise<string> => {
  const asked = promisify(execFile)(LAUNCHER, [...args, '--state-dir', served.stateDir], {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      VRAM_LANDLORD_GATE_DIR: served.gateDir,
      GATEWAY_KEY: gatewayKey,
      CLOUD_KEY: cloudKey,
      BACKEND_KEY: backendKey,
    },
  });
  return await asked.then(
    ({ stdout, stderr }) => stdout + stderr,
    (thrown: unknown) => JSON.stringify(thrown, Object.getOwnPropertyNames(thrown)),
  );
};

it('no key that a server says back, a config holds or a request brings is in any log, event, state, metric, history or command', async () => {
  const places = new Map<string, string>();
  expect((await served.state()).backends.length).toBe(5);
  const key = { authorization: `Bearer ${gatewayKey}`, 'content-type': 'application/json' };
  for (const model of ['half/x', 'broken/x', 'x'])
    for (const path of ['/v1/chat/completions', '/v1/embeddings', '/v1/messages']) {
      const answer = await fetch(
        `http://127.0.0.1:${served.port}${path}?api_key=${encodeURIComponent(query)}`,
        {
          method: 'POST',
          headers: { ...key, 'x-landlord-session': 'writer' },
          body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 4 }),
        },
      );
      places.set(`${path} of ${model}`, await answer.text());
      places.set(`${path} of ${model}, head`, JSON.stringify([...answer.headers]));
    }
  for (const path of ['/api/models/broken%2Fx/load', '/api/models/broken%2Fx/unload'])
    places.set(path, await (await served.post(path)).text());
  // What people write where it does not belong.
  for (const wrong of [
    `comfyui: ["127.0.0.1:8188/?api_key=${query}"]`,
    `comfyui: ["http://user:${password}@127.0.0.1:8188"]`,
    `agents: { writer: { apiKey: ${JSON.stringify(pasted)} } }`,
    `floor: ${JSON.stringify(pasted)}`,
    `small: [${JSON.stringify(`/${pasted}(/`)}]`,
    `footprints: { x: ${JSON.stringify(pasted)} }`,
    `big: { names: ${JSON.stringify(pasted)} }`,
    `nonsense: { apiKey: ${pasted}: ${password}`,
  ]) {
    const before = (await served.events()).length;
    await writeFile(served.configFile, config(wrong));
    await until(
      async () => (await served.events()).length > before,
      10_000,
      `${wrong.slice(0, 12)} to be told`,
    );
  }
  await writeFile(served.configFile, config(''));
  for (const [command, json] of [
    ['status', []],
    ['status', ['--json']],
    ['models', []],
    ['doctor', ['--json']],
  ] as const)
    places.set(`landlord ${command} ${json}`, await landlord(command, ...json));
  places.set('landlord doctor --security', await landlord('doctor', '--security', '--json'));
  places.set('landlord events', await landlord('events'));
  places.set('state', JSON.stringify(await served.state()));
  places.set('events', JSON.stringify(await served.events()));
  for (const path of ['/metrics', '/healthz', '/', '/v1/models'])
    places.set(path, await (await served.ask(path)).text());
  for (const path of ['/api/history', '/api/plan', '/api/requests', '/api/agents', '/api/replay'])
    places.set(path, await (await served.post(path)).text());
  served.child.kill('SIGABRT');
  await served.end();
  places.set('output', served.out() + served.err());
  for (const entry of await readdir(served.stateDir, { recursive: true, withFileTypes: true })) {
    // The config's own words, as its file has them, and as private.
    if (!entry.isFile() || entry.name === 'config.last-good.yaml') continue;
    places.set(entry.name, await readFile(join(entry.parentPath, entry.name), 'latin1'));
  }
  const found: string[] = [];
  for (const [place, text] of places)
    for (const [name, value] of Object.entries(SECRETS))
      for (const shape of shapes(value)) {
        const at = text.indexOf(shape);
        if (at >= 0) found.push(`${name} in ${place}: …${text.slice(Math.max(0, at - 120), at + 20)}`);
      }
  expect([...new Set(found)]).toEqual([]);
}, 240_000);
