import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tryTurn } from '../../electron/core/gate/index.ts';
import { MIDDLE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';

/** Clients that leave, models and servers that go away under their requests, and far too many at once. */
const GB = 1_000_000_000;
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
let router: TestRouter;
let landlord: LandlordBench;

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  router = await startRouter({
    models: { small: { shape: TINY_SHAPE }, middle: { shape: MIDDLE_SHAPE } },
    args: ['--metrics'],
  });
  landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: { small: { bytes: 2 * GB, rampMs: 0 }, middle: { bytes: 3 * GB, rampMs: 0 } },
    backend: `  - { name: router, kind: llama.cpp, url: "${router.url}", lanes: 1 }`,
    config: 'agents: { hasty: { onBusy: reject }, patient: { onBusy: wait } }',
  });
  await landlord.seen();
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  await router[Symbol.asyncDispose]();
  rmSync(gates, { recursive: true, force: true });
});

function port(): number {
  return Number(new URL(landlord.runtime.url).port);
}

interface Asked {
  /** Status, and whether the answer came to its end. */
  readonly done: Promise<{ readonly status: number; readonly whole: boolean }>;
  readonly seen: () => string;
  leave(): void;
}

function ask(
  session: string,
  model: string,
  tokens: number,
  stream = false,
  agent: http.Agent | false = false,
): Asked {
  let text = '';
  let asked: http.ClientRequest | null = null;
  const done = new Promise<{ status: number; whole: boolean }>((resolve) => {
    const headers = { 'content-type': 'application/json', 'x-landlord-session': session };
    const options = { host: '127.0.0.1', port: port(), method: 'POST', path: '/v1/chat/completions' };
    asked = http.request({ ...options, agent, headers }, (answer) => {
      const over = (): void => resolve({ status: answer.statusCode ?? 0, whole: answer.complete });
      answer.on('data', (part) => {
        text += part;
      });
      answer.on('end', over);
      answer.on('error', over);
    });
    asked.on('error', () => resolve({ status: 0, whole: false }));
    asked.end(
      JSON.stringify({
        model,
        stream,
        max_tokens: tokens,
        ignore_eos: true,
        messages: [{ role: 'user', content: 'abcd' }],
      }),
    );
  });
  return { done, seen: () => text, leave: () => asked?.destroy() };
}

async function laneIsFree(): Promise<void> {
  await until(
    () => {
      using lane = tryTurn(router.url, { session: 'looker', reports: false });
      return lane.kind === 'held';
    },
    10_000,
    'the lane to be free',
  );
}

async function inFlight(): Promise<number> {
  const { text } = await request(port(), 'GET', '/metrics');
  return Number(/^landlord_requests_in_flight (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
}

describe('clients that leave while they wait', () => {
  it('leave no place behind: the one after them is served', async () => {
    expect((await ask('patient', 'small', 1).done).status).toBe(200);
    const lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const leaving = Array.from({ length: 5 }, (_, index) => ask('patient', 'small', 1, index % 2 === 0));
    const staying = ask('patient', 'small', 1);
    await until(async () => (await inFlight()) === 6, 10_000, 'all of them to wait');
    for (const one of leaving) one.leave();
    await until(async () => (await inFlight()) === 1, 10_000, 'them to be gone');
    lane[Symbol.dispose]();
    expect(await staying.done).toEqual({ status: 200, whole: true });
    await laneIsFree();
  });
});

describe('a model that is unloaded while its request waits for the lane', () => {
  it('is booked and loaded anew before it is asked', async () => {
    const lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const waiting = ask('patient', 'small', 1);
    await until(async () => (await inFlight()) === 1, 10_000, 'it to wait');
    await landlord.must({ type: 'unload', model: 'router/small', force: true });
    await landlord.is('router/small', 'unloaded');
    const from = landlord.events.length;
    lane[Symbol.dispose]();
    expect((await waiting.done).status).toBe(200);
    const loading = await landlord.event('loading', { from, model: 'router/small' });
    expect(loading.reason).not.toMatch(/around us|by itself/);
    expect(landlord.runtime.state().devices[0]?.bookedBytes).toBe(2 * GB);
  });
});

describe('a server that is restarted in the middle of an answer', () => {
  it('breaks that answer off, holds no lane, and serves the next', async () => {
    const asked = ask('patient', 'middle', 4_000, true);
    await until(() => asked.seen().includes('data:'), 30_000, 'the answer to begin');
    await router.restart();
    expect((await asked.done).whole).toBe(false);
    await laneIsFree();
    await until(
      async () => (await ask('hasty', 'small', 1).done).status === 200,
      30_000,
      'the next one to be served',
    );
  });
});

describe('a config that changes in the middle of an answer', () => {
  it('lets the answer end, also where its backend is dropped', async () => {
    await landlord.must({ type: 'load', model: 'router/middle', force: false });
    const asked = ask('patient', 'middle', 150, true);
    await until(() => asked.seen().includes('data:'), 30_000, 'the answer to begin');
    const text = readFileSync(landlord.configFile, 'utf8');
    const from = landlord.events.length;
    writeFileSync(landlord.configFile, text.replace(/ {2}- \{ name: router.*/, '  []'));
    await landlord.event('config_loaded', { from });
    expect(await asked.done).toEqual({ status: 200, whole: true });
    expect(asked.seen()).toContain('data: [DONE]');
    await until(async () => (await ask('hasty', 'small', 1).done).status === 404, 10_000, 'it to be dropped');
    const again = landlord.events.length;
    writeFileSync(landlord.configFile, text);
    await landlord.event('config_loaded', { from: again });
    await landlord.seen();
  });
});

describe('a name that means to break out of its line', () => {
  it('stays in one header, one event and one line of the log', async () => {
    const name = 'evil\r\nset-cookie: a=b\r\n\r\n<html>\u2028';
    using lane = tryTurn(router.url, { session: name, reports: false });
    expect(lane.kind).toBe('held');
    await until(() => landlord.runtime.state().models.length > 0, 10_000, 'the models');
    const from = landlord.events.length;
    const headers = { 'content-type': 'application/json', 'x-landlord-session': 'hasty' };
    const body = JSON.stringify({ model: 'small', user: name, messages: [] });
    const refused = await request(port(), 'POST', '/v1/chat/completions', headers, body);
    expect(refused.status).toBe(503);
    expect(refused.headers['set-cookie']).toBeUndefined();
    expect(refused.json).toMatchObject({ error: { code: 'local_backend_busy' } });
    const told = await landlord.event('denied', { from });
    expect(told.session).toBe('hasty');
  });
});

describe('hundreds of requests at once', () => {
  it('are answered where their clients stay, and leave nothing behind where they do not', async () => {
    await until(() => landlord.runtime.state().models.length > 0, 10_000, 'the models');
    const lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const agent = new http.Agent({ keepAlive: true, maxSockets: 300 });
    const asked = Array.from({ length: 300 }, (_, index) =>
      ask('patient', 'small', 1, index % 2 === 0, agent),
    );
    await until(async () => (await inFlight()) === 300, 120_000, 'all of them to wait');
    const staying = asked.filter((_, index) => index % 10 === 0);
    for (const one of asked) if (!staying.includes(one)) one.leave();
    await until(async () => (await inFlight()) === staying.length, 60_000, 'the others to be gone');
    lane[Symbol.dispose]();
    const answers = await Promise.all(staying.map((one) => one.done));
    agent.destroy();
    expect(answers.filter(({ status, whole }) => status !== 200 || !whole)).toEqual([]);
    await until(async () => (await inFlight()) === 0, 10_000, 'nothing to be in flight');
    await laneIsFree();
  });
});
