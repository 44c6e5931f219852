import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { gguf, MIDDLE_SHAPE } from '../support/gguf.ts';
import { request } from '../support/http-request.ts';
import { startLandlordBench } from '../support/landlord-runtime.ts';
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
