import { describe, expect, it } from 'vitest';
import {
  isInFlight,
  nextFlights,
  parseSwapMessage,
} from '../../../electron/core/backends/dialects/llama-swap-flights.ts';
import { loopbackPort } from '../../../electron/core/backends/told-model.ts';
import { commandFlags } from '../../../electron/core/ledger/footprint/command-flags.ts';
import { placedArgs } from '../../../electron/core/ledger/footprint/ollama-context.ts';
import type { ProcessFacts } from '../../../electron/core/process/identity.ts';
import { family } from './family.ts';
import { instead, only, seen, subject } from './one-model.ts';
import { BLOB } from './servers/scripts.ts';
import type { StagedModel } from './servers/server.ts';
import { type Watched, watch } from './subjects.ts';

const SIGNAL = new AbortController().signal;
const GIB = 1024 ** 3;

/** A model with a child process as its server starts one. */
async function withChild(
  title: string,
  child: Partial<ProcessFacts>,
  staged: Partial<StagedModel> = {},
): Promise<Watched> {
  const one = subject(title);
  const it = await watch(one, {
    before: (server) =>
      server.put({ name: 'qwen', state: 'loaded', port: 41_001, contextTokens: 8192, ...staged }),
    inspector: (server) =>
      family(one, Number(new URL(server.url).port), { listeningPorts: [41_001], ...child }),
  });
  await seen('the model', () => only(it)?.status === 'loaded');
  return it;
}

const CHILD = ['/opt/llama-server', '--model', `/blobs/${BLOB}`, '--port', '41001'];

describe('the process of a model (rule 10)', () => {
  it.each(['llama-swap', 'Ollama', 'Lemonade'])(
    '%s: proven by file or port, by what listens, and by its parent',
    async (title) => {
      await using it = await withChild(title, { command: CHILD });
      await seen('the proof', () => only(it)?.process !== null);
      expect(only(it)?.process).toMatchObject({ pid: 4242, parentPid: 100, port: 41_001 });
      expect(only(it)?.processNote).toBeNull();
    },
  );

  it.each<[string, string, Partial<ProcessFacts>, RegExp]>([
    [
      'llama-swap',
      'is another program’s child',
      { command: CHILD, parentPid: 7 },
      /is a child of 7, not of llama-swap/,
    ],
    [
      'Ollama',
      'is another program’s child',
      { command: CHILD, parentPid: 7 },
      /is a child of 7, not of Ollama/,
    ],
    [
      'Lemonade',
      'is not the one that is told',
      { command: CHILD, pid: 99 },
      /tells process 4242, but 99 has that port/,
    ],
    [
      'Ollama',
      'has no such file',
      { command: ['/opt/llama-server', '--model', '/x.gguf', '--port', '41001'] },
      /on its command line/,
    ],
    [
      'llama-swap',
      'runs in a container',
      { command: ['docker', 'run', 'x', '--port', '41001'], listeningPorts: [] },
      /does not listen on it here/,
    ],
  ])('%s: a process that %s is none, and the note says why', async (title, _, child, why) => {
    await using it = await withChild(title, child);
    await seen('the note', () => why.test(only(it)?.processNote ?? ''));
    expect(only(it)?.process).toBeNull();
  });

  it('LM Studio names none, and the note says so', async () => {
    await using it = await withChild('LM Studio', { command: CHILD });
    expect(only(it)?.processNote).toMatch(/does not tell which of its processes/);
  });
});

describe('Ollama', () => {
  it('tells work from rest by the process, and a request by the moved expiry', async () => {
    const expiresAt = Date.now() + 100_000;
    const staged = { expiresAt };
    await using it = await withChild('Ollama', { command: CHILD }, staged);
    await seen('the proof', () => only(it)?.process !== null);
    await seen('rest', () => only(it)?.busy === false);
    const before = only(it)?.lastBusyAtMs ?? 0;
    const model = it.server.stage.models.get('qwen');
    if (model !== undefined) model.expiresAt = expiresAt + 60_000;
    await seen('use', () => (only(it)?.lastBusyAtMs ?? 0) > before);
    const leavesInMs = (only(it)?.expiresAtMs ?? 0) - Number(process.hrtime.bigint() / 1_000_000n);
    expect(leavesInMs).toBeGreaterThan(60_000);
    expect(leavesInMs).toBeLessThan(160_000);
  });

  it('prices a load: file, context as it is loaded and not as the file allows, Ollama’s own batch and slot', async () => {
    await using it = await withChild('Ollama', { command: CHILD });
    await seen('the file', () => only(it)?.modelPath !== null);
    const flags = commandFlags(only(it)?.args ?? []);
    expect(only(it)?.modelPath).toBe(`/var/lib/ollama/blobs/${BLOB}`);
    expect(flags).toMatchObject({ contextTokens: 8192, slots: 1, batch: 512, ubatch: 512, gpuLayers: null });
  });

  it('leaves a context that nobody asked for to the device, up to what the model was trained for', async () => {
    const shown = (model_info: object) => ({ body: { modelfile: `FROM /blobs/${BLOB}`, model_info } });
    const rows = [{ name: 'a', size: 5_000, size_vram: 5_000, context_length: 32_768 }];
    const answers = {
      '/api/ps': { body: { models: [] as object[] } },
      '/api/tags': { body: { models: [{ name: 'a' }] } },
      '/api/show': shown({
        'general.architecture': 'qwen3',
        'clip.context_length': 7,
        'qwen3.context_length': 40_960,
      }),
    };
    await using it = await instead('Ollama', answers);
    await seen('the file', () => only(it)?.modelPath === `/blobs/${BLOB}`);
    expect(placedArgs(only(it)?.args ?? null, 24 * GIB)).toContain('32768');
    expect(placedArgs(only(it)?.args ?? null, 48 * GIB)).toContain('40960');
    // As it is loaded now, and so it will be next time.
    answers['/api/ps'].body.models = rows;
    await seen('the load', () => only(it)?.status === 'loaded');
    answers['/api/ps'].body.models = [];
    await seen('the unload', () => only(it)?.status === 'unloaded');
    expect(commandFlags(only(it)?.args ?? [])).toMatchObject({ contextTokens: 32_768 });
  });

  it.each<[string, object, number | null]>([
    ['no size on the card: all of it in the host’s memory', { size: 5_000 }, 5_000],
    ['a size on the card beyond the whole: the whole', { size: 5_000, size_vram: 9_000 }, 5_000],
    ['part of it on the card', { size: 5_000, size_vram: 3_000 }, 3_000],
    ['no size at all', { size_vram: 3_000 }, null],
    [
      'a size on the card that is no size: the whole, and not told where',
      { size: 5_000, size_vram: 'x' },
      5_000,
    ],
    ['a negative one: the same', { size: 5_000, size_vram: -1 }, 5_000],
  ])('%s', async (_, sizes, bytes) => {
    const row = { name: 'a:latest', expires_at: '2318-01-01T00:00:00Z', digest: 'd', ...sizes };
    await using it = await instead('Ollama', { '/api/ps': { body: { models: [row] } } });
    await seen('it', () => only(it)?.status === 'loaded');
    expect(only(it)?.reportedBytes).toBe(bytes);
    expect(only(it)?.aliases).toEqual(['a']);
    const isOnHost = !('size_vram' in sizes);
    expect(only(it)?.args?.includes('--gpu-layers') ?? false).toBe(isOnHost);
    // That is Ollama's word for never.
    expect(only(it)?.expiresAtMs).toBeNull();
  });

  it('asks again for what a busy server did not say of a model', async () => {
    const row = { name: 'a', digest: 'd', size: 1, size_vram: 1 };
    let shows = 0;
    await using it = await watch(subject('Ollama'), {
      before: (server) => {
        server.instead = ({ path }) => {
          if (path === '/api/version') return { body: { version: '1' } };
          if (path !== '/api/show') return { body: { models: [row] } };
          shows += 1;
          return shows === 1
            ? { status: 503, body: { error: 'server busy, please try again.' } }
            : { body: { modelfile: `FROM /blobs/${BLOB}` } };
        };
      },
    });
    await seen('the file', () => only(it)?.modelPath === `/blobs/${BLOB}`);
    expect(shows).toBe(2);
  });

  it('lists nothing that runs on another’s machine', async () => {
    const rows = [{ name: 'far:cloud', remote_host: 'https://far.example' }, { name: 'near' }];
    await using it = await instead('Ollama', {
      '/api/ps': { body: { models: null } },
      '/api/tags': { body: { models: rows } },
    });
    await seen('the list', () => it.backend.snapshot().models.length > 0);
    expect(it.backend.snapshot().models.map((model) => model.name)).toEqual(['near']);
  });

  it('loads and unloads what does not generate by its embeddings', async () => {
    const asked: unknown[] = [];
    await using it = await watch(subject('Ollama'), {
      before: (server) => server.put({ name: 'bge', state: 'loaded' }),
      timings: { acceptMs: 10_000 },
    });
    await seen('it', () => only(it)?.status === 'loaded');
    it.server.instead = (one) => {
      if (one.path === '/api/generate')
        return { status: 400, body: { error: '"bge" does not support generate' } };
      if (one.path !== '/api/embed') return { status: 404, body: {} };
      asked.push(one.body);
      return { body: { embeddings: [] } };
    };
    expect(await it.backend.unload('bge', SIGNAL)).toMatchObject({ ok: true });
    expect(asked).toEqual([{ model: 'bge', input: [], keep_alive: 0 }]);
  });
});

describe('LM Studio', () => {
  it('unloads each of a model’s instances, and goes by any of their names', async () => {
    const instance = (id: string, context: number) => ({
      id,
      config: { context_length: context, parallel: 2 },
    });
    const entry = {
      type: 'llm',
      key: 'maker/m',
      size_bytes: 7,
      loaded_instances: [instance('maker/m', 4096), instance('maker/m:2', 9000)],
    };
    const asked: unknown[] = [];
    await using it = await instead('LM Studio', { '/api/v1/models': { body: { models: [entry] } } });
    await seen('it', () => only(it)?.status === 'loaded');
    expect(only(it)).toMatchObject({
      aliases: ['maker/m:2'],
      contextTokens: 9000,
      reportedBytes: null,
      weightsBytes: 7,
    });
    it.server.instead = (one) => {
      if (one.method === 'POST') asked.push(one.body);
      return { body: one.method === 'POST' ? {} : { models: [entry] } };
    };
    expect(await it.backend.unload('maker/m:2', SIGNAL)).toMatchObject({ ok: true });
    expect(asked).toEqual([{ instance_id: 'maker/m' }, { instance_id: 'maker/m:2' }]);
  });
});

describe('LM Studio that does not tell all', () => {
  it('of instances: whether it is loaded is not known, and nothing is said to be unloaded', async () => {
    const models = [{ type: 'llm', key: 'm', size_bytes: 7 }];
    await using it = await instead('LM Studio', { '/api/v1/models': { body: { models } } });
    await seen('it', () => only(it) !== undefined);
    expect(only(it)).toMatchObject({ status: 'loaded', busy: null, isFixed: true });
    expect(it.backend.snapshot().notes.join(' ')).toMatch(/The state of m is one this version does not know/);
    expect(await it.backend.unload('m', SIGNAL)).toMatchObject({
      ok: false,
      error: { code: 'not_supported', message: expect.stringMatching(/lms unload/) },
    });
  });
});

describe('llama-swap', () => {
  it('finds the file of a container that it starts where it lies outside, and no flags of the container', async () => {
    const cmd =
      'docker run --rm -c 512 -v /srv/models:/models -p 9501:8080 llama.cpp:server -m /models/q.gguf';
    await using it = await instead('llama-swap', {
      '/running': {
        body: { running: [{ model: 'q', state: 'ready', cmd, proxy: 'http://127.0.0.1:9501' }] },
      },
      '/v1/models': { body: { data: [{ id: 'q' }] } },
    });
    await seen('it', () => only(it)?.status === 'loaded');
    expect(only(it)).toMatchObject({ modelPath: '/srv/models/q.gguf', contextTokens: null, port: 9501 });
  });

  it('reads flags and file out of its command, and when it lets a model go', async () => {
    await using it = await withChild('llama-swap', { command: CHILD });
    await seen('the stream', () => it.server.streams() > 0);
    it.server.send({ type: 'inflight', data: JSON.stringify({ operation: 'snapshot', entries: [] }) });
    await seen('rest', () => only(it)?.busy === false && only(it)?.expiresAtMs !== null);
    expect(only(it)).toMatchObject({ modelPath: '/models/a b.gguf', contextTokens: 8192, port: 41_001 });
    const leavesInMs = (only(it)?.expiresAtMs ?? 0) - Number(process.hrtime.bigint() / 1_000_000n);
    expect(leavesInMs).toBeGreaterThan(280_000);
    expect(leavesInMs).toBeLessThanOrEqual(300_500);
  });

  it('too old to unload one by name is asked to unload all only where all is that one', async () => {
    const running = [{ model: 'a', state: 'ready' }];
    const asked: string[] = [];
    await using it = await instead(
      'llama-swap',
      { '/running': { body: { running } }, '/unload': { body: 'OK' } },
      asked,
    );
    await seen('it', () => only(it)?.status === 'loaded');
    expect(await it.backend.unload('a', SIGNAL)).toMatchObject({ ok: true });
    await seen('its answer', () => asked.includes('GET /unload'));
    running.push({ model: 'b', state: 'ready' });
    asked.length = 0;
    await seen('the other', () => it.backend.snapshot().models.length === 2);
    expect(await it.backend.unload('b', SIGNAL)).toMatchObject({
      ok: false,
      error: { code: 'not_supported' },
    });
    expect(asked).not.toContain('GET /unload');
  });

  it('the requests in flight, one by one', () => {
    const message = (operation: string, ...entries: readonly object[]) =>
      parseSwapMessage(JSON.stringify({ type: 'inflight', data: JSON.stringify({ operation, entries }) }))
        ?.data;
    let flights = nextFlights(null, message('upsert', { id: 'x', model: 'a' }));
    expect(flights).toBeNull();
    flights = nextFlights(flights, message('snapshot', { id: 1, model: 'a' }));
    flights = nextFlights(flights, message('upsert', { id: 2, model: 'b' }));
    expect(isInFlight(flights, ['a', 'alias'], [])).toBe(true);
    flights = nextFlights(flights, message('remove', { id: 1 }));
    expect([isInFlight(flights, ['a'], []), isInFlight(flights, ['b'], [])]).toEqual([false, true]);
    expect(nextFlights(flights, 'nonsense')).toBe(flights);
    expect(parseSwapMessage('{')).toBeNull();
  });

  it('as its newer releases say it, and one for nobody by name may be for anybody', () => {
    const message = (data: object) =>
      parseSwapMessage(JSON.stringify({ type: 'inflight', data: JSON.stringify(data) }))?.data;
    let flights = nextFlights(null, message({ operation: 'snapshot', requests: [] }));
    expect(isInFlight(flights, ['a'], ['a'])).toBe(false);
    flights = nextFlights(flights, message({ operation: 'upsert', request: { id: '1', req_path: '/v1/x' } }));
    expect(isInFlight(flights, ['a'], ['a'])).toBeNull();
    flights = nextFlights(flights, message({ operation: 'upsert', request: { id: '2', model: 'a' } }));
    expect(isInFlight(flights, ['a'], ['a'])).toBe(true);
    flights = nextFlights(flights, message({ operation: 'remove', id: '2' }));
    flights = nextFlights(flights, message({ operation: 'remove', id: '1' }));
    expect(isInFlight(flights, ['a'], ['a'])).toBe(false);
  });

  it('a mere number of requests tells of a model only where it is the only one', () => {
    const flights = nextFlights(null, { total: 1 });
    expect(isInFlight(flights, ['a'], ['a'])).toBe(true);
    expect(isInFlight(flights, ['a'], ['a', 'b'])).toBeNull();
    expect(isInFlight(nextFlights(flights, { total: 0 }), ['a'], ['a', 'b'])).toBe(false);
  });
});

it.each<[unknown, number | null]>([
  ['http://127.0.0.1:5801', 5801],
  ['http://localhost:5801/v1', 5801],
  ['http://[::1]:5801', 5801],
  ['http://box.example:5801', null],
  ['nonsense', null],
  [5801, null],
])('the port in %s', (url, port) => {
  expect(loopbackPort(url)).toBe(port);
});
