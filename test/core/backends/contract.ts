import { describe, expect, it } from 'vitest';
import type { Backend, ObservedModel } from '../../../electron/core/backends/backend.ts';
import { isQuiet } from '../../../electron/core/guards/view.ts';
import { guardModel } from '../../../electron/core/loop/world.ts';
import { modelView } from '../../support/model-view.ts';
import { until } from '../../support/router.ts';
import type { Reply, StagedModel, StagedServer } from './servers/server.ts';
import { SUBJECTS, type Subject, watch } from './subjects.ts';

/** Registers a test where it applies; elsewhere there is none to leave out. */
const when =
  (applies: boolean) =>
  (name: string, test: () => Promise<void>): void => {
    if (applies) it(name, test);
  };

const SIGNAL = new AbortController().signal;
const LIMIT_MS = 15_000;

const model = (backend: Backend, name = 'qwen'): ObservedModel | undefined =>
  backend.snapshot().models.find((one) => one.name === name);

const seen = (what: string, holds: () => boolean): Promise<void> => until(holds, LIMIT_MS, what);

const isUp = (backend: Backend): Promise<void> =>
  seen('it to be up', () => backend.snapshot().status === 'up');

const has = (backend: Backend, status: string, name = 'qwen'): Promise<void> =>
  seen(`${name} to be ${status}`, () => model(backend, name)?.status === status);

/** All orders of a handful of states, one after the other, each after each. */
function everyOrder<T>(states: readonly T[]): readonly T[] {
  return states.flatMap((one) => states.filter((other) => other !== one).flatMap((other) => [one, other]));
}

/** What every adapter owes, whatever server it is for; each differs only where its server does. */
export function contract(subject: Subject): void {
  const loaded = (change: Partial<StagedModel> = {}): StagedModel => ({
    name: 'qwen',
    state: 'loaded',
    ...change,
  });
  const put = (staged: StagedModel) => (server: StagedServer) => server.put(staged);

  describe(`${subject.title}: states`, () => {
    it('is up with its version, and lists what it has', async () => {
      await using it = await watch(subject, { before: put(loaded({ state: 'unloaded' })) });
      await isUp(it.backend);
      await has(it.backend, 'unloaded');
      expect(it.backend.snapshot()).toMatchObject({
        kind: subject.kind,
        version: subject.version,
        error: null,
      });
      expect(model(it.backend)).toMatchObject({ busy: false, process: null, processNote: null });
    });

    it('shows each state it is told, in every order', async () => {
      const staged = loaded({ state: 'unloaded' });
      await using it = await watch(subject, { before: put(staged) });
      await has(it.backend, 'unloaded');
      const words = Object.entries(subject.states).filter(([state]) => state !== 'odd');
      for (const [state, status] of everyOrder(words)) {
        staged.state = STATE_OF[state] ?? 'unloaded';
        await has(it.backend, status);
        const { busy, failure } = model(it.backend) ?? {};
        expect({ state, failure }).toEqual({ state, failure: null });
        if (status !== 'loaded')
          expect(busy).toBe(status === 'unloaded' || status === 'sleeping' ? false : null);
      }
      expect(it.changes.map((change) => change.what)).toEqual(
        expect.arrayContaining(['loaded', 'unloaded', 'up']),
      );
    });

    when(subject.states.odd !== undefined)(
      'holds one in a state it does not know for loaded, not known to be idle, and says why',
      async () => {
        await using it = await watch(subject, { before: put(loaded({ state: 'odd' })) });
        await has(it.backend, 'loaded');
        expect(model(it.backend)).toMatchObject({ busy: null });
        expect(model(it.backend)?.processNote).toMatch(/state of qwen is one this version does not know/);
        expect(it.backend.snapshot().notes.join(' ')).toMatch(/hibernating/);
        expect(await it.backend.confirmIdle('qwen', SIGNAL)).toMatchObject({ busy: null });
      },
    );

    it('forgets a model that its server no longer lists', async () => {
      await using it = await watch(subject, { before: put(loaded()) });
      await has(it.backend, 'loaded');
      it.server.put({ name: 'other', state: 'loaded' });
      await has(it.backend, 'loaded', 'other');
      await seen('qwen to be gone', () => ['unloaded', undefined].includes(model(it.backend)?.status));
    });
  });

  describe(`${subject.title}: busy`, () => {
    when(subject.tellsBusy)('is busy while it is told so, and idle from the end of its request', async () => {
      const staged = loaded({ busy: true });
      await using it = await watch(subject, { before: put(staged) });
      await has(it.backend, 'loaded');
      const tell = async (busy: boolean): Promise<void> => {
        staged.busy = busy;
        if (subject.tellBusy !== undefined) await seen('the stream', () => it.server.streams() > 0);
        subject.tellBusy?.(it.server, staged);
      };
      await tell(true);
      await seen('busy', () => model(it.backend)?.busy === true);
      expect(await it.backend.confirmIdle('qwen', SIGNAL)).toMatchObject({ busy: true });
      const endsAtMs = performanceMs();
      await tell(false);
      await seen('idle', () => model(it.backend)?.busy === false);
      // Idle time runs from the end of a request, not from its start.
      expect(model(it.backend)?.lastBusyAtMs).toBeGreaterThan(endsAtMs - 1_000);
      expect(await it.backend.confirmIdle('qwen', SIGNAL)).toEqual({ busy: false });
    });

    when(!subject.tellsBusy)('does not know, says so, and that counts as busy for every guard', async () => {
      await using it = await watch(subject, { before: put(loaded()) });
      await has(it.backend, 'loaded');
      const observed = model(it.backend);
      expect(observed?.busy).toBeNull();
      expect(it.backend.snapshot().tellsBusy).toBe(false);
      expect(it.backend.snapshot().notes.join(' ')).toMatch(/does not tell whether a model works/);
      expect(await it.backend.confirmIdle('qwen', SIGNAL)).toMatchObject({
        busy: null,
        why: expect.stringMatching(/does not tell whether qwen works/),
      });
      expect(isQuiet(guardModel(modelView({ observed: { busy: observed?.busy ?? null } })))).toBe(false);
    });
  });

  describe(`${subject.title}: loading and unloading`, () => {
    when(subject.canLoad)(
      'asks once for each model, resolves when it is accepted, and shows it on its way',
      async () => {
        const gate = Promise.withResolvers<void>();
        await using it = await watch(subject, { before: put(loaded({ state: 'unloaded' })) });
        await has(it.backend, 'unloaded');
        it.server.stage.holds.load = gate.promise;
        const before = it.server.asked.length;
        const both = await Promise.all([it.backend.load('qwen', SIGNAL), it.backend.load('qwen', SIGNAL)]);
        expect(both).toEqual([
          { ok: true, value: undefined },
          { ok: true, value: undefined },
        ]);
        await has(it.backend, 'loading');
        const loads = it.server.asked.slice(before).filter((asked) => !subject.isPassive(asked));
        expect(loads).toHaveLength(1);
        gate.resolve();
        await has(it.backend, 'loaded');
        expect(await it.backend.load('qwen', SIGNAL)).toMatchObject({ ok: true });
      },
    );

    when(subject.canLoad)("says a refused load in the server's own words", async () => {
      await using it = await watch(subject, {
        before: put(loaded({ state: 'unloaded' })),
        // On a busy machine the refusal may take its time.
        timings: { acceptMs: 10_000 },
      });
      await has(it.backend, 'unloaded');
      it.server.stage.refuses = 'the file is not there';
      const refused = await it.backend.load('qwen', SIGNAL);
      expect(refused).toMatchObject({
        ok: false,
        error: { message: expect.stringMatching(/file is not there/) },
      });
      await seen('it not to be on its way', () => model(it.backend)?.status !== 'loading');
    });

    when(subject.canUnload)(
      'is on its way out from the unload on, and gone when its server says so',
      async () => {
        const gate = Promise.withResolvers<void>();
        await using it = await watch(subject, { before: put(loaded()) });
        await has(it.backend, 'loaded');
        it.server.stage.holds.unload = gate.promise;
        expect(await it.backend.unload('qwen', SIGNAL)).toMatchObject({ ok: true });
        await has(it.backend, 'stopping');
        // The call has returned long before: only the list says that it is gone (rule 11).
        expect(model(it.backend)?.status).toBe('stopping');
        gate.resolve();
        await has(it.backend, 'unloaded');
        expect(it.changes.some((change) => change.what === 'crashed')).toBe(false);
      },
    );

    when(!subject.canLoad)('says that it can neither load nor unload, and what to do', async () => {
      await using it = await watch(subject, { before: put(loaded()) });
      await has(it.backend, 'loaded');
      // No guard counts on what it would free.
      expect(model(it.backend)?.isFixed).toBe(true);
      const refusal = {
        ok: false,
        error: { code: 'not_supported', message: expect.stringMatching(/lms unload/) },
      };
      expect(await it.backend.unload('qwen', SIGNAL)).toMatchObject(refusal);
      await has(it.backend, 'loaded');
      it.server.put(loaded({ state: 'unloaded' }));
      await has(it.backend, 'unloaded');
      expect(await it.backend.load('qwen', SIGNAL)).toMatchObject(refusal);
      await has(it.backend, 'unloaded');
    });

    when(subject.canUnload)('reaches a model whatever its name holds', async () => {
      const name = 'maker/Mödel v1.2:Q4_K?#&=%"';
      await using it = await watch(subject, { before: put({ name, state: 'loaded' }) });
      await has(it.backend, 'loaded', name);
      expect(await it.backend.unload(name, SIGNAL)).toMatchObject({ ok: true });
      await has(it.backend, 'unloaded', name);
    });

    it('knows no model that is not there', async () => {
      await using it = await watch(subject, { before: put(loaded()) });
      await has(it.backend, 'loaded');
      for (const what of ['load', 'unload'] as const) {
        const answer = await it.backend[what]('nobody', SIGNAL);
        expect(answer.ok ? 'ok' : answer.error.code).toMatch(/unknown_model/);
      }
      expect(await it.backend.confirmIdle('nobody', SIGNAL)).toMatchObject({ busy: null });
    });
  });

  describe(`${subject.title}: a server in trouble`, () => {
    it('gone and back: down with a sentence, its models not there, and all as before when it is back', async () => {
      await using it = await watch(subject, { before: put(loaded()) });
      await has(it.backend, 'loaded');
      await it.server.down();
      await seen('it to be down', () => it.backend.snapshot().status === 'down');
      expect(it.backend.snapshot().error).toMatch(/Nothing listens at/);
      await seen('its models to be gone', () => model(it.backend)?.status !== 'loaded');
      await it.server.up();
      await isUp(it.backend);
      await has(it.backend, 'loaded');
      expect(it.changes.map((change) => change.what)).toEqual(expect.arrayContaining(['up', 'down']));
    });

    it.each<[string, Reply, RegExp]>([
      ['nothing', { body: '' }, /answers with nothing/],
      ['a page', { body: '<!doctype html><title>x</title>' }, /web page/],
      ['half a body', { body: '{"models":[{"na' }, /not JSON/],
      ['null', { body: 'null' }, /does not answer as|not JSON|holds no list/],
      ['a list of something', { body: '[1,2,3]' }, /does not answer as|holds no list/],
      ['an empty object', { body: {} }, /does not answer as|holds no list/],
      ['its lists as something else', { body: { models: {}, data: 3, running: 'x' } }, /does not answer as/],
      ['an error', { status: 500, body: { error: { message: 'out of ideas' } } }, /out of ideas/],
      ['a demand for a key', { status: 401, body: { error: 'no' } }, /apiKeyEnv/],
      ['another address', { status: 302, body: '' }, /sends its callers elsewhere/],
      ['too much', { body: 'x'.repeat(9 * 1024 * 1024) }, /more than/],
    ])(
      'answers with %s: not up, with a sentence that says what to do, and back when it is right',
      async (_, reply, said) => {
        await using it = await watch(subject, { before: put(loaded()) });
        await has(it.backend, 'loaded');
        it.server.instead = () => reply;
        await seen(`“${said.source}”`, () => said.test(it.backend.snapshot().error ?? ''));
        expect(it.backend.snapshot().status).not.toBe('up');
        it.server.instead = null;
        await isUp(it.backend);
        await has(it.backend, 'loaded');
      },
    );

    it('never follows to another address, with a key or without', async () => {
      await using it = await watch(subject, { apiKey: 'k', before: put(loaded()) });
      await has(it.backend, 'loaded');
      it.server.instead = () => ({ status: 307, body: '' });
      await seen('the redirect', () => /elsewhere/.test(it.backend.snapshot().error ?? ''));
      expect(it.server.asked.some((asked) => asked.path === '/elsewhere')).toBe(false);
    });

    it('never answers: unknown, with the time it was given, and back when it does', async () => {
      await using it = await watch(subject, { before: put(loaded()), timings: { requestTimeoutMs: 150 } });
      await has(it.backend, 'loaded');
      it.server.instead = () => 'hang';
      await seen('the time-out', () => /within 150 ms/.test(it.backend.snapshot().error ?? ''));
      expect(it.backend.snapshot().status).toBe('unknown');
      it.server.instead = null;
      await isUp(it.backend);
    });

    it('entries that are none, doubles and fields of a version to come do no harm', async () => {
      await using it = await watch(subject, { before: put(loaded()) });
      await has(it.backend, 'loaded');
      const { script } = subject;
      const { stage } = it.server;
      const rubbish = [null, 3, 'x', [], {}, { id: 7, name: 7, model: 7, key: 7, model_name: 7 }];
      const original = await script(stage, {
        method: 'GET',
        path: subject.list,
        body: null,
        authorization: null,
      });
      const list = typeof original === 'object' ? original.body : {};
      it.server.instead = (asked) => {
        if (asked.path !== subject.list) return INTRODUCTIONS[asked.path] ?? subject.notFound;
        return { body: crowded(list, rubbish) };
      };
      await it.backend.refresh();
      await it.backend.refresh();
      expect(it.backend.snapshot().status).toBe('up');
      expect(it.backend.snapshot().models.filter((one) => one.status === 'loaded')).toHaveLength(1);
    });

    it('reads thousands of models', async () => {
      const many = Array.from(
        { length: 3_000 },
        (_, index): StagedModel => ({
          name: `m${index}`,
          state: index % 50 === 0 ? 'loaded' : 'unloaded',
        }),
      );
      await using it = await watch(subject, {
        before: (server) => server.put(...many),
        timings: { requestTimeoutMs: 10_000, tickMs: 500, pollMs: 200 },
      });
      await seen('all of them', () => it.backend.snapshot().models.length === 3_000);
      expect(it.backend.snapshot().models.filter((one) => one.status === 'loaded')).toHaveLength(60);
    });
  });

  describe(`${subject.title}: who it is`, () => {
    it('is proven by what it answers: every other kind of server at its port is told as one', async () => {
      const others = SUBJECTS.filter((other) => other.kind !== subject.kind);
      for (const other of others) {
        await using it = await watch({ ...subject, script: other.script, notFound: other.notFound });
        await seen(`${other.title} not to pass for it`, () => it.backend.snapshot().error !== null);
        expect(it.backend.snapshot().status).not.toBe('up');
        expect(it.backend.snapshot().models).toEqual([]);
      }
    });

    it('sends the key it is given with every request, and none without', async () => {
      await using keyed = await watch(subject, { apiKey: 'secret', before: put(loaded()) });
      await has(keyed.backend, 'loaded');
      expect(new Set(keyed.server.asked.map((asked) => asked.authorization))).toEqual(
        new Set(['Bearer secret']),
      );
      await using bare = await watch(subject, { before: put(loaded()) });
      await has(bare.backend, 'loaded');
      expect(new Set(bare.server.asked.map((asked) => asked.authorization))).toEqual(new Set([null]));
    });
  });

  describe(`${subject.title}: rule 12, watching changes nothing`, () => {
    it('asks in hundreds of readings only for what loads, wakes and prolongs nothing', async () => {
      const states = Object.keys(subject.states).map((state) => STATE_OF[state] ?? 'unloaded');
      await using it = await watch(subject, {
        before: (server) => server.put(...states.map((state) => ({ name: `m-${state}`, state }))),
        timings: { pollMs: 1, tickMs: 1 },
      });
      await isUp(it.backend);
      await seen('hundreds of readings', () => it.server.asked.length > 300);
      expect(it.server.asked.filter((asked) => !subject.isPassive(asked))).toEqual([]);
      const touched = it.server.asked.filter((asked) => /m-(unloaded|sleeping|loading)/.test(asked.path));
      expect(touched).toEqual([]);
    });
  });
}

const STATE_OF: Readonly<Record<string, StagedModel['state']>> = {
  unloaded: 'unloaded',
  loading: 'loading',
  loaded: 'loaded',
  sleeping: 'sleeping',
  stopping: 'stopping',
  odd: 'odd',
};

const INTRODUCTIONS: Readonly<Record<string, Reply>> = {
  '/props': { body: { role: 'router', build_info: 'b11669-test' } },
  '/api/version': { body: { version: '9' } },
  '/models/sse': 'stream',
};

/** Every list in a body with rubbish around what was in it, twice, and a field nobody knows in each entry. */
function crowded(body: unknown, rubbish: readonly unknown[]): unknown {
  if (typeof body !== 'object' || body === null) return body;
  return Object.fromEntries(
    Object.entries(body).map(([key, value]) => [
      key,
      Array.isArray(value)
        ? [
            ...rubbish,
            ...[...value, ...value].map((entry) => ({ ...entry, of_a_version_to_come: { x: [1] } })),
            ...rubbish,
          ]
        : value,
    ]),
  );
}

function performanceMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1000;
}
