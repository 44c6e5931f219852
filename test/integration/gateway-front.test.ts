import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LARGE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { openStream, request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';
import { rawRequest } from '../support/upstream.ts';

/** A backend's own port, as its clients knew it: the router has moved, and they need no new setting. */
const GB = 1_000_000_000;
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
let first: TestRouter;
let second: TestRouter;
let landlord: LandlordBench;
let configured = '';
let here = 0;
let there = 0;

/** `front` of either backend; null: it has none. */
function backends(one: number | null, other: number | null): string {
  const front = (port: number | null): string => (port === null ? '' : `, front: ${port}`);
  return [
    `  - { name: first, kind: llama.cpp, url: "${first.url}", lanes: 1${front(one)} }`,
    `  - { name: second, kind: llama.cpp, url: "${second.url}"${front(other)} }`,
  ].join('\n');
}

function configure(one: number | null, other: number | null): void {
  const text = backends(one, other);
  writeFileSync(
    landlord.configFile,
    readFileSync(landlord.configFile, 'utf8').replace(configured, () => text),
  );
  configured = text;
}

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  [first, second] = await Promise.all([
    startRouter({
      models: { small: { shape: TINY_SHAPE }, slow: { shape: LARGE_SHAPE }, huge: { shape: TINY_SHAPE } },
      args: ['--metrics'],
    }),
    startRouter({ models: { other: { shape: TINY_SHAPE } } }),
  ]);
  here = await freePort();
  there = await freePort();
  configured = backends(here, null);
  landlord = await startLandlordBench({
    routerUrl: first.url,
    routerPid: () => first.pid(),
    totalBytes: 24 * GB,
    footprints: {
      small: { bytes: 2 * GB, rampMs: 0 },
      slow: { bytes: GB, rampMs: 0 },
      huge: { bytes: 40 * GB, rampMs: 0 },
      other: { bytes: GB, rampMs: 0 },
    },
    backend: configured,
  });
  await landlord.seen();
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  rmSync(gates, { recursive: true, force: true });
});

async function namesAt(port: number): Promise<readonly string[] | null> {
  const answer = await request(port, 'GET', '/models').catch(() => null);
  if (answer === null) return null;
  const body: { data?: { id?: string }[] } = JSON.parse(answer.text);
  return body.data?.map((model) => model.id ?? '').sort() ?? [];
}

function load(model: string): ReturnType<typeof request> {
  const headers = { 'content-type': 'application/json' };
  return request(here, 'POST', '/models/load', headers, JSON.stringify({ model }));
}

/** A long answer through the front port; resolves when its first bytes are there. */
function longAnswer(port: number): Promise<{ readonly done: Promise<string> }> {
  return new Promise((resolve, reject) => {
    const asked = http.request(
      {
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: '/v1/chat/completions',
        agent: false,
        headers: { 'content-type': 'application/json' },
      },
      (answer) => {
        let text = '';
        const done = new Promise<string>((end, broken) => {
          answer.on('end', () => end(text));
          answer.on('error', broken);
        });
        answer.on('data', (part) => {
          text += part;
          resolve({ done });
        });
      },
    );
    asked.on('error', reject);
    asked.end(
      JSON.stringify({
        model: 'slow',
        stream: true,
        max_tokens: 120,
        ignore_eos: true,
        messages: [{ role: 'user', content: 'abcd' }],
      }),
    );
  });
}

describe('a front port', () => {
  it('answers with its backend’s own bytes on its own paths', async () => {
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/models'],
      ['GET', '/v1/models'],
      ['GET', '/props'],
      ['GET', '/health'],
      ['GET', '/slots?model=small&autoload=false'],
      ['GET', '/props?model=small&autoload=false'],
      ['GET', '/no/such/path?x=%20y'],
      ['OPTIONS', '/v1/chat/completions'],
      ['POST', '/models/load'],
    ] as const) {
      const body = method === 'POST' ? { body: '{"model":"nobody"}' } : {};
      const direct = await rawRequest(first.port, { method, path, ...body });
      const fronted = await rawRequest(here, { method, path, ...body });
      expect(fronted.status, `${method} ${path}`).toBe(direct.status);
      expect(fronted.body.toString(), `${method} ${path}`).toBe(direct.body.toString());
      for (const header of ['content-type', 'server'])
        expect(fronted.headers[header], `${method} ${path}`).toBe(direct.headers[header]);
    }
  });

  it('passes the router’s event stream on, and has what it is asked to load admitted first', async () => {
    const events = await openStream(here, '/models/sse', {});
    const loaded = await load('small');
    expect([loaded.status, loaded.json]).toEqual([200, { success: true }]);
    await events.until(() => events.frames.some(({ data }) => data.includes('"small"')));
    events.close();
    await landlord.is('first/small', 'loaded');
    expect(landlord.runtime.state().devices[0]?.bookedBytes).toBe(2 * GB);
    expect((await load('small')).status).toBe(400);
    const denied = await load('huge');
    expect(denied.status).toBe(503);
    expect(denied.json).toMatchObject({ error: { code: 'vram_denied' } });
    const asked = await request(here, 'GET', '/props?model=huge');
    expect(asked.json).toMatchObject({ error: { code: 'vram_denied' } });
    expect((await request(here, 'HEAD', '/props?model=huge')).status).toBe(503);
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    expect((await request(here, 'GET', '/props?model=huge', upgrade)).status).toBe(503);
    const body = '{"model":"huge","max_tokens":1,"messages":[]}';
    for (const path of ['/props', '/slots/0?action=erase', '/lora-adapters', '/v1/chat/completions/control'])
      expect((await request(here, 'POST', path, {}, body)).status, path).toBe(503);
    // llama-server takes each of these for one that needs admission.
    for (const path of ['/v1/chat/completions#x', '/v1/chat/completion%u0073'])
      expect((await request(here, 'POST', path, {}, body)).status, path).toBe(400);
    expect((await request(here, 'GET', '/props?model=huge#x')).status).toBe(400);
    expect(await first.statusOf('huge')).toBe('unloaded');
  });
});

describe('a program that says no name', () => {
  it('has one in the lane and among the agents all the same, from its second request on a connection', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const ask = (tokens: number): Promise<void> =>
      new Promise((resolve, reject) => {
        const headers = { 'content-type': 'application/json' };
        const asked = http.request(
          { host: '127.0.0.1', port: here, method: 'POST', path: '/v1/chat/completions', agent, headers },
          (answer) => answer.resume().on('end', resolve).on('error', reject),
        );
        const messages = [{ role: 'user', content: 'abcd' }];
        asked.on('error', reject);
        // A router goes on with an answer that is no stream, also when its client has left.
        const how = { stream: true, ignore_eos: true };
        asked.end(JSON.stringify({ model: 'slow', max_tokens: tokens, messages, ...how }));
      });
    const state = () => landlord.runtime.state();
    await ask(1);
    await until(() => state().agents.length === 1, 10_000, 'the program to be known');
    const name = state().agents[0]?.agent;
    const second = ask(1_500).catch(() => undefined);
    await until(() => state().agents[0]?.state === 'generating', 10_000, 'it to be shown');
    expect(
      state()
        .lanes.flatMap((lane) => lane.holders)
        .map((holder) => holder.session),
    ).toContain(name);
    agent.destroy();
    await second;
  });
});

describe('a front port in a config that changes', () => {
  it('opens, moves and closes at once, and who is being answered is answered to the end', async () => {
    expect(await namesAt(here)).toEqual(['huge', 'slow', 'small']);
    const answer = await longAnswer(here);
    configure(there, null);
    await until(async () => (await namesAt(there)) !== null, 10_000, 'the new port');
    expect(await namesAt(here)).toBeNull();
    expect(await answer.done).toContain('data: [DONE]');
    configure(here, there);
    await until(async () => (await namesAt(there))?.[0] === 'other', 10_000, 'both ports');
    expect(await namesAt(here)).toEqual(['huge', 'slow', 'small']);
    // They swap: each is free for the other in one change.
    configure(there, here);
    await until(async () => (await namesAt(here))?.[0] === 'other', 10_000, 'the ports to be swapped');
    await until(async () => (await namesAt(there))?.[0] === 'huge', 10_000, 'the ports to be swapped');
    configure(null, null);
    await until(async () => (await namesAt(here)) === null, 10_000, 'the first port to close');
    await until(async () => (await namesAt(there)) === null, 10_000, 'the second port to close');
  });

  it('that is taken is told once and tried again, and everything else goes on', async () => {
    const from = landlord.events.length;
    const squatter = http.createServer((_asked, response) => response.writeHead(418).end());
    await new Promise<void>((resolve) => squatter.listen(here, '127.0.0.1', resolve));
    configure(here, there);
    const told = await landlord.event('config_rejected', { from });
    expect(told).toMatchObject({ backend: 'first', numbers: { port: here, pid: process.pid } });
    expect(told.reason).toContain(`port ${here}`);
    await until(async () => (await namesAt(there))?.[0] === 'other', 10_000, 'the other port');
    const list = await request(Number(new URL(landlord.runtime.url).port), 'GET', '/v1/models');
    expect(list.status).toBe(200);
    // Longer than it takes to try again: it is still the same trouble.
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    expect(landlord.events.slice(from).filter((event) => event.kind === 'config_rejected')).toHaveLength(1);
    squatter.closeAllConnections();
    await new Promise((resolve) => squatter.close(resolve));
    await until(async () => (await namesAt(here))?.[0] === 'huge', 20_000, 'the port to be taken');
  });
});
