import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Backend, BackendChange, ObservedModel } from '../../electron/core/backends/backend.ts';
import { type LlamaCppTimings, llamaCppBackend } from '../../electron/core/backends/llama-cpp-router.ts';
import { systemClock } from '../../electron/core/clock.ts';
import { procfs } from '../../electron/core/process/procfs.ts';
import { gguf, LARGE_SHAPE, MIDDLE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { startLlamaServer } from '../support/llama-server.ts';
import { directInspector, startRouter, type TestRouter, until } from '../support/router.ts';

/** The adapter against a real llama-server: what it may not do to it, and what it must see of it. */
interface Watching extends AsyncDisposable {
  readonly backend: Backend;
  readonly changes: BackendChange[];
  model(name: string): ObservedModel;
  is(name: string, status: string, limitMs?: number): Promise<void>;
}

function watch(url: string, timings: Partial<LlamaCppTimings> = {}): Watching {
  const changes: BackendChange[] = [];
  const backend = llamaCppBackend({
    name: 'router',
    url,
    clock: systemClock,
    inspector: directInspector(),
    timings,
  });
  backend.start((change) => changes.push(change));
  const model = (name: string): ObservedModel => {
    const found = backend.snapshot().models.find((one) => one.name === name);
    if (found === undefined) throw new Error(`${name} is not listed`);
    return found;
  };
  return {
    backend,
    changes,
    model,
    is: (name, status, limitMs = 15_000) =>
      until(
        () => backend.snapshot().models.some((one) => one.name === name && one.status === status),
        limitMs,
        `${name} to be seen ${status}`,
      ),
    [Symbol.asyncDispose]: () => backend.stop(),
  };
}

const SIGNAL = new AbortController().signal;
const IDLE_MS = 5_000;

async function embed(url: string, model: string): Promise<number> {
  const answer = await fetch(`${url}/v1/embeddings`, {
    method: 'POST',
    body: JSON.stringify({ model, input: 'hello' }),
  });
  await answer.text();
  return answer.status;
}

describe('a real router', () => {
  let router: TestRouter;
  beforeAll(async () => {
    router = await startRouter({
      modelsMax: 10,
      models: {
        sleepy: { shape: TINY_SHAPE, aliases: ['dozy'], preset: { 'sleep-idle-seconds': 3, metrics: true } },
        plain: { shape: TINY_SHAPE, preset: { 'sleep-idle-seconds': 4 } },
        large: { shape: LARGE_SHAPE, preset: { metrics: true, 'stop-timeout': 2 } },
        counted: { shape: MIDDLE_SHAPE, preset: { metrics: true } },
        quiet: { shape: MIDDLE_SHAPE },
        brief: { shape: TINY_SHAPE },
        'brief-counted': { shape: TINY_SHAPE, preset: { metrics: true } },
        vectors: { shape: TINY_SHAPE, preset: { embeddings: true, pooling: 'mean' } },
        'vectors-counted': {
          shape: TINY_SHAPE,
          preset: { embeddings: true, pooling: 'mean', metrics: true },
        },
        broken: {
          shape: TINY_SHAPE,
          preset: { 'rope-scaling': 'none', 'cache-type-v': 'q4_0', 'flash-attn': 'off' },
        },
      },
    });
  });
  afterAll(() => router[Symbol.asyncDispose]());

  it('is seen up, with the models it has, none of them crashed', async () => {
    await using seen = watch(router.url);
    await seen.is('sleepy', 'unloaded');
    const snapshot = seen.backend.snapshot();
    expect(snapshot).toMatchObject({ status: 'up', error: null });
    expect(snapshot.version).toMatch(/^b\d+/);
    expect(snapshot.models.map((model) => model.status)).toEqual(Array(10).fill('unloaded'));
    expect(seen.model('large')).toMatchObject({ stopTimeoutMs: 2_000, contextTokens: 32_768, busy: false });
  });

  it('rule 12: ten minutes of looks leave a sleeping model asleep and let a loaded one fall asleep in time', async () => {
    let ticks = 0;
    // 600 looks and 20 slow resyncs, as in ten minutes at one a second, at fifty times the pace.
    await using seen = watch(router.url, { tickMs: 20, resyncMs: 600 });
    await seen.is('sleepy', 'unloaded');
    expect(await seen.backend.load('dozy', SIGNAL)).toMatchObject({ ok: true });
    await seen.is('sleepy', 'loaded');
    const loadedAtMs = performance.now();
    await seen.is('sleepy', 'sleeping');
    const sleptAfterMs = performance.now() - loadedAtMs;
    expect(await seen.backend.load('plain', SIGNAL)).toMatchObject({ ok: true });
    await seen.is('plain', 'loaded');
    const changesBefore = seen.changes.filter((change) => change.model === 'sleepy').length;
    const statuses = new Set<string>();
    const endAtMs = performance.now() + 12_000;
    while (performance.now() < endAtMs) {
      statuses.add(await router.statusOf('sleepy'));
      ticks += 1;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(ticks).toBeGreaterThan(50);
    expect([...statuses]).toEqual(['sleeping']);
    expect(seen.changes.filter((change) => change.model === 'sleepy')).toHaveLength(changesBefore);
    // Counters were read all the while it was awake, and its timer of 3 s went on.
    expect(sleptAfterMs).toBeLessThan(8_000);
    expect(seen.model('plain').status).toBe('sleeping');
    expect(seen.model('sleepy').busy).toBe(false);
  });

  it('rule 10: proves the child: its pid, its port and its parent are the real ones', async () => {
    await using seen = watch(router.url);
    await until(
      () => seen.backend.snapshot().models.some((model) => model.process !== null),
      10_000,
      'a proof',
    );
    const { process: proven, port } = seen.model('sleepy');
    const real = procfs()
      .facts(procfs().pids())
      .filter(
        (process) => process.parentPid === router.pid() && process.command?.includes('sleepy') === true,
      );
    expect(real).toHaveLength(1);
    expect(proven).toMatchObject({
      pid: real[0]?.pid,
      startTimeTicks: real[0]?.startTimeTicks,
      parentPid: router.pid(),
      port,
    });
    expect(seen.model('large')).toMatchObject({ process: null, processNote: null });
  });

  it('sees a generating model as busy, and idle after its end, by counters and by CPU time alone', async () => {
    await using seen = watch(router.url, { tickMs: 200 });
    await seen.is('quiet', 'unloaded');
    for (const name of ['counted', 'quiet']) {
      expect(await seen.backend.load(name, SIGNAL)).toMatchObject({ ok: true });
      await seen.is(name, 'loaded');
      await until(() => seen.model(name).busy === false, 15_000, `${name} idle at first`);
      const chat = router.chat(name, { tokens: 900 });
      await until(() => seen.model(name).busy === true, 15_000, `${name} busy`);
      expect(await chat.done).toBe(200);
      const endedAtMs = systemClock.monotonicMs();
      await until(() => seen.model(name).busy === false, 15_000, `${name} idle after`);
      // Idle time counts from the end of the request: never from before it, give or take one look.
      expect(seen.model(name).lastBusyAtMs ?? 0).toBeGreaterThan(endedAtMs - 700);
      expect(await seen.backend.confirmIdle(name, SIGNAL)).toEqual({ busy: false });
    }
  });

  it('models in constant use by requests of a few milliseconds are never idle for long, and are soon after the last', async () => {
    await using seen = watch(router.url);
    const users: Readonly<Record<string, () => Promise<number | null>>> = {
      brief: () => router.chat('brief', { promptChars: 3, tokens: 1 }).done,
      'brief-counted': () => router.chat('brief-counted', { promptChars: 3, tokens: 1 }).done,
      vectors: () => embed(router.url, 'vectors'),
      'vectors-counted': () => embed(router.url, 'vectors-counted'),
    };
    const names = Object.keys(users);
    for (const name of names) {
      await users[name]?.();
      await seen.is(name, 'loaded');
      await until(() => seen.model(name).process !== null, 10_000, `the process of ${name}`);
    }
    const use = async (): Promise<void> => {
      for (const name of names) expect(await users[name]?.(), name).toBe(200);
    };
    // As the guards reckon it: quiet, and since when.
    const idleMs = (name: string): number => {
      const { busy, lastBusyAtMs, sinceMs } = seen.model(name);
      const nowMs = systemClock.monotonicMs();
      return busy === false ? nowMs - Math.max(lastBusyAtMs ?? sinceMs, sinceMs) : 0;
    };
    const longest = new Map(names.map((name) => [name, 0]));
    const endAtMs = performance.now() + 15_000;
    while (performance.now() < endAtMs) {
      await use();
      const nextAtMs = performance.now() + 1_400;
      await until(
        () => {
          for (const name of names) longest.set(name, Math.max(longest.get(name) ?? 0, idleMs(name)));
          return performance.now() >= nextAtMs;
        },
        5_000,
        'the next requests',
      );
    }
    const endedAtMs = systemClock.monotonicMs();
    for (const [name, ms] of longest) expect(ms, name).toBeLessThan(IDLE_MS);
    for (const name of names) {
      expect(seen.model(name).lastBusyAtMs ?? 0, name).toBeGreaterThan(endedAtMs - 4_000);
    }
    await until(
      () => names.every((name) => idleMs(name) >= IDLE_MS),
      IDLE_MS + 3_000,
      'all to be idle for five seconds',
    );
  });

  it('an unload of a model deep in a prompt is stopping, then unloaded, and no crash', async () => {
    await using seen = watch(router.url, { tickMs: 200 });
    await seen.is('large', 'unloaded');
    expect(await seen.backend.load('large', SIGNAL)).toMatchObject({ ok: true });
    await seen.is('large', 'loaded');
    const chat = router.chat('large', { promptChars: 28_000, tokens: 4 });
    await until(() => seen.model('large').busy === true, 10_000, 'busy in the prompt');
    expect(await seen.backend.confirmIdle('large', SIGNAL)).toMatchObject({ busy: true });
    expect(await seen.backend.unload('large', SIGNAL)).toMatchObject({ ok: true });
    expect(seen.model('large').status).toBe('stopping');
    await seen.is('large', 'unloaded');
    expect(seen.model('large')).toMatchObject({ failure: null, process: null, port: null });
    expect(seen.changes.some((change) => change.what === 'crashed')).toBe(false);
    await chat.done;
  });

  it('a killed child is a crash, seen with its exit code, and loads again', async () => {
    await using seen = watch(router.url);
    await seen.is('quiet', 'loaded');
    await until(() => seen.model('quiet').process !== null, 10_000, 'its process');
    process.kill(seen.model('quiet').process?.pid ?? 0, 'SIGKILL');
    await seen.is('quiet', 'failed');
    expect(seen.model('quiet').failure).toMatch(/exit code/);
    expect(seen.changes.at(-1)?.what ?? '').toBe('crashed');
    expect(await seen.backend.load('quiet', SIGNAL)).toMatchObject({ ok: true });
    await seen.is('quiet', 'loaded');
    expect(seen.model('quiet').failure).toBeNull();
  });

  it('a load that fails is a failed load', async () => {
    await using seen = watch(router.url);
    await seen.is('broken', 'unloaded');
    expect(await seen.backend.load('broken', SIGNAL)).toMatchObject({ ok: true });
    await seen.is('broken', 'failed');
    expect(seen.changes.map((change) => change.what)).toContain('load_failed');
    const unknown = await seen.backend.load('nobody', SIGNAL);
    expect(unknown.ok ? null : unknown.error.code).toBe('unknown_model');
  });

  it('a router that dies is down, its models gone without a crash, and is found again when it comes back', async () => {
    await using seen = watch(router.url);
    await seen.is('quiet', 'loaded');
    await router.kill('SIGKILL');
    await until(() => seen.backend.snapshot().status === 'down', 10_000, 'down');
    expect(seen.backend.snapshot().error).toMatch(/start the server/);
    await seen.is('quiet', 'unloaded');
    expect(seen.changes.some((change) => change.what === 'crashed')).toBe(false);
    await router.restart();
    await until(() => seen.backend.snapshot().status === 'up', 10_000, 'up again');
    expect(await seen.backend.load('sleepy', SIGNAL)).toMatchObject({ ok: true });
    await seen.is('sleepy', 'loaded');
    await until(() => seen.model('sleepy').process?.parentPid === router.pid(), 10_000, 'the new parent');
  });
});

describe('a real plain llama-server', () => {
  it('is one model: seen loaded, asleep in time under fast looks, its process proven, never unloaded by us', async () => {
    await using server = await startLlamaServer(
      ['-m', await gguf(TINY_SHAPE), '--alias', 'solo', '--sleep-idle-seconds', '2', '--metrics'],
      {},
    );
    await using seen = watch(server.url, { tickMs: 20, pollMs: 20 });
    await seen.is('solo', 'loaded');
    await until(() => seen.model('solo').process?.pid === server.pid, 10_000, 'its process');
    await seen.is('solo', 'sleeping', 8_000);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(seen.model('solo').status).toBe('sleeping');
    const refused = await seen.backend.unload('solo', SIGNAL);
    expect(refused.ok ? null : refused.error.code).toBe('not_supported');
  });
});
