import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { acquireTurn, tryTurn } from '../../electron/core/gate/index.ts';
import { MIDDLE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';
import { listen } from '../support/upstream.ts';

/** The official clients before the gateway, a real router behind it. */
const GB = 1_000_000_000;
const FOOTPRINTS = {
  small: { bytes: 2 * GB, rampMs: 0 },
  middle: { bytes: 3 * GB, rampMs: 0 },
  embed: { bytes: GB, rampMs: 0 },
  huge: { bytes: 40 * GB, rampMs: 0 },
  big: { bytes: 12 * GB, rampMs: 0 },
};

let router: TestRouter;
let landlord: LandlordBench;
let front: number;
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  router = await startRouter({
    models: {
      small: { shape: TINY_SHAPE, aliases: ['tiny'] },
      middle: { shape: MIDDLE_SHAPE },
      embed: { shape: TINY_SHAPE, preset: { embeddings: true, pooling: 'mean' } },
      huge: { shape: TINY_SHAPE },
      big: { shape: TINY_SHAPE },
    },
    args: ['--metrics'],
  });
  front = await freePort();
  landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: FOOTPRINTS,
    backend: `  - { name: router, kind: llama.cpp, url: "${router.url}", lanes: 1, front: ${front} }`,
    config:
      'agents:\n  hasty: { class: interactive, onBusy: reject }\n  patient: { class: interactive, onBusy: wait }\n',
  });
  landlord.card.set({ name: 'kwin_wayland', bytes: GB, type: 'G' });
  await landlord.seen();
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  await router[Symbol.asyncDispose]();
  rmSync(gates, { recursive: true, force: true });
});

function openai(session: string, base = landlord.runtime.url): OpenAI {
  return new OpenAI({
    apiKey: 'none',
    baseURL: `${base}/v1`,
    defaultHeaders: { 'x-landlord-session': session },
  });
}

// Random weights would end a sentence at random, and at once now and then.
const ASK = { messages: [{ role: 'user' as const, content: 'abcdefgh' }], max_tokens: 8, ignore_eos: true };

describe('the official OpenAI client', () => {
  it('has its model loaded, booked and answering, and is told the route', async () => {
    const { data, response } = await openai('one')
      .chat.completions.create({ ...ASK, model: 'tiny' })
      .withResponse();
    expect(data.choices).toHaveLength(1);
    expect(response.headers.get('x-landlord-route')).toBe('local');
    expect(response.headers.get('x-landlord-backend')).toBe('router');
    expect(response.headers.get('x-landlord-turn')).toMatch(/^\w+-\w+$/);
    await landlord.is('router/small', 'loaded');
    expect(landlord.runtime.state().devices[0]?.bookedBytes).toBe(2 * GB);
  });

  it('streams, by `backend/model`, with the usage at the end', async () => {
    const stream = await openai('one').chat.completions.create({
      ...ASK,
      model: 'router/small',
      stream: true,
      stream_options: { include_usage: true },
    });
    let usage: number | undefined;
    let parts = 0;
    for await (const chunk of stream) {
      parts += 1;
      usage = chunk.usage?.completion_tokens ?? usage;
    }
    expect(parts).toBeGreaterThan(1);
    expect(usage).toBeGreaterThan(0);
  });

  it('has its tools and the Responses API taken as the backend takes them', async () => {
    const answer = await openai('one').chat.completions.create({
      ...ASK,
      model: 'small',
      tools: [
        {
          type: 'function',
          function: {
            name: 'weather',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
          },
        },
      ],
    });
    expect(answer.choices).toHaveLength(1);
    const response = await openai('one').responses.create({
      model: 'small',
      input: 'abc',
      max_output_tokens: 8,
    });
    expect(response.object).toBe('response');
  });

  it('gets embeddings while another holds the lane', async () => {
    using lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const answer = await openai('one').embeddings.create({
      model: 'embed',
      input: 'abc',
      encoding_format: 'float',
    });
    expect(answer.data[0]?.embedding.length).toBeGreaterThan(0);
  });

  it('lists the models of all backends with what it would take to use them', async () => {
    const found = new Map<string, unknown>();
    for await (const model of openai('one').models.list())
      found.set(model.id, 'landlord' in model ? model.landlord : null);
    expect([...found.keys()].sort()).toEqual(['big', 'embed', 'huge', 'middle', 'small']);
    expect(found.get('small')).toMatchObject({ status: 'loaded', backend: 'router' });
    expect(found.get('huge')).toMatchObject({ status: 'needs_evictions' });
    expect(found.get('big')).toMatchObject({ status: 'fits' });
    // Some look whether a server is there in this way; it is ours to answer, not one backend's.
    const looked = await fetch(`${landlord.runtime.url}/v1/models`, { method: 'HEAD' });
    expect([looked.status, looked.headers.get('server')]).toEqual([200, null]);
  });

  it('is refused once, and not asked again, where the lane is in use', async () => {
    using lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const from = landlord.events.length;
    let tries = 0;
    const client = new OpenAI({
      apiKey: 'none',
      baseURL: `${landlord.runtime.url}/v1`,
      defaultHeaders: { 'x-landlord-session': 'hasty' },
      fetch: (url, init) => {
        tries += 1;
        return fetch(url, init);
      },
    });
    const refused = await client.chat.completions
      .create({ ...ASK, model: 'small' })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OpenAI.APIError);
    if (!(refused instanceof OpenAI.APIError)) return;
    expect(refused.status).toBe(503);
    expect(refused.code).toBe('local_backend_busy');
    expect(refused.type).toBe('local_backend_busy');
    expect(refused.headers?.get('retry-after')).toMatch(/^\d+$/);
    expect(tries).toBe(1);
    const told = await landlord.event('denied', { from });
    expect(told).toMatchObject({ backend: 'router', session: 'hasty', model: 'router/small' });
    expect(told.reason).toContain('elsewhere');
  });

  it('never meets its own last request in the lane', async () => {
    for (let index = 0; index < 30; index += 1)
      await openai('hasty').chat.completions.create({ ...ASK, model: 'small', max_tokens: 1 });
  });

  it('waits in line where its agent is set to wait, and is served when the lane is free', async () => {
    const lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    let served = false;
    const waiting = openai('patient')
      .chat.completions.create({ ...ASK, model: 'small' })
      .then(() => {
        served = true;
      });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(served).toBe(false);
    lane[Symbol.dispose]();
    await waiting;
    expect(served).toBe(true);
  });

  it('is denied memory in numbers, and is not asked again', async () => {
    const refused = await openai('hasty')
      .chat.completions.create({ ...ASK, model: 'huge' })
      .catch((error: unknown) => error);
    if (!(refused instanceof OpenAI.APIError)) throw new Error(String(refused));
    expect(refused.status).toBe(503);
    expect(refused.code).toBe('vram_denied');
    expect(refused.error).toMatchObject({
      landlord: { requestedBytes: 40 * GB, bookedBytes: expect.any(Number) },
    });
    expect(await router.statusOf('huge')).toBe('unloaded');
  });

  it('is told when big models sleep', async () => {
    await landlord.must({ type: 'sleep', forMs: 60_000 });
    try {
      const refused = await openai('hasty')
        .chat.completions.create({ ...ASK, model: 'big' })
        .catch((error: unknown) => error);
      if (!(refused instanceof OpenAI.APIError)) throw new Error(String(refused));
      expect(refused.status).toBe(503);
      expect(refused.code).toBe('big_models_asleep');
    } finally {
      await landlord.must({ type: 'wake' });
    }
  });

  it('is told that there is no such model', async () => {
    const refused = await openai('one')
      .chat.completions.create({ ...ASK, model: 'nobody' })
      .catch((error: unknown) => error);
    if (!(refused instanceof OpenAI.APIError)) throw new Error(String(refused));
    expect(refused.status).toBe(404);
    expect(refused.code).toBe('unknown_model');
  });

  it('that leaves has its model stop at once, and its lane freed', async () => {
    const stream = await openai('one').chat.completions.create({
      ...ASK,
      model: 'middle',
      max_tokens: 4000,
      stream: true,
    });
    for await (const _chunk of stream) break;
    stream.controller.abort();
    await until(
      () => {
        using lane = tryTurn(router.url, { reports: false });
        return lane.kind === 'held';
      },
      2_000,
      'the lane to be free',
    );
    await until(
      async () => {
        const metrics = await fetch(`${router.url}/metrics?model=middle&autoload=false`);
        return /requests_processing 0/.test(await metrics.text());
      },
      3_000,
      'the model to stop generating',
    );
  });
});

describe('the history', () => {
  it('has each request with its tokens, its agent and its reason, and no word of what was said', async () => {
    await openai('historian').chat.completions.create({ ...ASK, model: 'small' });
    const token = (await readFile(join(landlord.folder, 'state', 'token'), 'utf8')).trim();
    const answer = await fetch(`${landlord.runtime.url}/api/requests?agent=historian`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const text = await answer.text();
    expect(JSON.parse(text)).toMatchObject([
      { model: 'router/small', backend: 'router', class: 'interactive', route: 'local', status: 200 },
    ]);
    expect(JSON.parse(text)[0].generatedTokens).toBeGreaterThan(0);
    expect(JSON.parse(text)[0].firstByteMs).toBeGreaterThanOrEqual(0);
    expect(text).not.toContain('abcdefgh');
  });

  it('counts a prompt whole though the model knew it from before, and speed only where it is told or seen', async () => {
    const session = `counted-${Date.now()}`;
    const client = new Anthropic({
      apiKey: 'none',
      baseURL: landlord.runtime.url,
      defaultHeaders: { 'x-landlord-session': session },
    });
    const ask = { ...ASK, model: 'small', max_tokens: 64 };
    const usage = (await openai(session).chat.completions.create(ask)).usage;
    await openai(session).chat.completions.create(ask);
    for await (const _part of await openai(session).chat.completions.create({ ...ask, stream: true }));
    for await (const _part of await client.messages.create({ ...ask, stream: true }));
    await client.messages.create(ask);
    const token = (await readFile(join(landlord.folder, 'state', 'token'), 'utf8')).trim();
    const answer = await fetch(`${landlord.runtime.url}/api/requests?agent=${session}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const records: Record<string, number | null>[] = JSON.parse(await answer.text());
    const prompt = usage?.prompt_tokens;
    const prompts = records.map((one) => one.promptTokens);
    // Its stream tells of the prompt in message_start, which llama-server leaves out now and then (see below).
    expect([prompt, null]).toContain(prompts.splice(3, 1)[0]);
    expect(prompts).toEqual([prompt, prompt, prompt, prompt]);
    for (const { generatedTokens } of records) expect(generatedTokens).toBeGreaterThan(0);
    expect(records.map((one) => typeof one.tokensPerS)).toEqual([
      'number',
      'number',
      'number',
      'number',
      // Anthropic's shape has no word of it, and a whole answer's bytes come at once.
      'object',
    ]);
  });

  it('is counted for Prometheus', async () => {
    const metrics = await (await fetch(`${landlord.runtime.url}/metrics`)).text();
    expect(metrics).toMatch(/landlord_requests_total\{route="local",class="interactive",code="200"\} \d+/);
    expect(metrics).toMatch(/landlord_requests_in_flight 0/);
  });
});

describe('the official Anthropic client', () => {
  const client = (session: string): Anthropic =>
    new Anthropic({
      apiKey: 'none',
      baseURL: landlord.runtime.url,
      defaultHeaders: { 'x-landlord-session': session },
    });
  const ask = { ...ASK, model: 'small' };

  it('is answered, streaming and not', async () => {
    const whole = await client('one').messages.create(ask);
    expect(whole.type).toBe('message');
    // Not its `stream` helper: llama-server leaves message_start out where a random model's first token is
    // half a letter, also when asked directly.
    const stream = await client('one').messages.create({ ...ask, stream: true });
    const types = new Set<string>();
    for await (const event of stream) types.add(event.type);
    expect(types).toContain('message_stop');
  });

  it('is refused in its own shape, once', async () => {
    using lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const refused = await client('hasty')
      .messages.create(ask)
      .catch((error: unknown) => error);
    if (!(refused instanceof Anthropic.APIError)) throw new Error(String(refused));
    expect(refused.status).toBe(503);
    expect(refused.error).toMatchObject({ type: 'error', error: { code: 'local_backend_busy' } });
  });
});

describe('a front port', () => {
  it('answers as the backend does on every path', async () => {
    const direct = await fetch(`${router.url}/props`);
    const fronted = await fetch(`http://127.0.0.1:${front}/props`);
    expect(await fronted.text()).toBe(await direct.text());
    expect(fronted.headers.get('server')).toBe(direct.headers.get('server'));
    const missing = await fetch(`http://127.0.0.1:${front}/no/such/path`);
    expect(missing.status).toBe((await fetch(`${router.url}/no/such/path`)).status);
  });

  it('takes the lane for what generates', async () => {
    const answer = await openai('one', `http://127.0.0.1:${front}`)
      .chat.completions.create({ ...ASK, model: 'small' })
      .asResponse();
    expect(answer.headers.get('x-landlord-turn')).toMatch(/^\w+-\w+$/);
    // Headers come before the end of the turn: the lane is free once the answer has been read to its end.
    await answer.text();
    using lane = await acquireTurn(`http://127.0.0.1:${front}`, {
      session: 'elsewhere',
      waitMs: 10_000,
      reports: false,
    });
    expect(lane.kind).toBe('held');
    const refused = await openai('hasty', `http://127.0.0.1:${front}`)
      .chat.completions.create({ ...ASK, model: 'small' })
      .catch((error: unknown) => error);
    if (!(refused instanceof OpenAI.APIError)) throw new Error(String(refused));
    expect(refused.code).toBe('local_backend_busy');
  });
});

describe('where a key is set', () => {
  it('both official clients get in with it and not without, and the backend never sees it', async () => {
    process.env.TEST_GATEWAY_KEY = 'door-key';
    const seen: string[] = [];
    const tap = http.createServer((asked, response) => {
      seen.push(JSON.stringify(asked.headers));
      const { host: _host, ...headers } = asked.headers;
      const sent = http.request(
        `${router.url}${asked.url ?? '/'}`,
        { method: asked.method, headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        },
      );
      sent.on('error', () => response.destroy());
      asked.pipe(sent);
    });
    const port = await listen(tap);
    try {
      await using keyed = await startLandlordBench({
        routerUrl: router.url,
        routerPid: () => router.pid(),
        totalBytes: 24 * GB,
        footprints: FOOTPRINTS,
        backend: `  - { name: router, kind: llama.cpp, url: "http://127.0.0.1:${port}" }`,
        config: 'server: { apiKeyEnv: TEST_GATEWAY_KEY }\n',
      });
      await keyed.seen();
      const ask = { ...ASK, model: 'small' };
      const shut = await openai('one', keyed.runtime.url)
        .chat.completions.create(ask)
        .catch((error: unknown) => error);
      if (!(shut instanceof OpenAI.APIError)) throw new Error(String(shut));
      expect(shut.status).toBe(401);
      const one = new OpenAI({ apiKey: 'door-key', baseURL: `${keyed.runtime.url}/v1` });
      expect((await one.chat.completions.create(ask)).choices).toHaveLength(1);
      const other = new Anthropic({ apiKey: 'door-key', baseURL: keyed.runtime.url });
      expect((await other.messages.create(ask)).type).toBe('message');
      expect(seen.some((headers) => headers.includes('x-stainless'))).toBe(true);
      expect(seen.join()).not.toContain('door-key');
    } finally {
      tap.closeAllConnections();
      await new Promise((resolve) => tap.close(resolve));
    }
  });
});
