import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { entry, ROUTER_PROPS } from '../support/fake-llama.ts';
import { request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { until } from '../support/router.ts';
import { listen } from '../support/upstream.ts';

/** A router whose model has put itself to sleep: the next request has it load its weights again, unasked. */
const GB = 1_000_000_000;
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
let status = 'sleeping';
let asked = 0;
let front = 0;
let landlord: LandlordBench;

const backend = http.createServer((request, response) => {
  const json = (value: unknown): void => void response.writeHead(200).end(JSON.stringify(value));
  if (request.url === '/props') return json(ROUTER_PROPS);
  if (request.url === '/models') return json({ data: [entry('nap', status)] });
  const works = request.url === '/v1/chat/completions' || request.url?.startsWith('/slots') === true;
  if (!works) return void response.writeHead(404).end('{}');
  request.resume();
  request.on('end', () => {
    asked += 1;
    // Its weights take a while.
    setTimeout(() => {
      status = 'loaded';
      json({ awake: true });
    }, 1_500);
  });
});

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  const url = `http://127.0.0.1:${await listen(backend)}`;
  front = await freePort();
  landlord = await startLandlordBench({
    backend: `  - { name: router, kind: llama.cpp, url: "${url}", front: ${front} }`,
    routerUrl: url,
    routerPid: () => null,
    totalBytes: 24 * GB,
    footprints: { nap: { bytes: 12 * GB, rampMs: 0 } },
    config: 'agents: { hasty: { onBusy: reject } }',
  });
  await landlord.seen();
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  backend.closeAllConnections();
  await new Promise((resolve) => backend.close(resolve));
  rmSync(gates, { recursive: true, force: true });
});

beforeEach(async () => {
  status = 'sleeping';
  asked = 0;
  await landlord.is('router/nap', 'sleeping');
});

function ask() {
  return request(
    Number(new URL(landlord.runtime.url).port),
    'POST',
    '/v1/chat/completions',
    { 'content-type': 'application/json', 'x-landlord-session': 'hasty' },
    '{"model":"nap"}',
  );
}

function bookedBytes(): number | undefined {
  return landlord.runtime.state().devices[0]?.bookedBytes;
}

describe('a request for a model that sleeps', () => {
  it('is denied where its weights do not fit any more, and wakes nothing', async () => {
    landlord.card.set({ name: 'blender', bytes: 20 * GB, type: 'C' });
    await until(() => (landlord.runtime.state().devices[0]?.freeBytes ?? 0) < 5 * GB, 10_000, 'the program');
    const refused = await ask();
    expect(refused.status, refused.text).toBe(503);
    expect(refused.json).toMatchObject({ error: { code: 'vram_denied' } });
    expect(asked).toBe(0);
    expect(bookedBytes()).toBeLessThan(GB);
    landlord.card.set({ name: 'blender', bytes: 0, type: 'C' });
    await until(() => (landlord.runtime.state().devices[0]?.freeBytes ?? 0) > 20 * GB, 10_000, 'its end');
  });

  it('has its front port refuse a look at its slots too, which would wake it', async () => {
    landlord.card.set({ name: 'blender', bytes: 20 * GB, type: 'C' });
    await until(() => (landlord.runtime.state().devices[0]?.freeBytes ?? 0) < 5 * GB, 10_000, 'the program');
    const refused = await request(front, 'GET', '/slots?model=nap&autoload=false', {}, '');
    expect(refused.status, refused.text).toBe(503);
    expect(refused.json).toMatchObject({ error: { code: 'vram_denied' } });
    expect([asked, status]).toEqual([0, 'sleeping']);
    landlord.card.set({ name: 'blender', bytes: 0, type: 'C' });
    await until(() => (landlord.runtime.state().devices[0]?.freeBytes ?? 0) > 20 * GB, 10_000, 'its end');
    expect((await request(front, 'GET', '/slots?model=nap&autoload=false', {}, '')).status).toBe(200);
    await landlord.is('router/nap', 'loaded');
  });

  it('is told when big models are to sleep', async () => {
    await landlord.must({ type: 'sleep', forMs: 600_000 });
    const refused = await ask();
    expect(refused.json).toMatchObject({ error: { code: 'big_models_asleep' } });
    expect(asked).toBe(0);
    await landlord.must({ type: 'wake' });
  });

  it('wakes it where it fits, with what that takes booked before it is asked', async () => {
    const asking = Promise.all([ask(), ask(), ask()]);
    await until(() => bookedBytes() === 12 * GB, 1_400, 'it to be booked');
    expect(status).toBe('sleeping');
    const answers = await asking;
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200]);
    expect(asked).toBe(3);
    await landlord.is('router/nap', 'loaded');
    expect(bookedBytes()).toBe(12 * GB);
  });
});
