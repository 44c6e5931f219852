import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tryTurn } from '../../electron/core/gate/index.ts';
import { LARGE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';
import { listen } from '../support/upstream.ts';

/** Turns of real processes, a real router, and a cloud of the test's own. */
const GB = 1_000_000_000;
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
let router: TestRouter;
let landlord: LandlordBench;
let front: number;
let cloud: http.Server;
const cloudSaw: {
  readonly headers: http.IncomingHttpHeaders;
  readonly url: string;
  readonly body: string;
}[] = [];

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  process.env.TEST_CLOUD_KEY = 'cloud-secret';
  cloud = http.createServer((asked, response) => {
    let body = '';
    asked.on('data', (part) => {
      body += part;
    });
    asked.on('end', () => {
      cloudSaw.push({ headers: asked.headers, url: asked.url ?? '', body });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"from":"cloud"}');
    });
  });
  const cloudPort = await listen(cloud);
  router = await startRouter({
    models: {
      small: { shape: TINY_SHAPE },
      fresh: { shape: TINY_SHAPE },
      page: { shape: LARGE_SHAPE },
    },
    args: ['--metrics'],
  });
  front = await freePort();
  landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: {
      small: { bytes: 2 * GB, rampMs: 0 },
      fresh: { bytes: GB, rampMs: 0 },
      page: { bytes: GB, rampMs: 0 },
    },
    backend: `  - { name: router, kind: llama.cpp, url: "${router.url}", lanes: 1, front: ${front} }`,
    config: [
      'agents:',
      '  hasty: { onBusy: reject }',
      '  patient: { onBusy: wait }',
      '  writer: { onBusy: fallback }',
      '  indexer: { class: batch }',
      'fallbacks:',
      `  - { name: beside, url: "${router.url}" }`,
      `  - { name: cloud, url: "http://127.0.0.1:${cloudPort}/v1", apiKeyEnv: TEST_CLOUD_KEY, models: { "*": cloud-model } }`,
    ].join('\n'),
  });
  landlord.card.set({ name: 'kwin_wayland', bytes: GB, type: 'G' });
  await landlord.seen();
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  await router[Symbol.asyncDispose]();
  cloud.closeAllConnections();
  await new Promise((resolve) => cloud.close(resolve));
  rmSync(gates, { recursive: true, force: true });
});

function gatewayPort(): number {
  return Number(new URL(landlord.runtime.url).port);
}

function ask(
  session: string,
  options: {
    readonly model?: string;
    readonly tokens?: number;
    readonly headers?: Record<string, string>;
    readonly port?: number;
  } = {},
) {
  const body = JSON.stringify({
    model: options.model ?? 'small',
    max_tokens: options.tokens ?? 4,
    messages: [{ role: 'user', content: 'abcdefgh' }],
  });
  const headers = { 'content-type': 'application/json', 'x-landlord-session': session, ...options.headers };
  return request(options.port ?? gatewayPort(), 'POST', '/v1/chat/completions', headers, body);
}

function token(): string {
  return readFileSync(join(landlord.folder, 'state', 'token'), 'utf8').trim();
}

function lanePath(port: number): string {
  return join(gates, `127.0.0.1_${port}.lock`);
}

describe('an agent that holds the lane itself (rule 20)', () => {
  /** flock(1) takes the lock and has a program call from inside it, as an agent of any language may. */
  const inside = async (lock: string, port: number, session: string): Promise<string> => {
    const script = `
      const answer = await fetch('http://127.0.0.1:${port}/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-landlord-session': '${session}' },
        body: JSON.stringify({ model: 'small', max_tokens: 4, messages: [{ role: 'user', content: 'abc' }] }),
      });
      await answer.text();
      console.log(answer.status);`;
    const child = spawn('flock', ['--nonblock', lock, process.execPath, '--input-type=module', '-e', script]);
    let out = '';
    child.stdout.on('data', (part) => {
      out += part;
    });
    const limit = setTimeout(() => child.kill('SIGKILL'), 20_000);
    await new Promise((resolve) => child.once('exit', resolve));
    clearTimeout(limit);
    return out.trim();
  };

  it('never waits on itself, at the gateway or at the front port, whichever lane it took', async () => {
    for (const lock of [lanePath(router.port), lanePath(front)])
      for (const port of [gatewayPort(), front])
        for (const session of ['hasty', 'patient']) expect(await inside(lock, port, session)).toBe('200');
  });

  it('while another is refused in the same moment', async () => {
    using lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    expect((await ask('hasty')).status).toBe(503);
    expect((await ask('hasty', { port: front })).status).toBe(503);
  });

  it('a claim that the kernel does not bear out opens nothing', async () => {
    using lane = tryTurn(router.url, { session: 'elsewhere', turn: 'real-turn', reports: false });
    expect(lane.kind).toBe('held');
    expect((await ask('hasty', { headers: { 'x-landlord-turn': 'made-up' } })).status).toBe(503);
    const passed = await ask('hasty', { headers: { 'x-landlord-turn': 'real-turn' } });
    expect(passed.status).toBe(200);
    expect(passed.headers['x-landlord-turn']).toBe('real-turn');
  });
});

function askTurn(wish: unknown): http.ClientRequest {
  const asked = http.request({
    host: '127.0.0.1',
    port: gatewayPort(),
    method: 'POST',
    path: '/api/turns',
    agent: false,
    headers: { authorization: `Bearer ${token()}`, 'content-type': 'application/json' },
  });
  return asked.end(JSON.stringify(wish));
}

describe('a turn of several requests', () => {
  it('is held by its connection, passes its own requests, and ends with the connection', async () => {
    const opened = await new Promise<{ readonly answer: http.IncomingMessage; readonly first: string }>(
      (resolve, reject) =>
        askTurn({ model: 'small', session: 'writer' })
          .on('response', (answer) => answer.once('data', (part) => resolve({ answer, first: String(part) })))
          .on('error', reject),
    );
    const { turn } = JSON.parse(opened.first);
    expect(turn).toMatch(/^\w+-\w+$/);
    for (let index = 0; index < 3; index += 1) {
      const answer = await ask('hasty', { headers: { 'x-landlord-turn': turn } });
      expect(answer.status).toBe(200);
    }
    expect((await ask('hasty')).status).toBe(503);
    opened.answer.destroy();
    await until(async () => (await ask('hasty')).status === 200, 3_000, 'the lane to be free');
  });
});

describe('turns held or waited for', () => {
  it('are at most a hundred, since each looks at the lane by itself: more would leave no time for anything else', async () => {
    const codes: (number | undefined)[] = [];
    const open = (): http.ClientRequest =>
      askTurn({ model: 'small', waitMs: 60_000 })
        .on('response', (answer) => codes.push(answer.resume().statusCode))
        .on('error', () => undefined);
    const turns = Array.from({ length: 130 }, open);
    await until(() => codes.filter((code) => code === 503).length === 30, 60_000, 'thirty to be refused');
    for (const turn of turns) turn.destroy();
    await until(async () => (await ask('hasty')).status === 200, 30_000, 'the lane to be free');
    const again = open();
    await until(() => codes.at(-1) === 200, 30_000, 'another turn to be held');
    again.destroy();
    await until(async () => (await ask('hasty')).status === 200, 10_000, 'the lane to be free again');
  });
});

describe('a turn held by a process', () => {
  /** Opens a turn, says so, and stays until it is killed; prints what it was told. */
  const script = (token: string): string => `
    import http from 'node:http';
    const asked = http.request({ host: '127.0.0.1', port: ${gatewayPort()}, method: 'POST', path: '/api/turns', agent: false,
      headers: { authorization: 'Bearer ${token}', 'content-type': 'application/json' } }, (answer) =>
      answer.on('data', (part) => process.stdout.write(part)));
    asked.end(JSON.stringify({ model: 'small', session: 'writer' }));`;
  const start = (command: string, args: readonly string[]) => {
    const child = spawn(command, [...args, process.execPath, '--input-type=module', '-e', script(token())]);
    let out = '';
    child.stdout.on('data', (part) => {
      out += part;
    });
    return { child, out: () => out };
  };

  it('is over the moment the process is killed', async () => {
    const holder = start('env', []);
    await until(() => holder.out().includes('\n'), 20_000, 'the turn to be held');
    expect(JSON.parse(holder.out())).toMatchObject({ lane: 'held', backend: 'router' });
    expect((await ask('hasty')).status).toBe(503);
    holder.child.kill('SIGKILL');
    await until(async () => (await ask('hasty')).status === 200, 10_000, 'the lane to be free');
  });

  it('that holds the lane by flock already is its own, and ends nothing when it ends', async () => {
    const holder = start('flock', ['--nonblock', '--no-fork', lanePath(router.port)]);
    await until(() => holder.out().includes('\n'), 20_000, 'the turn to be held');
    expect(JSON.parse(holder.out())).toMatchObject({ lane: 'nested' });
    expect((await ask('hasty')).status).toBe(503);
    holder.child.kill('SIGKILL');
    await until(async () => (await ask('hasty')).status === 200, 10_000, 'the lane to be free');
  });
});

describe('a deflected turn', () => {
  it('goes down the chain past busy local entries, says why, and the next one is local again (rule 18)', async () => {
    const from = landlord.events.length;
    {
      using lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
      expect(lane.kind).toBe('held');
      const sent = await ask('writer', { headers: { authorization: 'Bearer mine', cookie: 'a=b' } });
      expect(sent.json).toEqual({ from: 'cloud' });
      expect(sent.headers['x-landlord-route']).toBe('fallback');
      expect(sent.headers['x-landlord-backend']).toBe('cloud');
      expect(sent.headers['x-landlord-reason']).toContain('local_backend_busy');
    }
    const saw = cloudSaw.at(-1);
    expect(saw?.url).toBe('/v1/chat/completions');
    expect(JSON.parse(saw?.body ?? '{}').model).toBe('cloud-model');
    expect(saw?.headers.authorization).toBe('Bearer cloud-secret');
    expect(saw?.headers.cookie).toBeUndefined();
    expect(Object.keys(saw?.headers ?? {}).filter((name) => name.startsWith('x-landlord'))).toEqual([]);
    const told = await landlord.event('deflected', { from });
    expect(told).toMatchObject({ backend: 'router', session: 'writer', model: 'router/small' });
    expect(told.reason).toContain('cloud');
    expect((await ask('writer')).headers['x-landlord-route']).toBe('local');
  });

  it('whose body goes over the limit on its way is told so, and its provider is not blamed', async () => {
    const from = landlord.events.length;
    using lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const headers = {
      'content-type': 'application/json',
      'x-landlord-session': 'writer',
      'transfer-encoding': 'chunked',
    };
    const pad = 'x'.repeat(64 * 1024 * 1024);
    const body = `{"model":"small","stream":false,"messages":[],"pad":"${pad}"}`;
    const sent = await request(gatewayPort(), 'POST', '/v1/chat/completions', headers, body);
    expect(sent.status, sent.text).toBe(413);
    expect(sent.json).toMatchObject({ error: { code: 'too_large' } });
    expect(sent.headers['x-landlord-route']).toBe('local');
    const next = await ask('writer');
    expect(next.json).toEqual({ from: 'cloud' });
    expect(landlord.events.slice(from).map(({ kind }) => kind)).not.toContain('backend_down');
  });

  it('is not deflected where its agent is not set to be', async () => {
    const before = cloudSaw.length;
    using lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    expect((await ask('hasty')).status).toBe(503);
    expect(cloudSaw).toHaveLength(before);
  });
});

describe('loading', () => {
  it('many first requests at once make one load', async () => {
    const from = landlord.events.length;
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask('patient', { model: 'fresh' })));
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200, 200]);
    const loads = landlord.events
      .slice(from)
      .filter((event) => event.kind === 'loading' && event.model === 'router/fresh');
    expect(loads.length).toBeLessThanOrEqual(1);
  });

  it('a child that dies under a request before its first byte is loaded again, once, unseen by the client', async () => {
    const asked = ask('patient', { model: 'page', tokens: 200 });
    await landlord.is('router/page', 'loaded');
    await until(() => landlord.model('router/page').pid !== null, 10_000, 'its process to be proven');
    const { pid } = landlord.model('router/page');
    if (pid === null) throw new Error('no pid');
    process.kill(pid, 'SIGKILL');
    const answer = await asked;
    expect(answer.status).toBe(200);
    expect(landlord.model('router/page').pid).not.toBe(pid);
  });
});

describe('batch work', () => {
  it('is told to make way while an interactive request is in flight, and when it may go on, as a stream of changes', async () => {
    const frames: boolean[] = [];
    const stream = http.get({
      host: '127.0.0.1',
      port: gatewayPort(),
      path: '/api/yield',
      agent: false,
      headers: { authorization: `Bearer ${token()}`, accept: 'text/event-stream' },
    });
    stream.on('error', () => undefined);
    stream.on('response', (answer) => {
      answer.on('data', (part) => {
        for (const line of String(part).split('\n'))
          if (line.startsWith('data: ')) frames.push(JSON.parse(line.slice(6)).yield);
      });
      answer.on('error', () => undefined);
    });
    await until(() => frames.length > 0, 3_000, 'the first frame');
    await ask('patient', { tokens: 64 });
    await until(() => frames.includes(true), 3_000, 'the word to yield');
    await until(() => frames.at(-1) === false, 5_000, 'the word to go on');
    stream.destroy();
  });

  it('waits while an interactive request is in flight on another model of the device', async () => {
    const order: string[] = [];
    const person = ask('patient', { model: 'page', tokens: 40 }).then(() => order.push('person'));
    await new Promise((resolve) => setTimeout(resolve, 50));
    const batch = ask('indexer', { model: 'small' }).then(() => order.push('batch'));
    await Promise.all([person, batch]);
    expect(order).toEqual(['person', 'batch']);
  });
});

describe('whom it answers', () => {
  it('not a page of another origin, nor another name for this machine, on either port', async () => {
    for (const port of [gatewayPort(), front]) {
      const rebound = await request(port, 'GET', '/v1/models', { host: 'evil.example' });
      expect(rebound.status).toBe(421);
      const crossed = await request(
        port,
        'POST',
        '/v1/chat/completions',
        { origin: 'https://evil.example', 'content-type': 'application/json' },
        '{}',
      );
      expect(crossed.status).toBe(403);
      expect(crossed.headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  it('a body over the limit with 413', async () => {
    const refused = await request(gatewayPort(), 'POST', '/v1/chat/completions', {
      'content-type': 'application/json',
      'content-length': String(65 * 1024 * 1024),
      connection: 'close',
    }).catch(() => null);
    expect(refused?.status).toBe(413);
  });
});

describe('a stream that has to wait', () => {
  it('hears comments meanwhile, then its own answer, as an event stream', async () => {
    const lane = tryTurn(router.url, { session: 'elsewhere', reports: false });
    const text = await new Promise<string>((resolve, reject) => {
      const asked = http.request(
        {
          host: '127.0.0.1',
          port: gatewayPort(),
          method: 'POST',
          path: '/v1/chat/completions',
          agent: false,
          headers: { 'content-type': 'application/json', 'x-landlord-session': 'patient' },
        },
        (answer) => {
          let seen = '';
          expect(answer.headers['content-type']).toContain('text/event-stream');
          answer.on('data', (part) => {
            seen += part;
            lane[Symbol.dispose]();
          });
          answer.on('end', () => resolve(seen));
        },
      );
      asked.on('error', reject);
      asked.end(
        JSON.stringify({
          model: 'small',
          stream: true,
          max_tokens: 4,
          messages: [{ role: 'user', content: 'abc' }],
        }),
      );
    });
    expect(text).toMatch(/^: waiting/);
    expect(text).toContain('data: [DONE]');
  });
});
