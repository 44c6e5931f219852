import { describe, expect, it } from 'vitest';
import type { Backend, ObservedModel } from '../../../electron/core/backends/backend.ts';
import { reloadNote, tellingReloads } from '../../../electron/core/backends/reloads.ts';
import { NO_MODELS, type RouterInput, reduce } from '../../../electron/core/backends/router-state.ts';
import { observedModel } from '../../support/model-view.ts';
import { until } from '../../support/router.ts';
import { handClock } from '../../support/serve-fake.ts';
import type { StagedModel } from '../backends/servers/server.ts';
import { SUBJECTS, type Watched, watch } from '../backends/subjects.ts';

/** Field reports about reading a server's state. Numbers are those of the collected reports. */
const subject = (title: string) => {
  const found = SUBJECTS.find((one) => one.title === title);
  if (found === undefined) throw new Error(title);
  return found;
};
const model = (it: Watched, name: string): ObservedModel | undefined =>
  it.backend.snapshot().models.find((one) => one.name === name);

async function router(...models: readonly StagedModel[]): Promise<Watched> {
  const it = await watch(subject('llama.cpp router'), { before: (server) => server.put(...models) });
  await until(() => it.backend.snapshot().models.length === models.length, 10_000, 'the list');
  return it;
}

it('01 router-metrics-poll-loads-models: no model that is unloaded, loading or asleep is ever asked anything', async () => {
  await using it = await router(
    { name: 'away', state: 'unloaded' },
    { name: 'asleep', state: 'sleeping' },
    { name: 'coming', state: 'loading' },
    { name: 'there', state: 'loaded' },
  );
  await until(() => it.server.asked.length > 200, 20_000, 'hundreds of readings');
  const named = it.server.asked.filter((asked) => asked.path.includes('model='));
  expect(new Set(named.map((asked) => asked.path))).toEqual(new Set(['/metrics?model=there&autoload=false']));
});

describe('02 router-failed-flag-is-not-a-crash', () => {
  const listed = (
    failed: boolean,
    exitCode: number | null,
    status: 'unloaded' | 'loaded' = 'unloaded',
  ): RouterInput => ({
    type: 'list',
    askedAtMs: 1,
    atMs: 2,
    models: [
      {
        name: 'm',
        aliases: [],
        status,
        statusText: status,
        failed,
        exitCode,
        args: null,
        port: null,
        modelPath: null,
        contextTokens: null,
        stopTimeoutMs: null,
        tellsMetrics: false,
      },
    ],
  });
  const stateAfter = (...inputs: readonly RouterInput[]) =>
    inputs.reduce((state, input) => reduce(state, input).state, NO_MODELS);

  it('a preset that was never started is not loaded, whatever flag and exit code it carries', () => {
    expect(stateAfter(listed(true, 10)).get('m')).toMatchObject({ status: 'unloaded', failure: null });
  });
  it('a model that we unloaded on purpose is not loaded', () => {
    const state = stateAfter(
      listed(false, null, 'loaded'),
      { type: 'unload_asked', model: 'm', atMs: 3 },
      listed(true, 1),
    );
    expect(state.get('m')).toMatchObject({ status: 'unloaded', failure: null });
  });
  it('one that we saw loaded and nobody asked to go has crashed', () => {
    expect(stateAfter(listed(false, null, 'loaded'), listed(true, 1)).get('m')).toMatchObject({
      status: 'failed',
    });
  });
});

it('03 router-unloaded-and-sleeping-hidden: both are shown, and a state nobody knows is shown as one', async () => {
  await using it = await router(
    { name: 'away', state: 'unloaded' },
    { name: 'asleep', state: 'sleeping' },
    { name: 'strange', state: 'odd' },
  );
  await until(() => model(it, 'asleep')?.status === 'sleeping', 10_000, 'it');
  expect(model(it, 'away')).toMatchObject({ status: 'unloaded', reportedBytes: null });
  expect(model(it, 'strange')).toMatchObject({ status: 'loaded', busy: null });
});

it('07 stopping-for-16-minutes: a model that a request holds past its unload is stopping, there, and never idle', async () => {
  const gate = Promise.withResolvers<void>();
  await using it = await watch(subject('Ollama'), {
    before: (server) => server.put({ name: 'gemma3:4b', state: 'loaded' }),
  });
  await until(() => model(it, 'gemma3:4b')?.status === 'loaded', 10_000, 'it');
  it.server.stage.holds.unload = gate.promise;
  // The call says yes at once; nothing is freed on the strength of that.
  expect(await it.backend.unload('gemma3:4b', new AbortController().signal)).toMatchObject({ ok: true });
  await until(() => model(it, 'gemma3:4b')?.status === 'stopping', 10_000, 'it to be stopping');
  const held = model(it, 'gemma3:4b');
  expect(held).toMatchObject({ busy: null, reportedBytes: 3_000_000_000 });
  const isSaid = () =>
    /a request holds it, and its memory stays in use/.test(it.backend.snapshot().notes.join(' '));
  await until(isSaid, 10_000, 'the next reading to say why');
  gate.resolve();
  await until(() => model(it, 'gemma3:4b')?.status === 'unloaded', 10_000, 'it to be gone');
});

it('11 swap-timeout-5s: a load that failed is no end: the reason is said, and the next wish loads it', async () => {
  await using it = await watch(subject('llama-swap'), {
    before: (server) => server.put({ name: 'slow', state: 'unloaded' }),
    timings: { acceptMs: 500 },
  });
  await until(() => model(it, 'slow')?.status === 'unloaded', 10_000, 'it');
  const signal = new AbortController().signal;
  it.server.stage.refuses = 'health check timed out';
  expect(await it.backend.load('slow', signal)).toMatchObject({
    ok: false,
    error: { message: expect.stringMatching(/health check timed out/) },
  });
  // However long it takes: nobody gives up on it after a fixed moment.
  const gate = Promise.withResolvers<void>();
  it.server.stage.holds.load = gate.promise;
  expect(await it.backend.load('slow', signal)).toMatchObject({ ok: true });
  await until(() => model(it, 'slow')?.status === 'loading', 10_000, 'the load');
  gate.resolve();
  await until(() => model(it, 'slow')?.status === 'loaded', 10_000, 'its end');
});

it('13 ttl-from-request-start: idle time runs from the end of the last request', async () => {
  const staged: StagedModel = { name: 'long', state: 'loaded', busy: true };
  await using it = await router(staged);
  await until(() => model(it, 'long')?.busy === true, 10_000, 'the request');
  const startedAtMs = model(it, 'long')?.lastBusyAtMs ?? 0;
  await until(() => (model(it, 'long')?.lastBusyAtMs ?? 0) > startedAtMs + 50, 10_000, 'it to go on');
  staged.busy = false;
  await until(() => model(it, 'long')?.busy === false, 10_000, 'its end');
  expect(model(it, 'long')?.lastBusyAtMs).toBeGreaterThan(startedAtMs + 50);
});

describe('14 swap-thrash-num-ctx', () => {
  const clock = handClock();
  let now: Partial<ObservedModel> = { status: 'loaded', contextTokens: 4096 };
  const backend: Pick<Backend, 'snapshot'> = {
    snapshot: () => ({
      name: 'ollama',
      kind: 'ollama',
      url: '',
      status: 'up',
      sinceMs: 0,
      error: null,
      version: null,
      models: [observedModel({ name: 'gemma3', ...now })],
      takenAtMs: 0,
      tellsBusy: false,
      notes: [],
    }),
  };

  it('one model loaded again and again with different contexts is told as that, with the sizes', () => {
    const nothing = async () => ({ ok: true as const, value: undefined });
    const told = tellingReloads(
      {
        name: 'ollama',
        kind: 'ollama',
        url: '',
        start: () => undefined,
        stop: async () => undefined,
        refresh: async () => undefined,
        load: nothing,
        unload: nothing,
        confirmIdle: async () => ({ busy: false }),
        ...backend,
      },
      clock,
    );
    const notes: string[] = [];
    for (const contextTokens of [4096, 32_768, 4096, 32_768]) {
      now = { status: 'loaded', contextTokens };
      notes.push(told.snapshot().notes.join(' '));
      clock.advance(60_000);
    }
    expect(notes[1]).toBe('');
    expect(notes[3]).toMatch(
      /gemma3 was loaded 4 times within 3\s?min.*4096 and 32768 tokens.*Give them all the same/,
    );
    clock.advance(3_600_000);
    expect(told.snapshot().notes).toEqual([]);
  });

  it('loads of one and the same context are none', () => {
    const loads = [1, 2, 3, 4].map((atMs) => ({ atMs, contextTokens: 4096 }));
    expect(reloadNote('m', loads, 10)).toBeNull();
  });
});

it('49 disconnect-keeps-generating: a slot counts as busy until its server says otherwise, whoever has left', async () => {
  const staged: StagedModel = { name: 'left', state: 'loaded', busy: true };
  await using it = await router(staged);
  await until(() => model(it, 'left')?.busy === true, 10_000, 'the request');
  expect(await it.backend.confirmIdle('left', new AbortController().signal)).toMatchObject({ busy: true });
  staged.busy = false;
  await until(() => model(it, 'left')?.busy === false, 10_000, 'its end');
});
