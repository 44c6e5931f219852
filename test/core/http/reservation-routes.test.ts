import http from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { HttpServer } from '../../../electron/core/http/server.ts';
import { fail } from '../../../shared/errors.ts';
import type { FakeRuntime } from '../../support/fake-runtime.ts';
import { request } from '../../support/http-request.ts';
import { BEARER, serveFake } from '../../support/serve-fake.ts';

const GB = 1_000_000_000;
const JSON_BODY = { ...BEARER, 'content-type': 'application/json' };

let server: HttpServer;
let runtime: FakeRuntime;

async function start(): Promise<void> {
  ({ server, runtime } = await serveFake());
}

afterEach(async () => {
  await server.stop();
});

interface Held {
  readonly status: number;
  lines(): readonly string[];
  readonly closed: Promise<void>;
  close(): void;
}

function hold(body: unknown): { readonly answer: Promise<Held>; leave(): void } {
  const outgoing = http.request({
    host: '127.0.0.1',
    port: server.port,
    method: 'POST',
    path: '/api/reservations',
    headers: JSON_BODY,
    agent: false,
  });
  const answer = new Promise<Held>((resolve, reject) => {
    outgoing.on('error', reject);
    outgoing.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.on('error', () => undefined);
      const closed = new Promise<void>((done) => response.on('close', done));
      resolve({
        status: response.statusCode ?? 0,
        lines: () => text.split('\n').filter((line) => line !== ''),
        closed,
        close: () => outgoing.destroy(),
      });
    });
  });
  outgoing.end(JSON.stringify(body));
  return { answer, leave: () => outgoing.destroy() };
}

describe('POST /api/reservations', () => {
  it('holds the booking while its connection is open, and gives it back when that closes', async () => {
    await start();
    const held = await hold({ bytes: '9GB', name: 'sdxl' }).answer;
    expect(held.status).toBe(200);
    await expect.poll(() => held.lines().length).toBe(1);
    expect(JSON.parse(held.lines()[0] ?? '')).toMatchObject({ id: 'job-1', name: 'sdxl', bytes: 9 * GB });
    const listed = await request(server.port, 'GET', '/api/reservations', BEARER);
    expect(listed.json).toMatchObject([
      { id: 'job-1', name: 'sdxl', bytes: 9 * GB, since: expect.any(String) },
    ]);
    held.close();
    await expect.poll(() => runtime.reservations()).toEqual([]);
  });

  it('are at most 64 at a time: each holds a connection', async () => {
    await start();
    const held = await Promise.all(
      Array.from({ length: 64 }, () => hold({ bytes: '1MB', name: 'one of many' }).answer),
    );
    expect(held.every(({ status }) => status === 200)).toBe(true);
    const more = await hold({ bytes: '1MB' }).answer;
    expect(more.status).toBe(503);
    held[0]?.close();
    await expect.poll(() => runtime.reservations().length).toBe(63);
    expect((await hold({ bytes: '1MB' }).answer).status).toBe(200);
  });

  it('knows by the connection whose process asks', async () => {
    await start();
    const held = await hold({ bytes: 9 * GB, device: 'sim:0' }).answer;
    expect(runtime.reserveRequests).toEqual([
      { bytes: 9 * GB, device: 'sim:0', name: null, pid: process.pid },
    ]);
    held.close();
  });

  it('answers a denial with 503, its sentence and its numbers (rule 4)', async () => {
    await start();
    const numbers = { requestedBytes: 9 * GB, freeBytes: 4 * GB, shortBytes: 8 * GB };
    runtime.refuseReserve = async () =>
      fail('vram_denied', 'sdxl needs 9.0 GB; 4.0 GB is free.', numbers).error;
    const answer = await request(server.port, 'POST', '/api/reservations', JSON_BODY, '{"bytes":"9GB"}');
    expect(answer.status).toBe(503);
    expect(answer.json).toEqual({
      error: { code: 'vram_denied', message: 'sdxl needs 9.0 GB; 4.0 GB is free.', numbers },
    });
  });

  it('gives up for a client that leaves while room is made, also when it was booked in that moment', async () => {
    await start();
    let grant = (): void => undefined;
    const seen: AbortSignal[] = [];
    runtime.refuseReserve = (_request, signal) => {
      seen.push(signal);
      return new Promise((resolve) => {
        grant = () => resolve(null);
      });
    };
    const waiting = hold({ bytes: '9GB' });
    waiting.answer.catch(() => undefined);
    await expect.poll(() => seen.length).toBe(1);
    waiting.leave();
    await expect.poll(() => seen[0]?.aborted).toBe(true);
    grant();
    await expect.poll(() => runtime.reserveRequests.length).toBe(1);
    await expect.poll(() => runtime.reservations()).toEqual([]);
  });

  it.each([
    ['no size', '{}', 'bytes'],
    ['a size of nothing', '{"bytes":"0GB"}', 'bytes'],
    ['a lone letter for a unit', '{"bytes":"9G"}', '9GB'],
    ['a share', '{"bytes":"50%"}', 'share'],
    ['a misspelt field', '{"bytes":"9GB","devise":"x"}', 'devise'],
    ['a name that is no text', '{"bytes":"9GB","name":7}', 'name'],
  ])('refuses %s with 400 and says how it is meant', async (_what, body, told) => {
    await start();
    const answer = await request(server.port, 'POST', '/api/reservations', JSON_BODY, body);
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({
      error: { code: 'bad_input', message: expect.stringContaining(told) },
    });
    expect(runtime.reserveRequests).toEqual([]);
  });

  it('needs the token, as listing and ending do', async () => {
    await start();
    for (const [method, path] of [
      ['POST', '/api/reservations'],
      ['GET', '/api/reservations'],
      ['DELETE', '/api/reservations/job-1'],
    ] as const)
      expect((await request(server.port, method, path)).status).toBe(401);
  });
});

describe('DELETE /api/reservations/{id}', () => {
  it('ends what another connection holds; that one is told and closed', async () => {
    await start();
    const held = await hold({ bytes: '9GB' }).answer;
    const ended = await request(server.port, 'DELETE', '/api/reservations/job-1', BEARER);
    expect(ended.status).toBe(200);
    expect(runtime.reservations()).toEqual([]);
    await held.closed;
    expect(held.lines().map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ id: 'job-1' }),
      { over: 'Somebody else ended it.' },
    ]);
    const again = await request(server.port, 'DELETE', '/api/reservations/job-1', BEARER);
    expect(again.status).toBe(404);
    expect(again.json).toMatchObject({ error: { code: 'not_found' } });
  });
});
