import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TINY_SHAPE } from '../support/gguf.ts';
import { request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';
import { listen } from '../support/upstream.ts';

/** Beyond one box: a backend that speaks OpenAI's API, and a chain whose first entry does not answer. */
const GB = 1_000_000_000;
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
let router: TestRouter;
let landlord: LandlordBench;
let far: http.Server;
let cloud: http.Server;
let deadPort = 0;

const server = (name: string): http.Server =>
  http.createServer((asked, response) => {
    asked.resume();
    asked.on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(
        asked.url === '/v1/models'
          ? '{"object":"list","data":[{"id":"giant"}]}'
          : JSON.stringify({ from: name }),
      );
    });
  });

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  far = server('far');
  cloud = server('cloud');
  const [farPort, cloudPort] = [await listen(far), await listen(cloud)];
  deadPort = await freePort();
  router = await startRouter({ models: { main: { shape: TINY_SHAPE } } });
  landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 8 * GB,
    footprints: { main: { bytes: 12 * GB, rampMs: 0 } },
    backend: [
      `  - { name: router, kind: llama.cpp, url: "${router.url}" }`,
      `  - { name: far, kind: openai, url: "http://127.0.0.1:${farPort}/v1" }`,
    ].join('\n'),
    config: [
      'agents: { writer: { onBusy: fallback } }',
      'fallbacks:',
      `  - { name: dead, url: "http://127.0.0.1:${deadPort}/v1" }`,
      `  - { name: cloud, url: "http://127.0.0.1:${cloudPort}/v1" }`,
    ].join('\n'),
  });
  await landlord.seen();
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  await router[Symbol.asyncDispose]();
  for (const one of [far, cloud]) {
    one.closeAllConnections();
    one.close();
  }
  rmSync(gates, { recursive: true, force: true });
});

function ask(model: string) {
  const headers = { 'content-type': 'application/json', 'x-landlord-session': 'writer' };
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] });
  const port = Number(new URL(landlord.runtime.url).port);
  return request(port, 'POST', '/v1/chat/completions', headers, body);
}

describe('a server that speaks OpenAI’s API', () => {
  it('is routed to by its models’ names, and takes no memory of this machine', async () => {
    await until(
      () => landlord.runtime.state().models.some((model) => model.id === 'far/giant'),
      20_000,
      'its models',
    );
    expect(landlord.model('far/giant')).toMatchObject({ status: 'loaded', deviceId: null, busy: null });
    expect(landlord.runtime.state().devices[0]).toMatchObject({ bookedBytes: 0 });
    const answer = await ask('giant');
    expect(answer).toMatchObject({ status: 200, text: '{"from":"far"}' });
    expect(answer.headers['x-landlord-backend']).toBe('far');
    // Nothing of it is here to be unloaded.
    expect(await landlord.runtime.command({ type: 'drain' })).toMatchObject({ ok: true });
  });
});

describe('a fallback that does not answer', () => {
  it('costs one turn a try; those after it pass it over, and it is told and shown', async () => {
    const from = landlord.events.length;
    const first = await ask('main');
    expect(first).toMatchObject({ status: 200, text: '{"from":"cloud"}' });
    const down = await landlord.event('backend_down', { from });
    expect(down.reason).toMatch(/The fallback dead does not answer/);
    expect(landlord.runtime.state().fallbacks).toMatchObject([
      { name: 'dead', status: 'down' },
      { name: 'cloud', status: 'ready' },
    ]);
    const deflections = landlord.events.filter((one) => one.kind === 'deflected').length;
    const second = await ask('main');
    expect(second).toMatchObject({ status: 200, text: '{"from":"cloud"}' });
    expect(second.headers['x-landlord-backend']).toBe('cloud');
    // Straight there: one deflection and not two.
    expect(landlord.events.filter((one) => one.kind === 'deflected').length).toBe(deflections + 1);
  });

  it('is used again once it answers', async () => {
    const from = landlord.events.length;
    const back = server('dead');
    await new Promise<void>((resolve) => back.listen(deadPort, '127.0.0.1', resolve));
    try {
      await landlord.event('backend_up', { from, limitMs: 60_000 });
      expect(await ask('main')).toMatchObject({ status: 200, text: '{"from":"dead"}' });
    } finally {
      back.closeAllConnections();
      back.close();
    }
  });
});
