import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LARGE_SHAPE, MIDDLE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { startRouter, type TestRouter } from '../support/router.ts';

const GB = 1_000_000_000;
/** The seed's card: 34.2 GB, of which the desktop draws 1.7. */
const CARD = 34_200_000_000;
const FOOTPRINTS = {
  'pipeline-9b': { bytes: 10.6 * GB, rampMs: 0 },
  // As the seed's: asks for its buffer at once, some seconds after the request.
  'qwen-27b': { bytes: 18 * GB, rampMs: 0, bufferAtMs: 3_300 },
  'other-27b': { bytes: 18 * GB, rampMs: 0 },
  'mid-14b': { bytes: 11 * GB, rampMs: 0 },
  'vision-8b': { bytes: 6.2 * GB, rampMs: 0 },
  'bge-m3-batch': { bytes: 1.2 * GB, rampMs: 0 },
};

let router: TestRouter;

beforeEach(async () => {
  router = await startRouter({
    models: {
      'pipeline-9b': { shape: TINY_SHAPE },
      'qwen-27b': { shape: LARGE_SHAPE },
      'other-27b': { shape: MIDDLE_SHAPE },
      // Long prompts keep it busy where no unload is obeyed; the router alone takes its stop-timeout.
      'vision-8b': { shape: LARGE_SHAPE, contextTokens: 32_768, preset: { 'stop-timeout': 10 } },
      'mid-14b': { shape: MIDDLE_SHAPE },
      'bge-m3-batch': { shape: TINY_SHAPE },
    },
  });
});

afterEach(async () => {
  await router[Symbol.asyncDispose]();
});

async function bench(config: string): Promise<LandlordBench> {
  const started = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: CARD,
    footprints: FOOTPRINTS,
    desktop: [{ name: 'kwin_wayland', bytes: 1.7 * GB, type: 'G' }],
    slowDiskMs: { 'qwen-27b': 3_000 },
    config: `small: [pipeline-9b, bge-m3-batch]\n${config}`,
  });
  await started.seen();
  return started;
}

describe('one big model (maxBig: 1)', () => {
  it('unloads the idle one as another begins to load, and tells why', async () => {
    await using landlord = await bench('maxBig: 1\nidle: 4s');
    expect(await router.chat('qwen-27b').done).toBe(200);
    await landlord.is('router/qwen-27b', 'loaded');
    const chat = router.chat('other-27b');
    const event = await landlord.event('evicted', { model: 'router/qwen-27b' });
    expect(event.reason).toContain('other-27b');
    expect(event.numbers.freedBytes).not.toBeUndefined();
    expect(await chat.done).toBe(200);
    await landlord.is('router/qwen-27b', 'unloaded');
    await landlord.is('router/other-27b', 'loaded');
  });
});

describe('the floor', () => {
  it('evicts the idle big model and not the busy one, and small residents stay', async () => {
    await using landlord = await bench('idle: 1s\nfloor: { keep: 4GB, hard: 1GB }');
    const { card } = landlord;
    for (const model of ['router/pipeline-9b', 'router/mid-14b', 'router/vision-8b']) {
      await landlord.must({ type: 'load', model, force: false });
    }
    const page = router.chat('vision-8b', { promptChars: 6_000, tokens: 300 });
    await expect.poll(() => landlord.model('router/vision-8b').busy, { timeout: 15_000 }).toBe(true);
    expect(landlord.events.filter((one) => one.kind === 'evicted')).toEqual([]);
    await expect.poll(() => landlord.runtime.state().devices[0]?.health, { timeout: 20_000 }).toBe('ok');
    // 29.5 of 34.2 GB: a browser that takes 1.5 more breaks the floor.
    card.set({ name: 'firefox', bytes: 1.5 * GB, type: 'G' });
    const event = await landlord.event('evicted', { limitMs: 40_000 });
    expect(event.model).toBe('router/mid-14b');
    expect(event.reason).toMatch(/4\.0 GB/);
    expect(event.numbers.freedBytes).toBeGreaterThan(10.9 * GB);
    await landlord.event('floor_restored', { limitMs: 20_000 });
    expect(landlord.events.find((one) => one.kind === 'floor_threatened')?.reason).toContain('firefox');
    await landlord.is('router/vision-8b', 'loaded');
    await landlord.is('router/pipeline-9b', 'loaded');
    page.cancel();
  });

  it('does nothing to a backend that is only observed, and says what it would have done', async () => {
    await using landlord = await bench('idle: 1s\nguards: observe\nfloor: 30GB');
    expect(await router.chat('qwen-27b').done).toBe(200);
    const event = await landlord.event('would_evict', { model: 'router/qwen-27b', limitMs: 40_000 });
    expect(event.reason).toMatch(/^Only watching/);
    expect(await router.statusOf('qwen-27b')).toBe('loaded');
    expect(landlord.events.filter((one) => one.kind === 'evicted' || one.kind === 'killed')).toEqual([]);
    const on = await landlord.runtime.command({ type: 'guards', mode: 'on', forMs: null, backend: 'router' });
    expect(on.ok).toBe(true);
    await landlord.event('evicted', { model: 'router/qwen-27b', limitMs: 40_000 });
  });
});

describe('the loading race', () => {
  it('frees a model deep in a long prompt by SIGKILL a second after the unload, where the router alone takes its stop-timeout', async () => {
    await using landlord = await bench('idle: 180s');
    const { card } = landlord;
    await landlord.must({ type: 'load', model: 'router/pipeline-9b', force: true });
    const page = router.chat('vision-8b', { promptChars: 28_000, tokens: 1 });
    await landlord.is('router/vision-8b', 'loaded');
    await expect.poll(() => landlord.model('router/vision-8b').busy, { timeout: 15_000 }).toBe(true);
    const victim = landlord.model('router/vision-8b').pid;
    expect(victim).not.toBeNull();

    const from = landlord.events.length;
    const big = router.chat('qwen-27b');
    await landlord.is('router/qwen-27b', 'loading', 10_000).catch(() => undefined);
    const killed = await landlord.event('killed', { from, model: 'router/vision-8b', limitMs: 20_000 });
    expect(killed.reason).toContain('qwen-27b');
    expect(killed.numbers.tookMs).toBeGreaterThanOrEqual(900);
    // The router on its own would have taken 10 s.
    expect(killed.numbers.tookMs).toBeLessThan(5_000);
    expect(await page.done).not.toBe(200);
    expect(await big.done).toBe(200);
    expect(card.reading().gttUsedBytes).toBe(0);
    await landlord.is('router/pipeline-9b', 'loaded');
  });
});

describe('the router', () => {
  it('may die and come back: told both ways, and the models of before are not believed', async () => {
    await using landlord = await bench('idle: 180s');
    expect(await router.chat('pipeline-9b').done).toBe(200);
    await landlord.is('router/pipeline-9b', 'loaded');
    await router.kill('SIGKILL');
    await landlord.event('backend_down', { limitMs: 20_000 });
    expect(landlord.runtime.state().devices[0]?.bookedBytes).toBe(0);
    const from = landlord.events.length;
    await router.restart();
    await landlord.event('backend_up', { from, limitMs: 20_000 });
    await landlord.is('router/pipeline-9b', 'unloaded');
  });
});
