import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tryTurn } from '../../electron/core/gate/index.ts';
import { TINY_SHAPE } from '../support/gguf.ts';
import { type Answer, request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';
import { listen } from '../support/upstream.ts';

/** A chain whose first entries are own backends: they need admission and lane as a first choice does. */
const GB = 1_000_000_000;
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
let first: TestRouter;
let second: TestRouter;
let landlord: LandlordBench;
let cloud: http.Server;

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  cloud = http.createServer((asked, response) => {
    asked.resume();
    asked.on('end', () => response.writeHead(200).end('{"from":"cloud"}'));
  });
  const cloudPort = await listen(cloud);
  [first, second] = await Promise.all([
    startRouter({ models: { main: { shape: TINY_SHAPE } } }),
    startRouter({ models: { spare: { shape: TINY_SHAPE }, large: { shape: TINY_SHAPE } } }),
  ]);
  landlord = await startLandlordBench({
    routerUrl: first.url,
    routerPid: () => first.pid(),
    totalBytes: 24 * GB,
    footprints: {
      main: { bytes: 4 * GB, rampMs: 0 },
      spare: { bytes: 2 * GB, rampMs: 0 },
      large: { bytes: 19 * GB, rampMs: 0 },
    },
    backend: [
      `  - { name: first, kind: llama.cpp, url: "${first.url}", lanes: 1 }`,
      `  - { name: second, kind: llama.cpp, url: "${second.url}", lanes: 1 }`,
    ].join('\n'),
    config: [
      'agents: { writer: { onBusy: fallback } }',
      'fallbacks:',
      `  - { name: beside, url: "${second.url}/v1", models: { main: spare, spare: large } }`,
      '  - { name: itself, url: "http://127.0.0.1:1/v1" }',
      `  - { name: cloud, url: "http://127.0.0.1:${cloudPort}/v1" }`,
    ].join('\n'),
  });
  await landlord.seen();
  // The port is known only now: an entry that is the gateway itself.
  const text = readFileSync(landlord.configFile, 'utf8');
  writeFileSync(landlord.configFile, text.replace('http://127.0.0.1:1/v1', `${landlord.runtime.url}/v1`));
  await landlord.event('config_loaded');
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  cloud.closeAllConnections();
  await new Promise((resolve) => cloud.close(resolve));
  rmSync(gates, { recursive: true, force: true });
});

function ask(model: string): Promise<Answer> {
  return request(
    Number(new URL(landlord.runtime.url).port),
    'POST',
    '/v1/chat/completions',
    { 'content-type': 'application/json', 'x-landlord-session': 'writer' },
    JSON.stringify({
      model,
      max_tokens: 4,
      ignore_eos: true,
      messages: [{ role: 'user', content: 'abcd' }],
    }),
  );
}

describe('an own backend in the chain', () => {
  it('is loaded where it fits, in its own lane, under its own name for the model', async () => {
    expect((await ask('main')).headers['x-landlord-route']).toBe('local');
    const from = landlord.events.length;
    using lane = tryTurn(first.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const answer = await ask('main');
    expect(answer.status, answer.text).toBe(200);
    expect(answer.headers['x-landlord-route']).toBe('fallback');
    expect(answer.headers['x-landlord-backend']).toBe('beside');
    expect(answer.headers['x-landlord-turn']).toMatch(/^\w+-\w+$/);
    expect(answer.json).toMatchObject({ model: 'spare' });
    await landlord.is('second/spare', 'loaded');
    const told = await landlord.event('deflected', { from });
    expect(told).toMatchObject({ backend: 'first', model: 'first/main', session: 'writer' });
    expect(told.reason).toMatch(/local_backend_busy.*went to beside/);
  });

  it('is passed over while its lane is in use, and so is the gateway itself, that would ask itself for ever', async () => {
    using one = tryTurn(first.url, { session: 'elsewhere', reports: false });
    using other = tryTurn(second.url, { session: 'elsewhere', reports: false });
    expect([one.kind, other.kind]).toEqual(['held', 'held']);
    const answer = await ask('main');
    expect(answer.json).toEqual({ from: 'cloud' });
    expect(answer.headers['x-landlord-reason']).toMatch(/beside is in use too. itself is the same/);
  });

  it('that does not fit as things are is passed over, and nobody is evicted for it', async () => {
    const from = landlord.events.length;
    await until(() => landlord.model('first/main').status === 'loaded', 10_000, 'main to be loaded');
    using lane = tryTurn(second.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const sent = ask('spare');
    const answer = await sent;
    expect(answer.json).toEqual({ from: 'cloud' });
    expect(answer.headers['x-landlord-reason']).toContain('beside: vram_denied.');
    expect(landlord.model('first/main').status).toBe('loaded');
    expect(landlord.events.slice(from).filter((event) => event.kind === 'evicted')).toEqual([]);
  });

  it('that is the last one to be asked leaves a refusal that says of each why it could not serve', async () => {
    cloud.closeAllConnections();
    await new Promise((resolve) => cloud.close(resolve));
    const from = landlord.events.length;
    using one = tryTurn(first.url, { session: 'elsewhere', reports: false });
    using other = tryTurn(second.url, { session: 'elsewhere', reports: false });
    expect([one.kind, other.kind]).toEqual(['held', 'held']);
    const refused = await ask('main');
    expect(refused.status).toBe(503);
    expect(refused.headers['x-landlord-reason']).toBe('local_backend_busy');
    expect(refused.json).toMatchObject({ error: { code: 'local_backend_busy' } });
    const told = await landlord.event('denied', { from, model: 'first/main' });
    for (const why of [
      /\. beside is in use too\./,
      /itself is the same\./,
      /cloud gave no answer \(.+\)\./,
    ]) {
      expect(refused.text).toMatch(why);
      expect(told.reason).toMatch(why);
    }
  });
});
