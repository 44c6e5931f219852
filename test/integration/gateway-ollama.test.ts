import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tryTurn } from '../../electron/core/gate/index.ts';
import { request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { until } from '../support/router.ts';
import { listen } from '../support/upstream.ts';

/** Ollama's front port: it loads and unloads by requests for work, which are told apart. */
const GB = 1_000_000_000;
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
const JSON_TYPE = { 'content-type': 'application/json' };
const loaded = new Set<string>();
/** Bodies of what was asked of a model. */
const asked: string[] = [];
let ollama: http.Server;
let url = '';
let front = 0;
let landlord: LandlordBench;

/** What Ollama answers (its docs/api.md), as far as it is asked here. */
function answer(path: string, body: string): unknown {
  if (path === '/api/version') return { version: '0.34.2' };
  if (path === '/api/tags') return { models: [{ name: 'talk:latest', digest: 'a', size: GB }] };
  if (path === '/api/ps')
    return { models: [...loaded].map((name) => ({ name, digest: 'a', size: GB, size_vram: GB })) };
  if (path === '/api/show') return {};
  asked.push(body);
  const { model, prompt, keep_alive } = JSON.parse(body);
  if ((prompt ?? '') === '' && keep_alive === 0) {
    loaded.delete(model);
    return { model, done: true, done_reason: 'unload' };
  }
  loaded.add(model);
  return { model, done: true, done_reason: 'load' };
}

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  ollama = http.createServer((incoming, response) => {
    let body = '';
    incoming.on('data', (part) => {
      body += part;
    });
    incoming.on('end', () => {
      response.writeHead(200, JSON_TYPE).end(JSON.stringify(answer(incoming.url ?? '', body)));
    });
  });
  url = `http://127.0.0.1:${await listen(ollama)}`;
  front = await freePort();
  landlord = await startLandlordBench({
    routerUrl: '',
    routerPid: () => null,
    totalBytes: 24 * GB,
    footprints: { 'talk:latest': { bytes: GB, rampMs: 0 } },
    backend: `  - { name: ollama, kind: ollama, url: "${url}", lanes: 1, front: ${front} }`,
  });
  await landlord.seen();
  await until(() => landlord.runtime.state().models.length === 1, 15_000, 'its model');
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  ollama.closeAllConnections();
  await new Promise((resolve) => ollama.close(resolve));
  rmSync(gates, { recursive: true, force: true });
});

it('who unloads a model there has none loaded for it, and waits for nobody', async () => {
  const body = '{"model":"talk:latest","keep_alive":0}';
  using lane = tryTurn(url, { session: 'elsewhere', reports: false });
  expect(lane.kind).toBe('held');
  const unloaded = await request(front, 'POST', '/api/generate', JSON_TYPE, body);
  expect(unloaded.json).toMatchObject({ done_reason: 'unload' });
  expect(asked).toEqual([body]);
});

it('who generates there has it loaded first, in the lane', async () => {
  asked.length = 0;
  const body = '{"model":"talk:latest","prompt":"hello","keep_alive":0,"stream":false}';
  const answered = await request(front, 'POST', '/api/generate', JSON_TYPE, body);
  expect(answered.status).toBe(200);
  expect(answered.headers['x-landlord-turn']).toMatch(/./);
  expect(asked).toEqual(['{"model":"talk:latest","stream":false}', body]);
});
