import { procfs } from '../../electron/core/process/procfs.ts';
import { childrenOf } from './figures.ts';
import { LARGE_SHAPE, MIDDLE_SHAPE, TINY_SHAPE } from './gguf.ts';
import { openStream } from './http-request.ts';
import { startRouter, type TestRouter, until } from './router.ts';
import { type ServedLandlord, serveLandlord } from './served-landlord.ts';
import { tap } from './tap.ts';

/** How fast the runtime acts, as a process of its own over a real router and a simulated card. */
const GB = 1_000_000_000;
export const CARD_BYTES = 34_200_000_000;

export async function load(router: TestRouter, model: string): Promise<void> {
  const answer = await fetch(`${router.url}/models/load`, {
    method: 'POST',
    body: JSON.stringify({ model }),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${model} was not loaded: ${text}`);
}

/**
 * Loads two models by turns; each time, how long after the router's `loading` event the other is told to
 * go, in ms, as a tap on the wire saw both.
 */
export async function eventToUnload(
  rounds: number,
  footprintBytes: number,
  config: string,
): Promise<readonly number[]> {
  await using router = await startRouter({
    // Its counters tell idle at once.
    models: {
      one: { shape: TINY_SHAPE, preset: { metrics: true } },
      two: { shape: TINY_SHAPE, preset: { metrics: true } },
    },
  });
  await using wire = await tap(router.port);
  const footprint = { bytes: footprintBytes, rampMs: 20 };
  await using landlord = await serveLandlord({
    routerUrl: wire.url,
    routerPid: () => router.pid(),
    totalBytes: CARD_BYTES,
    footprints: { one: footprint, two: footprint },
    config,
    cardTickMs: 20,
  });
  const settled = (name: string): Promise<void> =>
    landlord.model(`router/${name}`, (model) => model.status === 'loaded' && model.busy === false, 'idle');
  await load(router, 'one');
  await settled('one');
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const [newcomer, loser] = round % 2 === 0 ? ['two', 'one'] : ['one', 'two'];
    const from = landlord.events.length;
    wire.clear();
    await load(router, newcomer);
    await landlord.event('evicted', from, `router/${loser}`, 60_000);
    const loadingAtMs = wire.firstAtMs('from the server', `"model":"${newcomer}"`, '"loading"');
    const unloadAtMs = wire.firstAtMs('to the server', 'POST /models/unload');
    if (loadingAtMs === null || unloadAtMs === null) throw new Error('the wire did not show both');
    times.push(unloadAtMs - loadingAtMs);
    await settled(newcomer);
  }
  return times;
}

/** Where the newcomer needs the bytes, and where one big model may stay, which is first asked whether it is idle. */
export const BYTES_NEEDED = [18 * GB, ''] as const;
export const ONE_BIG = [4 * GB, 'maxBig: 1'] as const;

/** What an observer of the router's own events sees: when a model began to load. */
async function watchLoading(router: TestRouter) {
  const stream = await openStream(router.port, '/models/sse', {});
  let seen = 0;
  const loading: { readonly model: string; readonly atMs: number }[] = [];
  void stream.until(() => {
    for (const { data } of stream.frames.slice(seen)) {
      const message: { model?: string; data?: { status?: string } } = JSON.parse(data);
      if (message.data?.status === 'loading')
        loading.push({ model: message.model ?? '', atMs: performance.now() });
    }
    seen = stream.frames.length;
    return false;
  });
  return {
    since: (model: string, fromMs: number): number | null =>
      loading.find((one) => one.model === model && one.atMs >= fromMs)?.atMs ?? null,
    [Symbol.dispose]: () => stream.close(),
  };
}

/** Puts the vision model deep into a long prompt, where no unload is obeyed, and tells its pid. */
async function occupy(
  router: TestRouter,
): Promise<{ readonly pid: number; readonly done: Promise<unknown> }> {
  await load(router, 'vision-8b');
  await router.waitFor('vision-8b', 'loaded');
  const pid = childrenOf(router.pid()).find((one) => procfs().command(one)?.includes('vision-8b'));
  if (pid === undefined) throw new Error('vision-8b has no process');
  const before = procfs().stat(pid)?.cpuTicks ?? 0;
  const { done } = router.chat('vision-8b', { promptChars: 28_000, tokens: 1 });
  await until(() => (procfs().stat(pid)?.cpuTicks ?? 0) > before + 20, 60_000, 'vision-8b to be at work');
  return { pid, done };
}

function isGone(pid: number): boolean {
  const stat = procfs().stat(pid);
  return stat === null || stat.state === 'Z';
}

async function killRound(
  router: TestRouter,
  landlord: ServedLandlord,
  nowLoading: (fromMs: number) => number | null,
) {
  const { pid, done } = await occupy(router);
  await landlord.model('router/vision-8b', (model) => model.busy === true && model.pid === pid, 'busy');
  const from = landlord.events.length;
  const fromMs = performance.now();
  const big = router.chat('qwen-27b').done;
  await until(() => isGone(pid), 60_000, 'the loser to be gone');
  await until(() => (landlord.card.reading().models['vision-8b'] ?? 0) === 0, 30_000, 'the card to show it');
  const freeAtMs = performance.now();
  const loadingAtMs = nowLoading(fromMs);
  if (loadingAtMs === null) throw new Error('the router told of no load');
  const told = await landlord.event('killed', from, 'router/vision-8b');
  const status = await big;
  if (status !== 200) throw new Error(`the newcomer was answered with ${status}`);
  await done;
  return { toFreeMs: freeAtMs - loadingAtMs, toToldMs: told.seenAtMs - loadingAtMs };
}

export interface RaceTimes {
  /** From the router's `loading` event until the loser's memory is free. */
  readonly toFreeMs: readonly number[];
  /** Until our `killed` event, memory settled. */
  readonly toToldMs: readonly number[];
  /** From an unload that the router is asked for, without us, until the loser is gone. */
  readonly aloneMs: number;
}

/** A model deep in a long prompt while another loads that needs its bytes; the router's stop timeout is 10 s. */
export async function raceToFree(rounds: number): Promise<RaceTimes> {
  await using router = await startRouter({
    models: {
      'vision-8b': { shape: LARGE_SHAPE, contextTokens: 32_768, preset: { 'stop-timeout': 10 } },
      'qwen-27b': { shape: MIDDLE_SHAPE },
    },
  });
  using events = await watchLoading(router);
  await using landlord = await serveLandlord({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: CARD_BYTES,
    footprints: {
      'vision-8b': { bytes: 20 * GB, rampMs: 100 },
      'qwen-27b': { bytes: 18 * GB, rampMs: 0, bufferAtMs: 2_200 },
    },
    slowDiskMs: { 'qwen-27b': 2_000 },
    cardTickMs: 10,
  });
  const times: Awaited<ReturnType<typeof killRound>>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    times.push(await killRound(router, landlord, (fromMs) => events.since('qwen-27b', fromMs)));
    await fetch(`${router.url}/models/unload`, { method: 'POST', body: '{"model":"qwen-27b"}' });
    await landlord.model('router/qwen-27b', (model) => model.status === 'unloaded', 'unloaded');
  }
  await landlord.end();

  const { pid, done } = await occupy(router);
  const askedAtMs = performance.now();
  await fetch(`${router.url}/models/unload`, { method: 'POST', body: '{"model":"vision-8b"}' });
  await until(() => isGone(pid), 60_000, 'the loser to leave by itself');
  const aloneMs = performance.now() - askedAtMs;
  await done;
  return {
    toFreeMs: times.map((one) => one.toFreeMs),
    toToldMs: times.map((one) => one.toToldMs),
    aloneMs,
  };
}

/**
 * A program takes so much that less than half the floor is left, which needs no second look; how long
 * until an idle model's memory is free again, in ms.
 */
export async function floorToFree(rounds: number): Promise<readonly number[]> {
  await using router = await startRouter({
    models: { 'mid-14b': { shape: TINY_SHAPE, preset: { metrics: true } } },
  });
  await using landlord = await serveLandlord({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: CARD_BYTES,
    footprints: { 'mid-14b': { bytes: 18 * GB, rampMs: 20 } },
    config: 'idle: 1s\nfloor: 4GB',
    cardTickMs: 10,
  });
  const { card } = landlord;
  const held = (): number => card.reading().models['mid-14b'] ?? 0;
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await landlord.model('router/mid-14b', (model) => model.status === 'unloaded', 'unloaded');
    await load(router, 'mid-14b');
    await until(() => held() >= 18 * GB, 60_000, 'the card to show mid-14b');
    await landlord.model('router/mid-14b', (model) => model.busy === false, 'not busy');
    // Idle by the config, so that what is measured is not the wait for that.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const from = landlord.events.length;
    const brokenAtMs = performance.now();
    card.set({ name: 'game', bytes: 15 * GB, type: 'G' });
    await until(() => held() === 0, 60_000, 'the card to show that mid-14b has left');
    times.push(performance.now() - brokenAtMs);
    await landlord.event('evicted', from, 'router/mid-14b');
    card.set({ name: 'game', bytes: 0, type: 'G' });
  }
  return times;
}
