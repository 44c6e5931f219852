import { describe, expect, it } from 'vitest';
import { procfs } from '../../electron/core/process/procfs.ts';
import { formatBytes } from '../../shared/format.ts';
import { childrenOf, costOf, figure, milliseconds, type ProcessCost, spread } from '../support/figures.ts';
import { LARGE_SHAPE, MIDDLE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { openStream } from '../support/http-request.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';
import { type ServedLandlord, serveLandlord } from '../support/served-landlord.ts';
import { tap } from '../support/tap.ts';

/**
 * What the runtime costs and how fast it acts, as a process of its own over a real router. The figures
 * are printed and not judged: a busy machine may not fail a test. What is judged is that each could be
 * taken, and that what it measures took place.
 */
const GB = 1_000_000_000;
const CARD = 34_200_000_000;
const ROUNDS = 20;
const KILL_ROUNDS = 5;
const IDLE_MS = 60_000;

/** Without the one that asks llama.cpp about a new file: it comes once and goes. */
function lastingChildrenOf(pid: number): readonly number[] {
  return childrenOf(pid).filter(
    (child) =>
      !procfs()
        .command(child)
        ?.some((word) => word.endsWith('reference-child.ts')),
  );
}

async function load(router: TestRouter, model: string): Promise<void> {
  const answer = await fetch(`${router.url}/models/load`, {
    method: 'POST',
    body: JSON.stringify({ model }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
}

/** Loads two models by turns and takes, each time, how long after `loading` the other is told to go. */
async function eventToUnload(footprintBytes: number, config: string): Promise<readonly number[]> {
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
    totalBytes: CARD,
    footprints: { one: footprint, two: footprint },
    config,
    cardTickMs: 20,
  });
  const settled = (name: string): Promise<void> =>
    landlord.model(`router/${name}`, (model) => model.status === 'loaded' && model.busy === false, 'idle');
  await load(router, 'one');
  await settled('one');
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const [newcomer, loser] = round % 2 === 0 ? ['two', 'one'] : ['one', 'two'];
    const from = landlord.events.length;
    wire.clear();
    await load(router, newcomer);
    await landlord.event('evicted', from, `router/${loser}`, 10_000);
    const loadingAtMs = wire.firstAtMs('from the server', `"model":"${newcomer}"`, '"loading"');
    const unloadAtMs = wire.firstAtMs('to the server', 'POST /models/unload');
    if (loadingAtMs === null || unloadAtMs === null) throw new Error('the wire did not show both');
    times.push(unloadAtMs - loadingAtMs);
    await settled(newcomer);
  }
  return times;
}

describe('from the router’s `loading` event to our unload request', () => {
  it('where the newcomer needs the bytes', async () => {
    const times = await eventToUnload(18 * GB, '');
    expect(times).toHaveLength(ROUNDS);
    figure('loading event → unload request, bytes needed', spread(times));
  });

  it('where one big model may stay, which is first asked whether it is idle', async () => {
    const times = await eventToUnload(4 * GB, 'maxBig: 1');
    expect(times).toHaveLength(ROUNDS);
    figure('loading event → unload request, one big model', spread(times));
  });
});

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
  await until(() => (procfs().stat(pid)?.cpuTicks ?? 0) > before + 20, 10_000, 'vision-8b to be at work');
  return { pid, done };
}

function isGone(pid: number): boolean {
  const stat = procfs().stat(pid);
  return stat === null || stat.state === 'Z';
}

const KILL_MODELS = {
  'vision-8b': { shape: LARGE_SHAPE, contextTokens: 32_768, preset: { 'stop-timeout': 10 } },
  'qwen-27b': { shape: MIDDLE_SHAPE },
};

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
  await until(() => isGone(pid), 9_000, 'the loser to be gone');
  await until(() => (landlord.card.reading().models['vision-8b'] ?? 0) === 0, 5_000, 'the card to show it');
  const freeAtMs = performance.now();
  const loadingAtMs = nowLoading(fromMs);
  if (loadingAtMs === null) throw new Error('the router told of no load');
  const told = await landlord.event('killed', from, 'router/vision-8b');
  expect(await big).toBe(200);
  await done;
  return { toFreeMs: freeAtMs - loadingAtMs, toToldMs: told.seenAtMs - loadingAtMs };
}

describe('from the router’s `loading` event to memory free, the loser deep in a long prompt', () => {
  it('by SIGKILL, and by the router alone', async () => {
    await using router = await startRouter({ models: KILL_MODELS });
    using events = await watchLoading(router);
    await using landlord = await serveLandlord({
      routerUrl: router.url,
      routerPid: () => router.pid(),
      totalBytes: CARD,
      footprints: {
        'vision-8b': { bytes: 20 * GB, rampMs: 100 },
        'qwen-27b': { bytes: 18 * GB, rampMs: 0, bufferAtMs: 2_200 },
      },
      slowDiskMs: { 'qwen-27b': 2_000 },
      cardTickMs: 10,
    });
    const rounds: Awaited<ReturnType<typeof killRound>>[] = [];
    for (let round = 0; round < KILL_ROUNDS; round += 1) {
      rounds.push(await killRound(router, landlord, (fromMs) => events.since('qwen-27b', fromMs)));
      await fetch(`${router.url}/models/unload`, { method: 'POST', body: '{"model":"qwen-27b"}' });
      await landlord.model('router/qwen-27b', (model) => model.status === 'unloaded', 'unloaded');
    }
    expect(rounds).toHaveLength(KILL_ROUNDS);
    figure('loading event → memory free, by SIGKILL', spread(rounds.map((round) => round.toFreeMs)));
    figure(
      'loading event → our `killed` event, memory settled',
      spread(rounds.map((round) => round.toToldMs)),
    );
    await landlord.end();

    const { pid, done } = await occupy(router);
    const askedAtMs = performance.now();
    await fetch(`${router.url}/models/unload`, { method: 'POST', body: '{"model":"vision-8b"}' });
    await until(() => isGone(pid), 60_000, 'the loser to leave by itself');
    figure('the router alone, stop-timeout 10 s', milliseconds(performance.now() - askedAtMs));
    await done;
  });
});

function share(before: ProcessCost, after: ProcessCost, elapsedMs: number): string {
  return `${((100 * (after.cpuMs - before.cpuMs)) / elapsedMs).toFixed(2)} % of a core`;
}

function memory(costs: readonly ProcessCost[]): string {
  const sum = (read: (cost: ProcessCost) => number): string =>
    formatBytes(costs.reduce((bytes, cost) => bytes + read(cost), 0));
  return `RSS ${sum((cost) => cost.residentBytes)}, PSS ${sum((cost) => cost.proportionalBytes)}`;
}

describe('the idle runtime', () => {
  it('over a router with three models, one asleep, and a reading every 500 ms', async () => {
    await using router = await startRouter({
      models: {
        'pipeline-9b': { shape: TINY_SHAPE },
        'bge-m3': { shape: TINY_SHAPE },
        'qwen-27b': { shape: MIDDLE_SHAPE, preset: { 'sleep-idle-seconds': 1 } },
      },
    });
    for (const model of ['pipeline-9b', 'bge-m3', 'qwen-27b']) await load(router, model);
    const options = {
      routerUrl: router.url,
      routerPid: () => router.pid(),
      totalBytes: CARD,
      footprints: {
        'pipeline-9b': { bytes: 10.6 * GB, rampMs: 0 },
        'bge-m3': { bytes: 1.2 * GB, rampMs: 0 },
        'qwen-27b': { bytes: 12 * GB, rampMs: 0 },
      },
      config: 'small: [pipeline-9b, bge-m3]\nidle: 10m',
      follow: false,
    };
    // The first start after a change of the sources compiles them; from the second on that is kept.
    const first = await serveLandlord(options);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await first[Symbol.asyncDispose]();

    await using landlord = await serveLandlord(options);
    await landlord.model('router/qwen-27b', (model) => model.status === 'sleeping', 'asleep');
    await landlord.model('router/bge-m3', (model) => model.busy === false && model.pid !== null, 'idle');
    const children = lastingChildrenOf(landlord.pid);
    const pids = [landlord.pid, ...children];
    const before = pids.map(costOf);
    const beganAtMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const elapsedMs = performance.now() - beganAtMs;
    const after = pids.map(costOf);
    const [self] = after;
    if (self === undefined || before[0] === undefined) throw new Error('nothing was read');
    const { devices } = await landlord.state();
    expect(Date.now() - Date.parse(devices[0]?.sampledAt ?? '')).toBeLessThan(3_000);
    expect(lastingChildrenOf(landlord.pid)).toEqual(children);
    const total = (costs: readonly ProcessCost[]): ProcessCost => ({
      pid: 0,
      cpuMs: costs.reduce((sum, cost) => sum + cost.cpuMs, 0),
      residentBytes: 0,
      proportionalBytes: 0,
    });
    figure('idle 60 s, runtime process', `${share(before[0], self, elapsedMs)}, ${memory([self])}`);
    const others = [total(before.slice(1)), total(after.slice(1))] as const;
    figure(
      `idle 60 s, its ${children.length} child${children.length === 1 ? '' : 'ren'}`,
      `${share(...others, elapsedMs)}, ${memory(after.slice(1))}`,
    );
    figure('idle 60 s, all of it', `${share(total(before), total(after), elapsedMs)}, ${memory(after)}`);
  });
});
