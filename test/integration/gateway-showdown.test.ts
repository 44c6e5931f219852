import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { acquireTurn } from '../../electron/core/gate/index.ts';
import { TINY_SHAPE } from '../support/gguf.ts';
import { request } from '../support/http-request.ts';
import { startLandlordBench } from '../support/landlord-runtime.ts';
import { startRouter } from '../support/router.ts';
import { listen } from '../support/upstream.ts';

const GB = 1_000_000_000;
/** As long as it needs for every actor to meet every other many times. */
const LASTS_MS = 15_000;

/** Before the router: how many requests generate at once, whoever sent them. */
async function countingProxy(target: string) {
  let now = 0;
  let most = 0;
  const server = http.createServer((asked, response) => {
    const generates = asked.method === 'POST' && asked.url?.includes('chat/completions') === true;
    if (generates) {
      now += 1;
      most = Math.max(most, now);
    }
    const { host: _host, ...headers } = asked.headers;
    const sent = http.request(`${target}${asked.url ?? '/'}`, { method: asked.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('end', () => {
        if (generates) now -= 1;
      });
      answer.pipe(response);
    });
    sent.on('error', () => response.destroy());
    response.on('close', () => sent.destroy());
    asked.pipe(sent);
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    most: () => most,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function cloud() {
  let count = 0;
  const server = http.createServer((asked, response) => {
    asked.resume();
    asked.on('end', () => {
      count += 1;
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/v1`,
    count: () => count,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

it('two sessions, a cron turn and a batch indexer: one at a time in the lane, nobody starves, every deflection with its reason and its return', async () => {
  const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  try {
    await using router = await startRouter({ models: { small: { shape: TINY_SHAPE } }, args: ['--metrics'] });
    await using counted = await countingProxy(router.url);
    await using elsewhere = await cloud();
    await using landlord = await startLandlordBench({
      routerUrl: counted.url,
      routerPid: () => router.pid(),
      totalBytes: 24 * GB,
      footprints: { small: { bytes: 2 * GB, rampMs: 0 } },
      backend: `  - { name: router, kind: llama.cpp, url: "${counted.url}", lanes: 1 }`,
      config: [
        'agents:',
        '  writer: { onBusy: fallback }',
        '  reader: { onBusy: wait }',
        '  indexer: { class: batch }',
        'fallbacks:',
        `  - { name: cloud, url: "${elsewhere.url}" }`,
      ].join('\n'),
    });
    await landlord.seen();
    const port = Number(new URL(landlord.runtime.url).port);
    const ends = performance.now() + LASTS_MS;
    const body = (tokens: number): string =>
      JSON.stringify({
        model: 'small',
        max_tokens: tokens,
        ignore_eos: true,
        messages: [{ role: 'user', content: 'abcdefgh' }],
      });
    const headers = { 'content-type': 'application/json' };
    const routes: Record<string, string[]> = {};
    const session = async (name: string, tokens: number, pauseMs: number): Promise<void> => {
      const mine = routes[name] ?? [];
      routes[name] = mine;
      while (performance.now() < ends) {
        const answer = await request(
          port,
          'POST',
          '/v1/chat/completions',
          { ...headers, 'x-landlord-session': name },
          body(tokens),
        );
        expect(answer.status, `${name}: ${answer.text.slice(0, 200)}`).toBe(200);
        mine.push(String(answer.headers['x-landlord-route']));
        if (answer.headers['x-landlord-route'] === 'fallback')
          expect(answer.headers['x-landlord-reason']).toContain('local_backend_busy');
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    };
    /** Another program: it takes the lane by itself and asks the backend directly. */
    const cron = async (): Promise<void> => {
      const mine: string[] = [];
      routes.cron = mine;
      while (performance.now() < ends) {
        using turn = await acquireTurn(counted.url, { session: 'cron', waitMs: 30_000, reports: false });
        expect(turn.kind).toBe('held');
        const answer = await fetch(`${counted.url}/v1/chat/completions`, {
          method: 'POST',
          headers,
          body: body(64),
        });
        await answer.text();
        mine.push('direct');
        turn[Symbol.dispose]();
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
    };
    await Promise.all([
      session('writer', 48, 350),
      session('reader', 48, 450),
      session('indexer', 96, 0),
      session('indexer', 96, 0),
      cron(),
    ]);
    expect(counted.most()).toBe(1);
    for (const [name, mine] of Object.entries(routes))
      expect(mine.filter((route) => route !== 'fallback').length, name).toBeGreaterThan(5);
    const writer = routes.writer ?? [];
    const deflected = landlord.events.filter((event) => event.kind === 'deflected');
    expect(deflected.length).toBe(elsewhere.count());
    expect(writer.filter((route) => route === 'fallback')).toHaveLength(deflected.length);
    expect(deflected.length).toBeGreaterThan(0);
    for (const event of deflected) expect(event.reason).toMatch(/local_backend_busy.*cloud/);
    // The return: local again after a deflection.
    expect(writer.lastIndexOf('local')).toBeGreaterThan(writer.indexOf('fallback'));
  } finally {
    rmSync(gates, { recursive: true, force: true });
  }
});
