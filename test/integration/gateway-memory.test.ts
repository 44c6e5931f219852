import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TINY_SHAPE } from '../support/gguf.ts';
import { request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';

/** Models that do not fit beside each other, and requests that wait for one another's memory. */
const GB = 1_000_000_000;
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
let router: TestRouter;
let landlord: LandlordBench;

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  const shape = TINY_SHAPE;
  router = await startRouter({ models: { one: { shape }, two: { shape }, three: { shape } } });
  landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: {
      one: { bytes: 12 * GB, rampMs: 0 },
      two: { bytes: 12 * GB, rampMs: 0 },
      three: { bytes: 4 * GB, rampMs: 0 },
    },
    backend: `  - { name: router, kind: llama.cpp, url: "${router.url}" }`,
    pace: {
      keepAliveMs: { first: 300, every: 300 },
      turnover: {
        residencyMs: 3_000,
        lingerMs: 1_000,
        agedMs: { interactive: 2_000, batch: 5_000 },
        standBackMs: 10_000,
      },
    },
    config: 'agents: { patient: { onBusy: wait }, hasty: { onBusy: reject } }',
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

function body(model: string, stream: boolean, tokens = 2): string {
  const messages = [{ role: 'user', content: 'abcd' }];
  return JSON.stringify({ model, stream, max_tokens: tokens, ignore_eos: true, messages });
}

function ask(model: string, session: string) {
  const headers = { 'content-type': 'application/json', 'x-landlord-session': session };
  return request(port(), 'POST', '/v1/chat/completions', headers, body(model, false));
}

/** What the list of models says of each. */
async function statuses(): Promise<ReadonlyMap<string, string>> {
  const { text } = await request(port(), 'GET', '/v1/models');
  const list: { data: { id: string; landlord: { status: string } }[] } = JSON.parse(text);
  return new Map(list.data.map((model) => [model.id, model.landlord.status]));
}

/** A stream and what has come of it so far. */
function stream(model: string, session: string) {
  let text = '';
  const done = new Promise<string>((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'x-landlord-session': session };
    const asked = http.request(
      {
        host: '127.0.0.1',
        port: port(),
        method: 'POST',
        path: '/v1/chat/completions',
        agent: false,
        headers,
      },
      (answer) => {
        answer.on('data', (part) => {
          text += part;
        });
        answer.on('end', () => resolve(text));
        answer.on('error', reject);
      },
    );
    asked.on('error', reject);
    asked.end(body(model, true));
  });
  return { done, text: () => text };
}

describe('a stream that waits', () => {
  it('for memory hears comments, keeps no batch work back, and is served when there is room', async () => {
    await landlord.must({ type: 'load', model: 'router/one', force: false });
    await landlord.must({ type: 'pin', model: 'router/one' });
    const waiting = stream('two', 'patient');
    await until(() => waiting.text().startsWith(': waiting'), 30_000, 'a comment');
    expect((await statuses()).get('two')).toBe('needs_evictions');
    const batch = await request(
      port(),
      'POST',
      '/v1/chat/completions',
      {
        'content-type': 'application/json',
        'x-landlord-class': 'batch',
        'x-landlord-session': 'indexer',
      },
      body('one', false),
    );
    expect(batch.status).toBe(200);
    expect(landlord.model('router/two').status).toBe('unloaded');
    expect((await ask('two', 'hasty')).json).toMatchObject({ error: { code: 'vram_denied' } });
    await landlord.must({ type: 'unpin', model: 'router/one' });
    const text = await waiting.done;
    expect(text).toContain('data: [DONE]');
    expect(landlord.model('router/one').status).toBe('unloaded');
  });

  it('while big models sleep hears comments too, and is served when they wake', async () => {
    await landlord.must({ type: 'sleep', forMs: 600_000 });
    await landlord.is('router/two', 'unloaded');
    const waiting = stream('two', 'patient');
    await until(() => waiting.text().startsWith(': waiting'), 30_000, 'a comment');
    expect(waiting.text()).toContain('big_models_asleep');
    expect((await statuses()).get('two')).toBe('asleep');
    expect((await ask('two', 'hasty')).json).toMatchObject({ error: { code: 'big_models_asleep' } });
    await landlord.must({ type: 'wake' });
    expect(await waiting.done).toContain('data: [DONE]');
  });
});

describe('two sessions on models that do not fit beside each other', () => {
  it('both come to their turns, though one never pauses, and their models are not swapped with every turn', async () => {
    const from = landlord.events.length;
    let served = 0;
    let isOver = false;
    const busy = async (): Promise<void> => {
      while (!isOver) {
        const answer = await ask('one', 'patient');
        expect(answer.status, answer.text).toBe(200);
        served += 1;
      }
    };
    const never = Promise.all([busy(), busy()]);
    await landlord.is('router/one', 'loaded');
    await until(() => served > 10, 30_000, 'the busy session to be at it');
    for (let turn = 0; turn < 3; turn += 1) {
      const answer = await ask('two', 'patient');
      expect(answer.status, answer.text).toBe(200);
    }
    const before = served;
    await until(() => served > before, 90_000, 'the busy session to go on');
    isOver = true;
    await never;
    const loads = landlord.events.slice(from).filter((event) => event.kind === 'evicted');
    expect(loads.length).toBeLessThanOrEqual(6);
  });

  it('are never denied for it, also where nobody has set how they wait, and each wait is told once at most', async () => {
    const from = landlord.events.length;
    const session = async (model: string, turns: number): Promise<void> => {
      for (let turn = 0; turn < turns; turn += 1) {
        const answer = await ask(model, `nobody ${model}`);
        expect(answer.status, answer.text).toBe(200);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    await Promise.all([session('one', 150), session('two', 30), session('two', 30)]);
    const told = landlord.events.slice(from).filter((event) => event.kind === 'denied');
    const loads = landlord.events.slice(from).filter((event) => event.kind === 'loading');
    expect(told.length).toBeLessThanOrEqual(3 * (loads.length + 1));
    // A few turns each, not one: loading takes longer here than who waits is patient.
    expect(loads.length).toBeLessThanOrEqual(8);
  });

  it('do not wait for batch work, which makes way for them', async () => {
    await landlord.must({ type: 'unload', model: 'router/two', force: true }).catch(() => undefined);
    let served = 0;
    let isOver = false;
    const batch = async (): Promise<void> => {
      while (!isOver) {
        const headers = { 'content-type': 'application/json', 'x-landlord-class': 'batch' };
        const answer = await request(port(), 'POST', '/v1/chat/completions', headers, body('one', false));
        expect(answer.status, answer.text).toBe(200);
        served += 1;
      }
    };
    const going = batch();
    await until(() => served > 5, 60_000, 'the batch to be at it');
    const before = served;
    expect((await ask('two', 'person')).status).toBe(200);
    // Those that were under way, and none that came after.
    expect(served - before).toBeLessThanOrEqual(3);
    isOver = true;
    await going;
  });
});
