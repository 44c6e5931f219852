import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { gguf, TINY_SHAPE } from '../support/gguf.ts';
import { request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { until } from '../support/router.ts';
import { startSwap, type TestSwap } from '../support/swap.ts';

/**
 * At the front port of a llama-swap, a path that names its model there is a request for that model: it takes
 * memory and lane as one that names it in its body. The swap is a stand-in over a real llama-server.
 */
const GB = 1_000_000_000;
const JSON_TYPE = { 'content-type': 'application/json' };
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
let swap: TestSwap;
let huge: TestSwap;
let landlord: LandlordBench;
let front = 0;
let hugeFront = 0;

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  const model = ['--model', await gguf(TINY_SHAPE), '--ctx-size', '512'];
  [swap, huge] = await Promise.all([startSwap('talk', model), startSwap('huge', model)]);
  front = await freePort();
  hugeFront = await freePort();
  landlord = await startLandlordBench({
    routerUrl: '',
    routerPid: () => null,
    totalBytes: 24 * GB,
    footprints: { talk: { bytes: GB, rampMs: 0 }, huge: { bytes: 40 * GB, rampMs: 0 } },
    backend: [
      `  - { name: swap, kind: llama-swap, url: "${swap.url}", lanes: 1, front: ${front} }`,
      `  - { name: huge, kind: llama-swap, url: "${huge.url}", front: ${hugeFront} }`,
    ].join('\n'),
  });
  await landlord.seen();
  await until(async () => landlord.runtime.state().models.length === 2, 15_000, 'the models of both servers');
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  await Promise.all([swap[Symbol.asyncDispose](), huge[Symbol.asyncDispose]()]);
  rmSync(gates, { recursive: true, force: true });
});

it('is booked before it loads, whatever the path asks for', async () => {
  const answer = await request(front, 'GET', '/upstream/talk/props');
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.text)).toHaveProperty('default_generation_settings');
  // Our own load comes first: it was booked, and the client's path finds the model there.
  expect(swap.asked.filter((one) => one.includes('/upstream/talk/'))).toEqual([
    'GET /upstream/talk/health',
    'GET /upstream/talk/props',
  ]);
  await landlord.is('swap/talk', 'loaded');
});

it('takes the lane where it generates', async () => {
  const body = JSON.stringify({ prompt: 'a', n_predict: 2 });
  const answer = await request(front, 'POST', '/upstream/talk/completion', JSON_TYPE, body);
  expect(answer.status).toBe(200);
  expect(answer.headers['x-landlord-turn']).toMatch(/./);
  expect(swap.asked).toContain('POST /upstream/talk/completion');
});

it('is refused in numbers where there is no memory for it, and nothing is asked of its server', async () => {
  const body = JSON.stringify({ prompt: 'a', n_predict: 2 });
  for (const [method, path] of [
    ['GET', '/upstream/huge/props'],
    ['POST', '/upstream/huge/completion'],
  ] as const) {
    const answer = await request(hugeFront, method, path, JSON_TYPE, method === 'GET' ? '' : body);
    expect(answer.status).toBe(503);
    expect(JSON.parse(answer.text).error.code).toBe('vram_denied');
  }
  expect(huge.asked.filter((one) => one.includes('/upstream/huge/'))).toEqual([]);
});

it('with several servers, a body that is no JSON is told so, and one without a model that it names none', async () => {
  const port = Number(new URL(landlord.runtime.url).port);
  const ask = (body: string) => request(port, 'POST', '/v1/chat/completions', JSON_TYPE, body);
  const broken = await ask('{"messages": [');
  expect(broken.status).toBe(400);
  expect(JSON.parse(broken.text).error).toMatchObject({ code: 'bad_input' });
  const packed = await request(
    port,
    'POST',
    '/v1/chat/completions',
    { ...JSON_TYPE, 'content-encoding': 'gzip' },
    '\x1f',
  );
  expect(packed.status).toBe(400);
  expect(packed.text).toContain('content-encoding: gzip');
  const nameless = await ask('{"messages": []}');
  expect(nameless.status).toBe(404);
  expect(JSON.parse(nameless.text).error).toMatchObject({ code: 'unknown_model' });
});
