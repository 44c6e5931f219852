import { afterEach, describe, expect, it } from 'vitest';
import type { Backend, BackendChange } from '../../../electron/core/backends/backend.ts';
import { llamaCppBackend } from '../../../electron/core/backends/llama-cpp-router.ts';
import { systemClock } from '../../../electron/core/clock.ts';
import type { ProcessFacts } from '../../../electron/core/process/identity.ts';
import type { ServerInspector } from '../../../electron/core/process/proof.ts';
import {
  entry,
  type FakeAnswer,
  type FakeLlama,
  fakeInspector,
  fakeLlama,
  ROUTER_PROPS,
} from '../../support/fake-llama.ts';
import { until } from '../../support/router.ts';

const FAST = { tickMs: 10, resyncMs: 100_000, pollMs: 15, firstBackoffMs: 5, lastBackoffMs: 20 };
const SIGNAL = new AbortController().signal;
const open: AsyncDisposable[] = [];

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

async function fake(options: Parameters<typeof fakeLlama>[0] = {}): Promise<FakeLlama> {
  const server = await fakeLlama(options);
  open.push(server);
  return server;
}

function watch(server: FakeLlama, inspector: ServerInspector = fakeInspector(), timings = {}) {
  const changes: BackendChange[] = [];
  const backend = llamaCppBackend({
    name: 'router',
    url: server.url,
    clock: systemClock,
    inspector,
    timings: { ...FAST, ...timings },
  });
  backend.start((change) => changes.push(change));
  open.push({ [Symbol.asyncDispose]: () => backend.stop() });
  return { backend, changes };
}

const status = (backend: Backend, model: string) =>
  backend.snapshot().models.find((one) => one.name === model)?.status;

async function isUp(backend: Backend): Promise<void> {
  await until(() => backend.snapshot().status === 'up', 5_000, 'the backend to be up');
}

function list(server: FakeLlama, ...models: ReturnType<typeof entry>[]): void {
  server.answers.set('GET /models', { body: { data: models } });
}

describe('watching a router', () => {
  it('takes events as they come, under both names, and asks the list for what they lack', async () => {
    const server = await fake();
    list(server, entry('a', 'unloaded'));
    const { backend, changes } = watch(server);
    await until(() => server.streams() === 1, 5_000, 'the stream');
    await until(() => status(backend, 'a') === 'unloaded', 5_000, 'a first list');
    list(server, entry('a', 'loading', ['--port', '40001']));
    server.send({ model: 'a', event: 'model_status', data: { status: 'loading' } });
    await until(() => backend.snapshot().models[0]?.port === 40_001, 5_000, 'its port');
    server.send({ model: 'a', event: 'status_change', data: { status: 'loaded' } });
    await until(() => status(backend, 'a') === 'loaded', 5_000, 'loaded');
    expect(changes.filter((change) => change.model === 'a').map((change) => change.what)).toEqual(
      expect.arrayContaining(['loading', 'loaded']),
    );
  });

  it('reads the list anew after a lost stream', async () => {
    const server = await fake();
    list(server, entry('a', 'loaded'));
    const { backend } = watch(server);
    await until(() => server.streams() === 1, 5_000, 'the stream');
    list(server, entry('a', 'sleeping'));
    server.cut();
    await until(() => status(backend, 'a') === 'sleeping' && server.streams() === 1, 5_000, 'a new stream');
  });

  it('misses nothing that happens between its first list and the opening of the stream', async () => {
    const server: FakeLlama = await fake({ onStream: () => list(server, entry('a', 'loaded')) });
    list(server, entry('a', 'unloaded'));
    const { backend } = watch(server);
    await until(() => status(backend, 'a') === 'loaded', 5_000, 'what happened meanwhile');
  });

  it('reads the list every few seconds where there are no events, and says so', async () => {
    const server = await fake({ events: false });
    list(server, entry('a', 'unloaded'));
    const { backend } = watch(server);
    await until(() => status(backend, 'a') === 'unloaded', 5_000, 'a list');
    list(server, entry('a', 'loaded'));
    await until(() => status(backend, 'a') === 'loaded', 5_000, 'the poll');
    expect(backend.snapshot().notes.join(' ')).toMatch(/no event stream/);
  });

  const SLOW = { firstBackoffMs: 60_000, lastBackoffMs: 60_000, requestTimeoutMs: 60_000 };

  it.each<[string, FakeAnswer]>([
    ['answers with an error', { status: 500, body: { error: { message: 'no' } } }],
    ['is a page', { status: 200, body: '<html>' }],
  ])('reads the list every moment where the stream %s, and says so', async (_, stream) => {
    const server = await fake({ events: false });
    server.answers.set('GET /models/sse', stream);
    list(server, entry('a', 'unloaded'));
    const { backend } = watch(server, fakeInspector(), SLOW);
    await until(() => /event stream/.test(backend.snapshot().notes.join(' ')), 5_000, 'the note');
    list(server, entry('a', 'loading'));
    await until(() => status(backend, 'a') === 'loading', 5_000, 'the poll');
  });

  it('reads the list every moment while the stream does not open', async () => {
    const server = await fake({ events: 'hang' });
    list(server, entry('a', 'unloaded'));
    const { backend } = watch(server, fakeInspector(), SLOW);
    await until(() => server.asked.includes('GET /models/sse'), 5_000, 'the stream to be asked for');
    list(server, entry('a', 'loading'));
    await until(() => status(backend, 'a') === 'loading', 5_000, 'the poll');
  });

  it('a model of unknown state counts as loaded, and a note says why nobody can tell what it does', async () => {
    const server = await fake();
    list(server, { ...entry('a', 'odd'), status: { value: '', args: [], preset: '' } }, entry('b', 'frozen'));
    const { backend } = watch(server);
    await until(() => status(backend, 'b') === 'loaded', 5_000, 'the list');
    const [a, b] = backend.snapshot().models;
    expect(a).toMatchObject({ status: 'loaded', busy: null });
    expect(a?.processNote).toMatch(/The state of a is not told/);
    expect(b?.processNote).toMatch(/state of b is one this version does not know \(“frozen”\)/);
    expect(backend.snapshot().notes.join(' ')).toMatch(/state of a .*state of b/);
  });

  it('a changed list is read again', async () => {
    const server = await fake();
    const { backend } = watch(server);
    await until(() => server.streams() === 1, 5_000, 'the stream');
    list(server, entry('new', 'unloaded'));
    server.send({ model: '*', event: 'models_reload' });
    await until(() => status(backend, 'new') === 'unloaded', 5_000, 'the new model');
  });
});

describe('rule 12: watching never changes what is watched', () => {
  async function tenMinutesOfTicks(server: FakeLlama, backend: Backend): Promise<Set<string>> {
    await until(() => server.streams() === 1 && backend.snapshot().models.length > 0, 5_000, 'the stream');
    server.asked.length = 0;
    await until(() => ticks >= 600, 30_000, '600 ticks');
    // The list that is read once more when the stream opens may still come; it names no model.
    return new Set(server.asked.filter((asked) => asked !== 'GET /models'));
  }
  let ticks = 0;
  const models = ['loaded', 'sleeping', 'loading', 'unloaded'].map((value) =>
    entry(`m-${value}`, value, ['--metrics', '--port', '40001']),
  );
  const counting = (): ServerInspector => {
    ticks = 0;
    const process = child({ pid: 5 });
    return {
      find: async ({ alias }) => [
        { ...process, command: ['llama-server', '--port', '40001', '--alias', alias ?? ''] },
      ],
      facts: async () => {
        ticks += 1;
        return [process];
      },
    };
  };

  it('asks only for the counters of loaded models, from a build where that is passive', async () => {
    const server = await fake();
    list(server, ...models);
    server.answers.set('GET /metrics', { body: 'llamacpp:requests_processing 0\n' });
    const { backend } = watch(server, counting(), { tickMs: 1 });
    expect([...(await tenMinutesOfTicks(server, backend))]).toEqual([
      'GET /metrics?model=m-loaded&autoload=false',
    ]);
  });

  it('asks no counters of an older build, nor of one that does not say which it is', async () => {
    for (const build of ['b10518-x', undefined]) {
      const server = await fake();
      server.answers.set('GET /props', { body: { ...ROUTER_PROPS, build_info: build } });
      list(server, ...models);
      const { backend } = watch(server, counting(), { tickMs: 1 });
      expect(await tenMinutesOfTicks(server, backend)).toEqual(new Set());
    }
  });
});

describe('bad answers', () => {
  it('a page, a demand for a key, a list that is none: unknown, with a sentence, and back when it is right', async () => {
    const server = await fake();
    server.answers.set('GET /props', { body: '<html>hello</html>' });
    const { backend } = watch(server);
    await until(() => /web page/.test(backend.snapshot().error ?? ''), 5_000, 'the page to be told');
    expect(backend.snapshot().status).toBe('unknown');
    server.answers.set('GET /props', { status: 401, body: { error: { message: 'no' } } });
    await until(() => /API key/.test(backend.snapshot().error ?? ''), 5_000, 'the key to be told');
    server.answers.set('GET /props', { body: { other: true } });
    await until(() => /does not answer as llama.cpp/.test(backend.snapshot().error ?? ''), 5_000, 'props');
    server.answers.set('GET /props', { body: ROUTER_PROPS });
    server.answers.set('GET /models', { body: { data: 'none' } });
    await until(() => /no list of models/.test(backend.snapshot().error ?? ''), 5_000, 'the list to be told');
    list(server);
    await isUp(backend);
    expect(backend.snapshot().error).toBeNull();
  });

  it('a server that is not there is down, with what to do', async () => {
    const server = await fake();
    const { backend, changes } = watch(server);
    await isUp(backend);
    await server[Symbol.asyncDispose]();
    await until(() => backend.snapshot().status === 'down', 5_000, 'down');
    expect(backend.snapshot().error).toMatch(/start the server/);
    expect(changes.map((change) => change.what)).toContain('down');
  });

  it('a router that comes back as a plain server is taken for what it is', async () => {
    const server = await fake();
    list(server, entry('a', 'loaded'));
    const { backend } = watch(server);
    await until(() => status(backend, 'a') === 'loaded' && server.streams() === 1, 5_000, 'the router');
    server.answers.set('GET /props', { body: { build_info: 'b11669', model_alias: 'solo' } });
    server.cut();
    await until(() => status(backend, 'solo') === 'loaded', 5_000, 'the plain server');
    expect(backend.snapshot().models).toHaveLength(1);
  });

  it('a listener that throws and an inspector that fails end nothing', async () => {
    const server = await fake();
    list(server, entry('a', 'loaded', ['--port', '40001']));
    const broken: ServerInspector = {
      find: async () => {
        throw new Error('gone');
      },
      facts: async () => {
        throw new Error('gone');
      },
    };
    const backend = llamaCppBackend({
      name: 'r',
      url: server.url,
      clock: systemClock,
      inspector: broken,
      timings: FAST,
    });
    open.push({ [Symbol.asyncDispose]: () => backend.stop() });
    backend.start(() => {
      throw new Error('listener');
    });
    await until(() => server.streams() === 1, 5_000, 'the stream');
    server.send({ model: 'a', event: 'status_change', data: { status: 'sleeping' } });
    await until(() => status(backend, 'a') === 'sleeping', 5_000, 'the event after');
    expect(backend.snapshot().models[0]).toMatchObject({ process: null });
  });
});

describe('load and unload', () => {
  it('one load in flight for each model, by name or alias', async () => {
    const server = await fake();
    list(server, entry('a', 'unloaded'));
    server.answers.set('POST /models/load', { body: { success: true } });
    const { backend } = watch(server);
    await until(() => status(backend, 'a') === 'unloaded', 5_000, 'the list');
    const results = await Promise.all([backend.load('a', SIGNAL), backend.load('a-alias', SIGNAL)]);
    expect(results.map((result) => result.ok)).toEqual([true, true]);
    expect(server.asked.filter((line) => line === 'POST /models/load')).toHaveLength(1);
  });

  it.each<[string, number, unknown, string | null]>([
    ['already running is done', 400, { error: { message: 'model is already running' } }, null],
    ['not found', 404, { error: { message: 'File Not Found' } }, 'unknown_model'],
    ['refused', 500, { error: { message: 'no room' } }, 'backend_refused'],
    ['success false', 200, { success: false }, 'backend_refused'],
  ])('a load: %s', async (_, code, body, expected) => {
    const server = await fake();
    server.answers.set('POST /models/load', { status: code, body });
    const { backend } = watch(server);
    await isUp(backend);
    const result = await backend.load('a', SIGNAL);
    expect(result.ok ? null : result.error.code).toBe(expected);
  });

  it('an unload makes it stopping at once; refused, it is loaded again', async () => {
    const server = await fake();
    list(server, entry('a', 'loaded'));
    server.answers.set('POST /models/unload', { body: { success: true } });
    const { backend } = watch(server);
    await until(() => status(backend, 'a') === 'loaded', 5_000, 'the list');
    const accepted = backend.unload('a', SIGNAL);
    expect(status(backend, 'a')).toBe('stopping');
    expect((await accepted).ok).toBe(true);
    expect(status(backend, 'a')).toBe('stopping');
    const again = await backend.load('a', SIGNAL);
    expect(again.ok ? null : again.error.code).toBe('model_busy');
    server.answers.set('POST /models/unload', { status: 500, body: { error: { message: 'no' } } });
    expect((await backend.unload('a', SIGNAL)).ok).toBe(false);
    expect(status(backend, 'a')).toBe('loaded');
  });

  it('one that is not running is unloaded already', async () => {
    const server = await fake();
    const { backend } = watch(server);
    await isUp(backend);
    server.answers.set('POST /models/unload', {
      status: 400,
      body: { error: { message: 'model is not running' } },
    });
    expect((await backend.unload('a', SIGNAL)).ok).toBe(true);
  });

  it('a caller that gives up is told so', async () => {
    const server = await fake();
    const { backend } = watch(server);
    await isUp(backend);
    const result = await backend.unload('a', AbortSignal.abort());
    expect(result.ok ? null : result.error.code).toBe('cancelled');
  });
});

describe('asking a model whether it works', () => {
  async function loaded({ args = [], events = true }: { args?: string[]; events?: boolean } = {}) {
    const server = await fake({ events });
    list(server, entry('a', 'loaded', args), entry('s', 'sleeping'), entry('u', 'unloaded'));
    server.answers.set('GET /props?model=a&autoload=false', {
      body: { build_info: 'b1', is_sleeping: false },
    });
    const { backend } = watch(server, fakeInspector(), { tickMs: 100_000, pollMs: 100_000 });
    const streams = events ? 1 : 0;
    await until(() => status(backend, 'a') === 'loaded' && server.streams() === streams, 5_000, 'the list');
    await backend.refresh();
    server.asked.length = 0;
    return { server, backend };
  }
  const slots = (...working: boolean[]) => ({
    body: working.map((is_processing, id) => ({ id, is_processing })),
  });
  const SLOTS = 'GET /slots?model=a&autoload=false';

  it('one that sleeps or is unloaded is idle, and is not asked', async () => {
    const { server, backend } = await loaded();
    expect(await backend.confirmIdle('s', SIGNAL)).toEqual({ busy: false });
    expect(await backend.confirmIdle('u', SIGNAL)).toEqual({ busy: false });
    expect(server.asked).toEqual([]);
  });

  it('one that fell asleep a moment ago, which no event told, is not woken by the question', async () => {
    const { server, backend } = await loaded({ events: false });
    server.answers.set('GET /props?model=a&autoload=false', {
      body: { build_info: 'b1', is_sleeping: true },
    });
    expect(await backend.confirmIdle('a', SIGNAL)).toEqual({ busy: false });
    expect(server.asked.filter((line) => line.includes('/slots'))).toEqual([]);
  });

  it('its slots tell, in one question where events tell of sleep', async () => {
    const { server, backend } = await loaded();
    server.answers.set(SLOTS, slots(false, true));
    expect(await backend.confirmIdle('a', SIGNAL)).toMatchObject({ busy: true, detail: /1 of 2 slots/ });
    server.answers.set(SLOTS, slots(false, false));
    expect(await backend.confirmIdle('a', SIGNAL)).toEqual({ busy: false });
    expect(server.asked).toEqual([SLOTS, SLOTS]);
  });

  it('its counters tell as much, and what waits: its slots are then not asked', async () => {
    const { server, backend } = await loaded({ args: ['--metrics'] });
    const say = (text: string) => server.answers.set('GET /metrics', { body: text });
    say('llamacpp:requests_processing 1\n');
    expect(await backend.confirmIdle('a', SIGNAL)).toMatchObject({
      busy: true,
      detail: /1 request is at work/,
    });
    say('llamacpp:requests_processing 0\nllamacpp:requests_deferred 2\n');
    expect(await backend.confirmIdle('a', SIGNAL)).toMatchObject({
      busy: true,
      detail: /2 requests are wait/,
    });
    say('llamacpp:requests_processing 0\n');
    expect(await backend.confirmIdle('a', SIGNAL)).toEqual({ busy: false });
    expect(server.asked).toEqual(Array(3).fill('GET /metrics?model=a&autoload=false'));
    server.answers.delete('GET /metrics');
    server.answers.set(SLOTS, slots(true));
    expect(await backend.confirmIdle('a', SIGNAL)).toMatchObject({ busy: true, detail: /1 of 1 slots/ });
  });

  it.each<[string, string[], (served: number) => [string, string | object]]>([
    [
      'a counter',
      ['--metrics'],
      (served) => ['GET /metrics', `llamacpp:requests_processing 0\nllamacpp:n_decode_total ${served}\n`],
    ],
    ['the task of a slot', [], (served) => [SLOTS, [{ id: 0, is_processing: false, id_task: served }]]],
  ])(
    'one that has served since it was last looked at is not idle, by %s, and its time begins anew',
    async (_, args, answer) => {
      const { server, backend } = await loaded({ args });
      const serve = (served: number): void => {
        const [path, body] = answer(served);
        server.answers.set(path, { body });
      };
      serve(3);
      expect(await backend.confirmIdle('a', SIGNAL)).toEqual({ busy: false });
      expect(backend.snapshot().models[0]?.lastBusyAtMs).toBeNull();
      serve(4);
      const atMs = systemClock.monotonicMs();
      expect(await backend.confirmIdle('a', SIGNAL)).toMatchObject({ busy: true, detail: /has served/ });
      expect(backend.snapshot().models[0]?.lastBusyAtMs).toBeGreaterThanOrEqual(atMs);
      expect(await backend.confirmIdle('a', SIGNAL)).toEqual({ busy: false });
    },
  );

  it('is unknown, never idle, where it does not tell', async () => {
    const { server, backend } = await loaded();
    server.answers.set(SLOTS, { status: 501, body: { error: { message: 'no slots endpoint' } } });
    expect(await backend.confirmIdle('a', SIGNAL)).toMatchObject({ busy: null, why: /no slots endpoint/ });
    expect(await backend.confirmIdle('nobody', SIGNAL)).toMatchObject({ busy: null });
    server.answers.set(SLOTS, { status: 400, body: { error: { message: 'model is not loaded' } } });
    expect(await backend.confirmIdle('a', SIGNAL)).toEqual({ busy: false });
  });
});

describe('processes', () => {
  it('of a model that has just been loaded are of unknown business, however fast it was and whatever it did before', async () => {
    const server = await fake();
    list(server, entry('a', 'unloaded'));
    const { backend } = watch(server);
    await until(() => server.streams() === 1, 5_000, 'the stream');
    await until(() => backend.snapshot().models[0]?.busy === false, 5_000, 'at rest');
    await new Promise((resolve) => setTimeout(resolve, 50));
    const seen: unknown[] = [];
    backend.start((change) => {
      if (change.what === 'loaded') seen.push(backend.snapshot().models[0]?.busy);
    });
    server.send({ model: 'a', event: 'model_status', data: { status: 'loading' } });
    server.send({ model: 'a', event: 'status_change', data: { status: 'loaded' } });
    await until(() => seen.length > 0, 5_000, 'loaded');
    expect(seen).toEqual([null]);
  });

  it('proves the child, tells busy by its CPU time, and asks the list when it is gone', async () => {
    const server = await fake();
    list(server, entry('a', 'loaded', ['--port', '40001']));
    const routerPort = Number(new URL(server.url).port);
    const processes = [
      child({ pid: 10, startTimeTicks: 1, command: ['llama-server'], listeningPorts: [routerPort] }),
      child({ pid: 11, parentPid: 10, command: ['llama-server', '--port', '40001', '--alias', 'a'] }),
    ];
    const { backend, changes } = watch(server, fakeInspector(processes));
    const model = () => backend.snapshot().models[0];
    await until(() => model()?.process?.pid === 11, 5_000, 'its process');
    const burn = setInterval(() => {
      processes[1] = { ...child(processes[1]), cpuMs: (processes[1]?.cpuMs ?? 0) + 10 };
    }, 10);
    await until(() => model()?.busy === true, 5_000, 'busy');
    clearInterval(burn);
    await until(() => model()?.busy === false, 10_000, 'idle');
    expect(changes.map((change) => change.what)).toEqual(expect.arrayContaining(['busy', 'idle']));
    server.asked.length = 0;
    processes.pop();
    await until(() => server.asked.includes('GET /models'), 5_000, 'the list to be asked');
    await until(() => model()?.process === null && model()?.processNote !== null, 5_000, 'the note');
  });
});

describe('an inspector in trouble', () => {
  it('makes busy unknown, never idle, and forgets no process', async () => {
    const server = await fake();
    list(server, entry('a', 'loaded', ['--port', '40001']));
    const routerPort = Number(new URL(server.url).port);
    const inner = fakeInspector([
      child({ pid: 10, startTimeTicks: 1, listeningPorts: [routerPort] }),
      child({ pid: 11, parentPid: 10, command: ['llama-server', '--port', '40001', '--alias', 'a'] }),
    ]);
    let isBroken = false;
    const inspector: ServerInspector = {
      find: (query) => inner.find(query),
      facts: async (pids) => {
        if (isBroken) throw new Error('the sampler hangs');
        return await inner.facts(pids);
      },
    };
    const { backend } = watch(server, inspector);
    await until(() => backend.snapshot().models[0]?.busy === false, 10_000, 'idle');
    isBroken = true;
    await until(() => backend.snapshot().models[0]?.busy === null, 5_000, 'unknown');
    expect(backend.snapshot().models[0]?.process?.pid).toBe(11);
  });
});

describe('a plain llama-server', () => {
  it('is a router of one model that can not be unloaded', async () => {
    const server = await fake();
    const props = {
      default_generation_settings: { n_ctx: 4096 },
      build_info: 'b11669',
      model_path: '/m/qwen.gguf',
      model_alias: '/m/qwen.gguf',
      is_sleeping: false,
    };
    server.answers.set('GET /props', { body: props });
    const { backend } = watch(server);
    await until(() => status(backend, 'qwen') === 'loaded', 5_000, 'loaded');
    expect(backend.snapshot().models[0]).toMatchObject({
      contextTokens: 4096,
      port: Number(new URL(server.url).port),
    });
    server.answers.set('GET /props', { body: { ...props, is_sleeping: true } });
    await until(() => status(backend, 'qwen') === 'sleeping', 5_000, 'sleeping');
    expect(new Set(server.asked)).toEqual(new Set(['GET /props']));
    const result = await backend.unload('qwen', SIGNAL);
    expect(result.ok ? null : result.error).toMatchObject({
      code: 'not_supported',
      message: /stop its process/,
    });
    server.answers.set('GET /props', { status: 503, body: { error: { message: 'Loading model' } } });
    await until(() => status(backend, 'qwen') === 'loading', 5_000, 'loading');
  });
});

function child(change: Partial<ProcessFacts> = {}): ProcessFacts {
  return {
    pid: 1,
    startTimeTicks: 50,
    parentPid: 1,
    parentStartTimeTicks: null,
    uid: 0,
    command: ['llama-server'],
    listeningPorts: [40_001],
    routerPort: null,
    cpuMs: 0,
    state: 'S',
    ...change,
  };
}
