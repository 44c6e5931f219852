import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MIDDLE_SHAPE } from '../support/gguf.ts';
import { request } from '../support/http-request.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';

/** Conversations that outlive an eviction, on a real llama-server: only their new words are read again. */
const GB = 1_000_000_000;
const root = mkdtempSync(join(tmpdir(), 'landlord-parking-'));
const slots = join(root, 'slots');
const open = join(root, 'open');
let router: TestRouter;
let landlord: LandlordBench;

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = join(root, 'gates');
  mkdirSync(slots, { mode: 0o700 });
  mkdirSync(open, { mode: 0o755 });
  const model = (folder: string) => ({
    shape: MIDDLE_SHAPE,
    contextTokens: 1024,
    preset: { 'slot-save-path': folder, metrics: true },
  });
  router = await startRouter({ models: { talk: model(slots), other: model(slots), seen: model(open) } });
  landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: {
      talk: { bytes: 12 * GB, rampMs: 0 },
      other: { bytes: 12 * GB, rampMs: 0 },
      seen: { bytes: 4 * GB, rampMs: 0 },
    },
    backend: `  - { name: router, kind: llama.cpp, url: "${router.url}", lanes: 1 }`,
    config: 'idle: 1s',
  });
  await landlord.seen();
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  await router[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});

interface Answer {
  readonly timings: { readonly cache_n: number; readonly prompt_n: number };
}

/** Directly, or through the gateway. */
async function say(url: string, model: string, text: string): Promise<Answer['timings']> {
  const body = JSON.stringify({
    model,
    max_tokens: 2,
    ignore_eos: true,
    temperature: 0,
    messages: [{ role: 'user', content: text }],
  });
  const headers = { 'content-type': 'application/json', 'x-landlord-session': 'writer' };
  const port = Number(new URL(url).port);
  const answer = await request(port, 'POST', '/v1/chat/completions', headers, body);
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
  const told: Answer = JSON.parse(answer.text);
  return told.timings;
}

const prompt = (word: string): string => `${word} went over the hill and came back `.repeat(12);
const files = (folder: string): string[] => readdirSync(folder).filter((name) => name.endsWith('.slot'));
const gateway = (): string => landlord.runtime.url;
const pidOf = (model: string): number | null => landlord.model(`router/${model}`).pid;
const idle = (model: string): Promise<void> =>
  until(() => landlord.model(`router/${model}`).busy === false, 20_000, `${model} to be idle`);

/** A turn that went past the gateway counts as use until it has been looked at. */
async function unload(model: string): Promise<void> {
  const id = `router/${model}`;
  await until(
    async () => {
      if (landlord.model(id).status === 'unloaded') return true;
      return (await landlord.runtime.command({ type: 'unload', model: id, force: false })).ok;
    },
    20_000,
    `${model} to be unloaded`,
  );
}

describe('a conversation whose model is evicted', () => {
  it('is parked, and comes back before its next turn, which reads its new words only', async () => {
    const text = prompt('jack');
    const before = await say(gateway(), 'talk', text);
    await idle('talk');
    const from = landlord.events.length;
    // No room for both: this evicts the first.
    await until(
      async () => (await say(gateway(), 'other', 'hello').catch(() => null)) !== null,
      30_000,
      'room for the other',
    );
    const parked = await landlord.event('parked', { from, model: 'router/talk' });
    expect(parked.numbers.tokens).toBeGreaterThanOrEqual(before.prompt_n);
    expect(landlord.events.indexOf(parked)).toBeLessThan(
      landlord.events.findIndex((one) => one.kind === 'evicted' && one.model === 'router/talk'),
    );
    const away = landlord.model('router/talk');
    expect(away).toMatchObject({ status: 'unloaded', parked: { conversations: 1 } });
    expect(away.parked?.tokens).toBe(parked.numbers.tokens);
    // Nobody else's to read, however the server writes them.
    expect(files(slots)).toHaveLength(1);
    expect(statSync(slots).mode & 0o077).toBe(0);
    await idle('other');

    let after: Answer['timings'] | null = null;
    await until(
      async () => {
        after = await say(gateway(), 'talk', `${text} and then`).catch(() => null);
        return after !== null;
      },
      30_000,
      'room for the first again',
    );
    expect(after).toMatchObject({ cache_n: expect.any(Number) });
    const { cache_n, prompt_n } = after ?? { cache_n: 0, prompt_n: 0 };
    expect(cache_n).toBeGreaterThanOrEqual(before.prompt_n - 1);
    expect(prompt_n).toBeLessThan(16);
    await landlord.event('unparked', { from, model: 'router/talk' });
    expect(landlord.model('router/talk').parked).toBeUndefined();
    const key = readFileSync(join(landlord.folder, 'state', 'token'), 'utf8').trim();
    const token = { authorization: `Bearer ${key}` };
    const port = Number(new URL(gateway()).port);
    await until(
      async () => {
        const history = await request(port, 'GET', '/api/requests', token);
        const rows: { model: string; savedPromptMs?: number }[] = JSON.parse(history.text);
        return rows.some((row) => row.model === 'router/talk' && (row.savedPromptMs ?? 0) > 0);
      },
      10_000,
      'the saved time in the history',
    );
    expect(files(slots)).toEqual([]);
  });

  it('comes back as soon as its model is loaded, for turns that go past the gateway', async () => {
    const text = prompt('jill');
    await unload('other');
    await landlord.must({ type: 'load', model: 'talk', force: false });
    const before = await say(router.url, 'talk', text);
    await idle('talk');
    await unload('talk');
    expect(landlord.model('router/talk').parked?.conversations).toBe(1);
    const from = landlord.events.length;
    await landlord.must({ type: 'load', model: 'talk', force: false });
    await landlord.event('unparked', { from, model: 'router/talk' });
    const after = await say(router.url, 'talk', `${text} again`);
    expect(after.cache_n).toBeGreaterThanOrEqual(before.prompt_n + before.cache_n - 1);
    expect(after.prompt_n).toBeLessThan(16);
  });

  it('waits over a restart of VRAM Landlord; files that nobody remembers are taken away', async () => {
    const text = prompt('joan');
    const before = await say(router.url, 'talk', text);
    await idle('talk');
    await unload('talk');
    await landlord.restart();
    await landlord.seen();
    expect(landlord.model('router/talk').parked?.conversations).toBe(1);
    const from = landlord.events.length;
    await landlord.must({ type: 'load', model: 'talk', force: false });
    await landlord.event('unparked', { from });
    const after = await say(router.url, 'talk', `${text} again`);
    expect(after.cache_n).toBeGreaterThanOrEqual(before.prompt_n + before.cache_n - 1);
    expect(files(slots)).toEqual([]);
  });

  it('that can not be brought back has its instance started anew, and is answered all the same', async () => {
    const text = prompt('june');
    await say(router.url, 'talk', text);
    await idle('talk');
    await unload('talk');
    const [name] = files(slots);
    const file = join(slots, name ?? '');
    writeFileSync(file, Buffer.alloc(statSync(file).size, 'x'));
    const from = landlord.events.length;
    const answer = await say(gateway(), 'talk', `${text} again`);
    const failed = await landlord.event('parking_failed', { from, model: 'router/talk' });
    expect(failed.reason).toMatch(/could not be brought back .* started anew/);
    expect(answer.prompt_n).toBeGreaterThan(100);
    const loads = landlord.events.slice(from).filter((one) => one.kind === 'loaded');
    expect(loads).toHaveLength(2);
    expect(pidOf('talk')).not.toBeNull();
    expect(files(slots)).toEqual([]);
  });

  it('is not parked where others could read it, and that is told once', async () => {
    const from = landlord.events.length;
    for (let round = 0; round < 2; round += 1) {
      await say(gateway(), 'seen', prompt('joe'));
      await idle('seen');
      await unload('seen');
    }
    const told = landlord.events.slice(from).filter((one) => one.kind === 'parking_failed');
    expect(told).toHaveLength(1);
    expect(told[0]?.reason).toMatch(/can be read by others: `chmod 700`/);
    expect(files(open)).toEqual([]);
  });
});
