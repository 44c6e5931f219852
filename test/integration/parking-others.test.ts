import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { procfs } from '../../electron/core/process/procfs.ts';
import { gguf, MIDDLE_SHAPE } from '../support/gguf.ts';
import { request } from '../support/http-request.ts';
import { startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort, llamaServer } from '../support/llama-server.ts';
import { until } from '../support/router.ts';
import { startSwap } from '../support/swap.ts';

/** Conversations of llama-servers that no router runs: their servers' unloads cost none either. */
const GB = 1_000_000_000;
const TEXT = 'jack went over the hill and came back '.repeat(12);

async function say(url: string, model: string, text: string): Promise<{ cache_n: number; prompt_n: number }> {
  const body = JSON.stringify({
    model,
    max_tokens: 2,
    ignore_eos: true,
    temperature: 0,
    messages: [{ role: 'user', content: text }],
  });
  const headers = { 'content-type': 'application/json' };
  const answer = await request(Number(new URL(url).port), 'POST', '/v1/chat/completions', headers, body);
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
  const told: { timings: { cache_n: number; prompt_n: number } } = JSON.parse(answer.text);
  return told.timings;
}

it('under llama-swap: parked at its own port before the unload, back before the next turn', async () => {
  const root = mkdtempSync(join(tmpdir(), 'landlord-parking-swap-'));
  const slots = join(root, 'slots');
  mkdirSync(slots, { mode: 0o700 });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(root, { recursive: true, force: true }));
  const model = ['--model', await gguf(MIDDLE_SHAPE), '--ctx-size', '1024', '--slot-save-path', slots];
  const swap = stack.use(await startSwap('talk', model));
  const landlord = stack.use(
    await startLandlordBench({
      routerUrl: '',
      routerPid: () => null,
      totalBytes: 24 * GB,
      footprints: { talk: { bytes: GB, rampMs: 0 } },
      backend: `  - { name: swap, kind: llama-swap, url: "${swap.url}" }`,
    }),
  );
  await landlord.seen();
  const before = await say(landlord.runtime.url, 'talk', TEXT);
  const from = landlord.events.length;
  await until(
    async () => (await landlord.runtime.command({ type: 'unload', model: 'swap/talk', force: false })).ok,
    30_000,
    'it to be idle and unloaded',
  );
  const parked = await landlord.event('parked', { from });
  expect(parked.numbers.tokens).toBeGreaterThanOrEqual(before.prompt_n);
  await landlord.is('swap/talk', 'unloaded');
  expect(landlord.model('swap/talk').parked?.conversations).toBe(1);
  const after = await say(landlord.runtime.url, 'talk', `${TEXT} and then`);
  expect(after.cache_n).toBeGreaterThanOrEqual(before.prompt_n - 1);
  expect(after.prompt_n).toBeLessThan(16);
  expect(readdirSync(slots)).toEqual([]);
  // Nothing but the load goes through llama-swap to the model: that would start its timers anew.
  expect(swap.asked.filter((one) => one.includes('/upstream/'))).toEqual(
    expect.arrayContaining(['GET /upstream/talk/health']),
  );
  expect(swap.asked.some((one) => one.includes('slots'))).toBe(false);
});

it('a plain llama-server of ours, started with its use, gives its memory back by being ended, and forgets nothing', async () => {
  await using stack = new AsyncDisposableStack();
  const binary = await llamaServer();
  const port = await freePort();
  const words = Object.entries(binary.env).map(([name, value]) => `${name}=${value}`);
  const command = [
    ...['/usr/bin/env', ...words, binary.command, '--model', await gguf(MIDDLE_SHAPE), '--alias', 'talk'],
    ...['--ctx-size', '1024', '--host', '127.0.0.1', '--port', String(port), '--no-ui', '--threads', '1'],
  ];
  const landlord = stack.use(
    await startLandlordBench({
      routerUrl: '',
      routerPid: () => null,
      totalBytes: 24 * GB,
      footprints: { talk: { bytes: GB, rampMs: 0 } },
      backend: `  - { name: mine, kind: llama.cpp, url: "http://127.0.0.1:${port}", start: use, command: ${JSON.stringify(command)} }`,
    }),
  );
  const own = () => landlord.runtime.state().backends[0]?.own;
  await until(() => own()?.status === 'idle', 15_000, 'it to wait for its first use');
  const before = await say(landlord.runtime.url, 'talk', TEXT);
  const pid = own()?.pid ?? 0;
  await until(() => landlord.model('mine/talk').pid === pid, 15_000, 'its process');
  const from = landlord.events.length;
  await until(
    async () => (await landlord.runtime.command({ type: 'unload', model: 'mine/talk', force: false })).ok,
    30_000,
    'it to be idle and unloaded',
  );
  await landlord.is('mine/talk', 'unloaded');
  expect(own()).toMatchObject({ status: 'idle', restarts: 0 });
  expect(procfs().stat(pid)).toBeNull();
  expect(landlord.runtime.state().backends[0]).toMatchObject({ status: 'up', error: null });
  const parked = await landlord.event('parked', { from });
  expect(parked.numbers.tokens).toBeGreaterThanOrEqual(before.prompt_n);
  expect(landlord.model('mine/talk').parked?.conversations).toBe(1);

  const after = await say(landlord.runtime.url, 'talk', `${TEXT} and then`);
  expect(after.cache_n).toBeGreaterThanOrEqual(before.prompt_n - 1);
  expect(after.prompt_n).toBeLessThan(16);
  expect(own()?.pid).not.toBe(pid);
  // It ends with VRAM Landlord, and what it has read does not.
  await until(() => landlord.model('mine/talk').pid === own()?.pid, 15_000, 'its process');
  const second = landlord.events.length;
  await landlord.restart();
  expect(landlord.events.slice(second).map((one) => one.kind)).toContain('parked');
  await until(() => own()?.status === 'idle', 15_000, 'it to wait for its first use');
  const later = await say(landlord.runtime.url, 'talk', `${TEXT} and then some`);
  expect(later.cache_n).toBeGreaterThanOrEqual(before.prompt_n - 1);
  // One that rests is there for a request that names no model, too.
  await until(
    async () => (await landlord.runtime.command({ type: 'unload', model: 'mine/talk', force: false })).ok,
    30_000,
    'it to be idle and unloaded',
  );
  await landlord.is('mine/talk', 'unloaded');
  expect((await say(landlord.runtime.url, '', TEXT)).prompt_n).toBeGreaterThan(0);
  const kinds = landlord.events.slice(from).map((one) => one.kind);
  expect(kinds).toContain('unparked');
  expect(kinds.filter((kind) => kind === 'backend_down' || kind === 'model_crashed')).toEqual([]);
});
