import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { GatewayMount } from '../../../electron/core/http/routes.ts';
import { type HttpServer, startHttpServer } from '../../../electron/core/http/server.ts';
import { fail } from '../../../shared/errors.ts';
import { createFakeRuntime, type FakeRuntime } from '../../support/fake-runtime.ts';
import { request } from '../../support/http-request.ts';
import { BEARER, handClock, serveFake, TOKEN } from '../../support/serve-fake.ts';

let server: HttpServer;
let runtime: FakeRuntime;

async function start(options: Parameters<typeof serveFake>[0] = {}): Promise<void> {
  ({ server, runtime } = await serveFake(options));
}

afterEach(async () => {
  await server.stop();
});

describe('who may use the API', () => {
  it.each([
    ['no credentials', {}],
    ['a wrong token', { authorization: `Bearer ${TOKEN}x` }],
    ['the token under another scheme', { authorization: `Basic ${TOKEN}` }],
    ['a made-up cookie', { cookie: 'landlord_7781=1.x' }],
  ])('refuses %s on every API route, with a sentence', async (_name, headers: Record<string, string>) => {
    await start();
    for (const [method, path] of [
      ['GET', '/api/state'],
      ['GET', '/%61pi/state'],
      ['GET', '/api/events?json=1'],
      ['GET', '/api/stream'],
      ['POST', '/api/drain'],
      ['POST', '/api/open'],
      ['POST', '/api/reports'],
      ['POST', '/api/models/router%2Fcoder-9b/load'],
      ['GET', '/api/nothing'],
    ] as const) {
      const answer = await request(server.port, method, path, headers);
      expect([path, answer.status]).toEqual([path, 401]);
      expect(answer.json).toMatchObject({ error: { code: 'unauthorized', message: expect.any(String) } });
    }
    expect(runtime.commands).toEqual([]);
  });

  it('lets the bearer token in and answers with the state as it is', async () => {
    await start();
    const answer = await request(server.port, 'GET', '/api/state', BEARER);
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual(runtime.state());
  });

  it('trades a one-time key for a cookie, once, and the key leaves the address', async () => {
    await start();
    const key = new URL(server.openUrl());
    const first = await request(server.port, 'GET', key.pathname + key.search);
    expect(first.status).toBe(303);
    expect(first.headers.location).toBe('/');
    const setCookie = String(first.headers['set-cookie']);
    expect(setCookie).toMatch(/; HttpOnly; SameSite=Strict;/);
    expect(setCookie).not.toContain(TOKEN);
    const cookie = setCookie.split(';', 1)[0] ?? '';
    expect((await request(server.port, 'GET', '/api/state', { cookie })).status).toBe(200);

    const second = await request(server.port, 'GET', key.pathname + key.search);
    expect(second.status).toBe(401);
    expect(second.headers['set-cookie']).toBeUndefined();
  });

  it('lets a used key pass where the cookie is there already', async () => {
    await start();
    const path = `/${new URL(server.openUrl()).search}`;
    const first = await request(server.port, 'GET', path);
    const cookie = String(first.headers['set-cookie']).split(';', 1)[0] ?? '';
    const again = await request(server.port, 'GET', path, { cookie });
    expect([again.status, again.headers.location]).toEqual([303, '/']);
  });

  it('takes a cookie back after 30 days', async () => {
    const clock = handClock();
    await start({ clock });
    const first = await request(server.port, 'GET', `/${new URL(server.openUrl()).search}`);
    const cookie = String(first.headers['set-cookie']).split(';', 1)[0] ?? '';
    clock.advance(29.9 * 86_400_000);
    expect((await request(server.port, 'GET', '/api/state', { cookie })).status).toBe(200);
    clock.advance(0.2 * 86_400_000);
    expect((await request(server.port, 'GET', '/api/state', { cookie })).status).toBe(401);
  });

  it('hands a fresh address to whoever has the token', async () => {
    await start();
    const answer = await request(server.port, 'POST', '/api/open', BEARER);
    expect(answer.json).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/\?key=[\w-]{40,}$/),
    });
  });

  it('leaves /healthz and /metrics open, unless a key is set', async () => {
    await start();
    expect((await request(server.port, 'GET', '/healthz')).json).toMatchObject({
      ok: true,
      version: '0.1.0',
    });
    expect((await request(server.port, 'GET', '/metrics')).status).toBe(200);
    await server.stop();
    await start({ apiKey: () => 'scrape-key' });
    for (const path of ['/healthz', '/metrics']) {
      expect((await request(server.port, 'GET', path)).status).toBe(401);
      const keyed = { authorization: 'Bearer scrape-key' };
      expect((await request(server.port, 'GET', path, keyed)).status).toBe(200);
      expect((await request(server.port, 'GET', path, BEARER)).status).toBe(200);
    }
    const keyOnApi = await request(server.port, 'GET', '/api/state', { authorization: 'Bearer scrape-key' });
    expect(keyOnApi.status).toBe(401);
  });
});

describe('a request for a model, which passes by the routes', () => {
  const handled: string[] = [];
  const gateway: GatewayMount = {
    addRoutes(app) {
      app.all('/v1/*', async () => ({ through: 'routes' }));
    },
    async handle(asked, response) {
      handled.push(asked.url ?? '');
      response.end(JSON.stringify({ through: 'straight' }));
    },
    metrics: async () => '',
  };

  it('goes straight to the gateway', async () => {
    handled.length = 0;
    await start({ gateway });
    const answer = await request(server.port, 'POST', '/v1/chat/completions?a=1', {}, '{}');
    expect(answer.json).toEqual({ through: 'straight' });
    expect(handled).toEqual(['/v1/chat/completions?a=1']);
  });

  it('is let in by the same checks as any other', async () => {
    handled.length = 0;
    await start({ gateway, apiKey: () => 'door' });
    const own = `127.0.0.1:${server.port}`;
    for (const [status, headers] of [
      [401, { host: own }],
      [401, { host: own, authorization: 'Bearer wrong' }],
      [421, { host: 'evil.example', authorization: 'Bearer door' }],
      [403, { host: own, authorization: 'Bearer door', origin: 'http://evil.example' }],
      [403, { host: own, authorization: 'Bearer door', 'sec-fetch-site': 'cross-site' }],
    ] as const) {
      const answer = await request(server.port, 'POST', '/v1/chat/completions', headers, '{}');
      expect([answer.status, headers]).toEqual([status, headers]);
    }
    expect(handled).toEqual([]);
    const keyed = await request(
      server.port,
      'POST',
      '/v1/messages',
      { host: own, 'x-api-key': 'door' },
      '{}',
    );
    expect(keyed.json).toEqual({ through: 'straight' });
  });
});

describe('which requests are meant for us', () => {
  it('refuses another host, as after DNS rebinding, even with the token', async () => {
    await start();
    for (const host of ['evil.example', `evil.example:${server.port}`, '127.0.0.1:1', '127.0.0.1']) {
      const answer = await request(server.port, 'GET', '/api/state', { ...BEARER, host });
      expect([host, answer.status]).toEqual([host, 421]);
    }
    for (const host of ['127.0.0.1', 'LOCALHOST', '[::1]']) {
      const headers = { ...BEARER, host: `${host}:${server.port}` };
      expect((await request(server.port, 'GET', '/api/state', headers)).status).toBe(200);
    }
  });

  it('refuses other origins, other ports of localhost among them', async () => {
    await start();
    for (const origin of [
      'http://evil.example',
      'null',
      `https://127.0.0.1:${server.port}`,
      'http://127.0.0.1:3000',
    ]) {
      const answer = await request(server.port, 'POST', '/api/drain', { ...BEARER, origin });
      expect([origin, answer.status]).toEqual([origin, 403]);
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    }
    expect(runtime.commands).toEqual([]);
    const own = { ...BEARER, origin: `http://localhost:${server.port}` };
    expect((await request(server.port, 'POST', '/api/drain', own)).status).toBe(200);
  });

  it('refuses what a browser marks as sent by another site, save a followed link', async () => {
    await start();
    for (const site of ['cross-site', 'same-site']) {
      const headers = { ...BEARER, 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' };
      expect((await request(server.port, 'GET', '/api/state', headers)).status).toBe(403);
    }
    const link = { ...BEARER, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect((await request(server.port, 'GET', '/', link)).status).toBe(200);
    expect((await request(server.port, 'POST', '/api/drain', link)).status).toBe(403);
  });
});

describe('commands', () => {
  it.each([
    [
      '/api/models/router%2Fcoder-9b/load',
      { force: true },
      { type: 'load', model: 'router/coder-9b', force: true },
    ],
    ['/api/models/router%2Fa%2Fb/unload', undefined, { type: 'unload', model: 'router/a/b', force: false }],
    ['/api/models/router%2Fm/pin', {}, { type: 'pin', model: 'router/m' }],
    ['/api/models/router%2Fm/unpin', undefined, { type: 'unpin', model: 'router/m' }],
    ['/api/sleep', { for: '2h' }, { type: 'sleep', forMs: 7_200_000 }],
    ['/api/sleep', undefined, { type: 'sleep', forMs: null }],
    ['/api/wake', undefined, { type: 'wake' }],
    ['/api/drain', {}, { type: 'drain' }],
    ['/api/drain', { kill: true, restartUnit: false }, { type: 'drain', kill: true }],
    ['/api/accept', { offer: 'drain-kill' }, { type: 'accept', offer: 'drain-kill' }],
    ['/api/restore', {}, { type: 'restore' }],
    ['/api/make-room', { bytes: 8e9 }, { type: 'makeRoom', freeBytes: 8e9, deviceId: null }],
    ['/api/make-room', { bytes: '8GB', device: 'x' }, { type: 'makeRoom', freeBytes: 8e9, deviceId: 'x' }],
    ['/api/make-room', { bytes: null }, { type: 'makeRoom', freeBytes: null, deviceId: null }],
    ['/api/guards', { mode: 'on' }, { type: 'guards', mode: 'on', forMs: null, backend: null }],
    [
      '/api/guards',
      { mode: 'pause', for: 60_000, backend: 'r' },
      { type: 'guards', mode: 'pause', forMs: 60_000, backend: 'r' },
    ],
  ])('POST %s %j asks the runtime for just that', async (path, body, command) => {
    await start();
    const json = body === undefined ? undefined : JSON.stringify(body);
    const type: Record<string, string> = json === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await request(server.port, 'POST', path, { ...BEARER, ...type }, json);
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({ message: `Did ${command.type}.` });
    expect(runtime.commands).toEqual([command]);
  });

  it.each([
    ['/api/models/coder-9b/load', '{}', 400],
    ['/api/models/router%2F/load', '{}', 400],
    ['/api/models/%2Fm/load', '{}', 400],
    ['/api/models/router%2/load', '{}', 400],
    ['/api/models/%ff%fe/load', '{}', 400],
    ['/api/models/router%2Fm/load', '{"forse":true}', 400],
    ['/api/models/router%2Fm/load', '{"force":"yes"}', 400],
    ['/api/models/router%2Fm/pin', '{"force":true}', 400],
    ['/api/models/router%2Fm/load', '{"force":', 400],
    ['/api/models/router%2Fm/load', '{"__proto__":{"force":true}}', 400],
    ['/api/models/router%2Fm/load', '[]', 400],
    ['/api/sleep', '{"for":"soon"}', 400],
    ['/api/sleep', '{"for":-5}', 400],
    ['/api/make-room', '{"bytes":0}', 400],
    ['/api/make-room', '{"bytes":"8 parsecs"}', 400],
    ['/api/guards', '{}', 400],
    ['/api/guards', '{"mode":"off"}', 400],
    ['/api/guards', '{"mode":"on","for":"1h"}', 400],
    ['/api/models/router%2Fm/explode', '{}', 404],
  ])('POST %s %s is refused and does nothing', async (path, body, status) => {
    await start();
    const headers = { ...BEARER, 'content-type': 'application/json' };
    const answer = await request(server.port, 'POST', path, headers, body);
    expect(answer.status).toBe(status);
    expect(answer.json).toMatchObject({ error: { message: expect.stringMatching(/\.$/) } });
    expect(runtime.commands).toEqual([]);
  });

  it('takes no form, no text and no body over a megabyte', async () => {
    await start();
    for (const type of [
      'application/x-www-form-urlencoded',
      'text/plain',
      'multipart/form-data; boundary=x',
    ]) {
      const headers = { ...BEARER, 'content-type': type };
      expect((await request(server.port, 'POST', '/api/drain', headers, '{}')).status).toBe(415);
    }
    const huge = JSON.stringify({ for: 'x'.repeat(1024 * 1024) });
    const headers = { ...BEARER, 'content-type': 'application/json' };
    const answer = await request(server.port, 'POST', '/api/sleep', headers, huge);
    expect(answer.status).toBe(413);
    expect(answer.json).toMatchObject({ error: { code: 'too_large' } });
    expect(runtime.commands).toEqual([]);
  });

  it.each([
    ['unknown_model', 404],
    ['vram_denied', 503],
    ['model_busy', 409],
    ['backend_unreachable', 502],
    ['timed_out', 504],
    ['internal', 500],
  ] as const)('passes a %s refusal on with its numbers, as %d', async (code, status) => {
    await start();
    runtime.answer = () => fail(code, 'It can not be done.', { freeBytes: 5, floorBytes: null });
    const answer = await request(server.port, 'POST', '/api/models/router%2Fm/load', BEARER);
    expect(answer.status).toBe(status);
    expect(answer.json).toEqual({
      error: { code, message: 'It can not be done.', numbers: { freeBytes: 5, floorBytes: null } },
    });
  });

  it('shows no stack and no message of an exception', async () => {
    await start();
    runtime.answer = () => {
      throw new Error('secret at /home/someone/file.ts:1');
    };
    const answer = await request(server.port, 'POST', '/api/drain', BEARER);
    expect(answer.status).toBe(500);
    expect(answer.text).not.toMatch(/secret|file\.ts|at /);
    expect(answer.json).toMatchObject({ error: { code: 'internal' } });
  });

  it('tells a waiting command when the server stops', async () => {
    await start();
    let aborted = false;
    runtime.answer = (_command, signal) =>
      new Promise((resolve) => {
        signal?.addEventListener('abort', () => {
          aborted = true;
          resolve(fail('cancelled', 'Stopped.'));
        });
      });
    const waiting = request(server.port, 'POST', '/api/models/router%2Fm/load', BEARER).catch(() => null);
    while (runtime.commands.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await server.stop();
    await waiting;
    expect(aborted).toBe(true);
  });
});

describe('events as a list', () => {
  it('selects by id, kind and model, and keeps the newest', async () => {
    await start();
    runtime.append({ kind: 'loaded', model: 'router/a' });
    runtime.append({ kind: 'evicted', model: 'router/a' });
    runtime.append({ kind: 'evicted', model: 'router/b' });
    runtime.append({ kind: 'denied' });
    const ids = async (query: string): Promise<unknown> => {
      const answer = await request(server.port, 'GET', `/api/events?${query}`, BEARER);
      return Array.isArray(answer.json)
        ? answer.json.map((event: { id: number }) => event.id)
        : answer.status;
    };
    expect(await ids('json=1')).toEqual([1, 2, 3, 4]);
    expect(await ids('json=1&after=1&before=4')).toEqual([2, 3]);
    expect(await ids('json=1&kind=evicted,denied&limit=2')).toEqual([3, 4]);
    expect(await ids('json=1&kind=loaded&kind=denied')).toEqual([1, 4]);
    expect(await ids('json=1&model=router%2Fa')).toEqual([1, 2]);
    for (const bad of ['after=x', 'limit=0', 'limit=5001', 'kind=eviction', 'before=-1']) {
      expect([bad, await ids(`json=1&${bad}`)]).toEqual([bad, 400]);
    }
  });

  it('answers a list to a client that accepts JSON', async () => {
    await start();
    runtime.append({});
    const answer = await request(server.port, 'GET', '/api/events', {
      ...BEARER,
      accept: 'application/json',
    });
    expect(answer.json).toHaveLength(1);
  });

  it('says so when the log cannot be read', async () => {
    await start();
    runtime.failEvents = true;
    const answer = await request(server.port, 'GET', '/api/events?json=1', BEARER);
    expect([answer.status, answer.json]).toEqual([
      507,
      { error: { code: 'storage_failed', message: 'The event log cannot be read.' } },
    ]);
  });
});

describe('what is not here', () => {
  it('tells a client whose base URL is a little wrong where to go, and nobody else', async () => {
    await start();
    const json = { 'content-type': 'application/json' };
    const chat = await request(server.port, 'POST', '/chat/completions?x=1', json, '{}');
    expect(chat.status).toBe(404);
    expect(chat.text).toContain('but /v1/chat/completions');
    expect((await request(server.port, 'POST', '/messages', json, '{}')).text).toContain('but /v1/messages');
    expect((await request(server.port, 'POST', '/v2/chat/completions', json, '{}')).text).toContain(
      'but /v1/chat/completions',
    );
    for (const [method, path] of [
      ['POST', '/api/chat'],
      ['POST', '/nothing'],
      ['GET', '/messages'],
    ] as const)
      expect((await request(server.port, method, path)).status, path).toBe(401);
  });

  it('a HEAD of a stream ends at once and leaves nothing open', async () => {
    await start();
    const before = runtime.eventListeners();
    expect((await request(server.port, 'HEAD', '/api/stream', BEARER)).status).toBe(404);
    expect(runtime.eventListeners()).toBe(before);
  });

  it.each(['/api/turns', '/api/yield', '/v1/chat/completions', '/v1/messages'])(
    '%s answers 404 with a sentence',
    async (path) => {
      await start();
      const answer = await request(server.port, 'POST', path, BEARER);
      expect(answer.status).toBe(404);
      expect(answer.json).toMatchObject({
        error: { code: 'not_found', message: expect.stringMatching(/\.$/) },
      });
    },
  );
});

describe('a port that is taken', () => {
  it('is an error that names the holder and the way out', async () => {
    await start();
    const other = createServer();
    const port = await new Promise<number>((resolve) => {
      other.listen(0, '127.0.0.1', () => {
        const address = other.address();
        resolve(address !== null && typeof address === 'object' ? address.port : 0);
      });
    });
    const second = await startHttpServer({
      api: createFakeRuntime(),
      port,
      token: TOKEN,
      apiKey: () => null,
      pageDir: null,
      version: '0.1.0',
    });
    other.close();
    expect(second).toMatchObject({ ok: false, error: { code: 'already_running' } });
    if (second.ok) return;
    expect(second.error.message).toContain(`Port ${port} is taken by process ${process.pid} (`);
    expect(second.error.message).toContain('--port');
  });
});

describe('reports of other processes', () => {
  const report = { kind: 'fail_open', reason: 'No lane here.', session: 'nightly' };
  const send = (body: string): ReturnType<typeof request> =>
    request(server.port, 'POST', '/api/reports', { ...BEARER, 'content-type': 'application/json' }, body);

  it('reach the runtime', async () => {
    await start();
    expect((await send(JSON.stringify(report))).status).toBe(202);
    expect(runtime.reported).toEqual([{ ...report, lane: null, model: null, numbers: {} }]);
  });

  it('are refused when they are none, or larger than any is', async () => {
    await start();
    expect((await send('{"kind":"evicted","reason":"x"}')).status).toBe(400);
    expect((await send(JSON.stringify({ ...report, reason: 'x'.repeat(20_000) }))).status).toBe(413);
    expect(runtime.reported).toEqual([]);
  });
});
