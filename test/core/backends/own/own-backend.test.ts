import { expect, it } from 'vitest';
import type { Backend, BackendSnapshot, ObservedModel } from '../../../../electron/core/backends/backend.ts';
import { ownBackend } from '../../../../electron/core/backends/own/own-backend.ts';
import type { OwnStatus } from '../../../../electron/core/backends/own/supervisor.ts';
import { LOG_SAYS } from '../../../../electron/core/backends/router-state.ts';
import { fail, ok } from '../../../../shared/errors.ts';
import { observedModel } from '../../../support/model-view.ts';

const SIGNAL = new AbortController().signal;

interface Now {
  status: BackendSnapshot['status'];
  own: OwnStatus;
  starts: number;
  rests: number;
  unloads: number;
  model: Partial<ObservedModel>;
  log: readonly string[];
  readonly changes: string[];
  readonly rest: PromiseWithResolvers<void>;
}

/** A server of one model, and the process behind it, as a test wants them. */
function bench(start: 'now' | 'use', isSingle = true) {
  const rest = Promise.withResolvers<void>();
  const now: Now = {
    ...{ status: 'up', own: 'running', starts: 0, rests: 0, unloads: 0, changes: [], rest },
    ...{ model: {}, log: [] },
  };
  const inner: Backend = {
    name: 'mine',
    kind: 'llama.cpp',
    url: 'http://127.0.0.1:1',
    start: () => undefined,
    stop: async () => undefined,
    refresh: async () => undefined,
    load: async () => fail('not_supported', 'it can not load.'),
    async unload() {
      now.unloads += 1;
      return fail('not_supported', 'it can not unload.');
    },
    confirmIdle: async () => ({ busy: true, detail: 'it works' }),
    snapshot: () => ({
      name: 'mine',
      kind: 'llama.cpp',
      url: 'http://127.0.0.1:1',
      status: now.status,
      sinceMs: 0,
      error: now.status === 'up' ? null : 'Nothing listens.',
      version: null,
      models: [
        observedModel({
          ...{ name: 'talk', aliases: ['a'], status: 'loaded', busy: false, isFixed: true },
          ...now.model,
        }),
      ],
      takenAtMs: 0,
      tellsBusy: true,
      notes: ['A single llama-server can be watched but not unloaded; a router can.'],
      ...(isSingle ? { isSingle: true } : {}),
    }),
  };
  const backend = ownBackend(inner, {
    start,
    nowMs: () => 7,
    supervisor: () => ({
      start: () => {
        now.starts += 1;
      },
      restart: async () => undefined,
      rest: () => {
        now.rests += 1;
        return rest.promise;
      },
      stop: async () => undefined,
      log: () => now.log,
      look: () => ({
        status: now.own,
        pid: null,
        startedAtMs: null,
        nextStartAtMs: null,
        restarts: 0,
        note: now.own === 'waiting' ? 'mine ended by itself.' : null,
        logFile: '',
        lastLines: [],
      }),
    }),
  });
  backend.start(({ model, what }) => now.changes.push(`${model} ${what}`));
  now.starts = 0;
  const model = () => backend.snapshot().models[0];
  return { now, backend, model };
}

it('a server of one model that waits for its use is ended for its memory, and stays listed meanwhile', async () => {
  const { now, backend, model } = bench('use');
  expect(backend.snapshot().notes.join(' ')).toMatch(/given back by ending its server/);
  expect(model()?.isFixed).toBeUndefined();
  expect(await backend.unload('a', SIGNAL)).toEqual(ok(undefined));
  expect(model()).toMatchObject({ name: 'talk', status: 'stopping', busy: null });
  expect(await backend.load('talk', SIGNAL)).toMatchObject({ error: { code: 'model_busy' } });
  now.status = 'down';
  now.own = 'idle';
  now.rest.resolve();
  await new Promise(setImmediate);
  expect(backend.snapshot()).toMatchObject({ status: 'up', error: null });
  expect(model()).toMatchObject({ status: 'unloaded', busy: false, sinceMs: 7 });
  expect(await backend.confirmIdle('talk', SIGNAL)).toEqual({ busy: false });
  expect([await backend.unload('talk', SIGNAL), now.rests]).toEqual([ok(undefined), 1]);

  expect(await backend.load('talk', SIGNAL)).toEqual(ok(undefined));
  expect([await backend.load('talk', SIGNAL), now.starts]).toEqual([ok(undefined), 1]);
  now.own = 'starting';
  expect(model()).toMatchObject({ status: 'loading', busy: null });
  now.own = 'waiting';
  expect(model()).toMatchObject({ status: 'failed', failure: 'mine ended by itself.' });
  now.own = 'running';
  now.status = 'up';
  expect(model()).toMatchObject({ status: 'loaded' });
  expect(now.changes).toEqual(['talk list', 'talk unloaded', 'talk loading']);
});

it.each([
  ['that is to be there at once', bench('now')],
  ['of many models', bench('use', false)],
])('a server %s is not ended for its memory', async (_, { now, backend, model }) => {
  expect(model()?.isFixed).toBe(true);
  expect(await backend.unload('talk', SIGNAL)).toMatchObject({ ok: false });
  expect([now.rests, now.unloads]).toEqual([0, 1]);
});

it('nor is one that is not ours, or another model’s', async () => {
  const { now, backend } = bench('use');
  expect(await backend.unload('other', SIGNAL)).toMatchObject({ ok: false });
  now.own = 'taken';
  expect(await backend.unload('talk', SIGNAL)).toMatchObject({ ok: false });
  expect(now.rests).toBe(0);
});

it('a resting server is woken by a wish for it', async () => {
  const { now, backend, model } = bench('use');
  await backend.unload('talk', SIGNAL);
  now.status = 'down';
  now.own = 'idle';
  now.rest.resolve();
  await new Promise(setImmediate);
  backend.wake?.();
  expect([now.starts, model()?.status]).toEqual([1, 'loading']);
});

it('says by its log why a load failed, and waits a moment for that', () => {
  const { now, backend } = bench('now', false);
  const seen = (sinceMs: number, failure: string) => {
    now.model = { status: 'failed', failure, sinceMs };
    return backend.snapshot().models[0];
  };
  const ended = `The load of talk ended (exit code 1): ${LOG_SAYS}`;
  expect(seen(5, ended)).toMatchObject({ status: 'loading', failure: null });
  const spawned = 'load: spawning server instance with name=talk on port 4000';
  now.log = [spawned, '[4000] 0.1 E cudaMalloc failed: out of memory'];
  const why = /: “cudaMalloc failed: out of memory”; `landlord logs mine` says more\.$/;
  expect(seen(5, ended)).toMatchObject({ status: 'failed', failure: expect.stringMatching(why) });
  now.log = [];
  expect(seen(5, ended)?.failure).toMatch(why);
  const late = seen(-1_000, ended);
  expect(late?.failure).toBe('The load of talk ended (exit code 1): `landlord logs mine` says why.');
  expect(seen(6, 'talk crashed.')).toMatchObject({ status: 'failed', failure: 'talk crashed.' });
});
