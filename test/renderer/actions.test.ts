import { describe, expect, it } from 'vitest';
import { createActions } from '../../renderer/actions.ts';
import { type Api, createApi, type Outcome, readOutcome } from '../../renderer/api.ts';

const done: Outcome = { ok: true, message: null };
const refused = (code: string): Outcome => ({
  ok: false,
  code,
  message: `Refused: ${code}.`,
  numbers: { freeBytes: 1 },
});

function recording(answer: (call: string) => Outcome | Promise<Outcome> = () => done): {
  readonly api: Api;
  readonly calls: string[];
} {
  const calls: string[] = [];
  const record = async (...words: readonly unknown[]): Promise<Outcome> => {
    const call = words.join(' ');
    calls.push(call);
    return answer(call);
  };
  return {
    calls,
    api: {
      load: (id, force) => record('load', id, force),
      unload: (id, force) => record('unload', id, force),
      pin: (id, pinned) => record('pin', id, pinned),
      sleep: () => record('sleep'),
      wake: () => record('wake'),
      restore: () => record('restore'),
      accept: (offer) => record('accept', offer),
      guards: (mode, backend) => record('guards', mode, backend),
    },
  };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

describe('actions', () => {
  it('asks before it unloads a busy model, and does nothing until the answer', async () => {
    const { api, calls } = recording();
    const actions = createActions(api);
    actions.act({ id: 'r/a', action: 'unload', asksFirst: true });
    expect(actions.store.getState()).toEqual({ 'r/a': { kind: 'asking' } });
    await settled();
    expect(calls).toEqual([]);
    actions.dismiss('r/a');
    expect(actions.store.getState()).toEqual({});
    actions.act({ id: 'r/a', action: 'unload', asksFirst: false });
    actions.act({ id: 'r/b', action: 'cancel', asksFirst: false });
    actions.act({ id: 'r/c', action: 'load', asksFirst: false });
    expect(calls).toEqual(['unload r/a false', 'unload r/b true', 'load r/c false']);
  });

  it.each([
    ['load', 'vram_denied', 'load'],
    ['load', 'big_models_asleep', 'load'],
    ['load', 'backend_unreachable', null],
    ['unload', 'model_busy', 'unload'],
    ['unload', 'not_permitted', null],
  ] as const)('a %s refused as %s offers %s by force', async (action, code, force) => {
    const { api } = recording(() => refused(code));
    const actions = createActions(api);
    actions.act({ id: 'r/a', action, asksFirst: false });
    expect(actions.store.getState()['r/a']).toMatchObject({ kind: 'pending', what: action });
    await settled();
    expect(actions.store.getState()['r/a']).toEqual({
      kind: 'refused',
      message: `Refused: ${code}.`,
      numbers: { freeBytes: 1 },
      force,
    });
  });

  it('an offer is asked once more before it is taken up', async () => {
    const { api, calls } = recording(() => done);
    const actions = createActions(api);
    actions.offer('drain-kill');
    expect(actions.store.getState()['offer drain-kill']).toEqual({ kind: 'asking' });
    expect(calls).toEqual([]);
    actions.accept('drain-kill');
    await settled();
    expect(calls).toEqual(['accept drain-kill']);
    expect(actions.store.getState()).toEqual({});
  });

  it('takes no cancelled load for a failure, and shows no answer that was overtaken', async () => {
    let answerLoad: (outcome: Outcome) => void = () => {};
    const { api } = recording((call) =>
      call.startsWith('load')
        ? new Promise((resolve) => {
            answerLoad = resolve;
          })
        : done,
    );
    const actions = createActions(api);
    actions.load('r/a', false);
    actions.unload('r/a', true);
    await settled();
    answerLoad(refused('vram_denied'));
    await settled();
    expect(actions.store.getState()).toEqual({});
    const cancelled = createActions(recording(() => refused('cancelled')).api);
    cancelled.load('r/a', false);
    await settled();
    expect(cancelled.store.getState()).toEqual({});
  });
});

describe('api', () => {
  it('posts what the runtime expects, with the id encoded', async () => {
    const sent: { path: string; body: unknown }[] = [];
    const api = createApi(async (path, init) => {
      sent.push({ path: String(path), body: JSON.parse(String(init?.body)) });
      return new Response('{"message":"Done."}', { status: 200 });
    });
    await api.load('router/org/a b', true);
    await api.unload('router/a', false);
    await api.pin('router/a', true);
    await api.pin('router/a', false);
    await api.guards('pause', null);
    await api.guards('on', 'router');
    await api.sleep();
    expect(sent).toEqual([
      { path: '/api/models/router%2Forg%2Fa%20b/load', body: { force: true } },
      { path: '/api/models/router%2Fa/unload', body: { force: false } },
      { path: '/api/models/router%2Fa/pin', body: {} },
      { path: '/api/models/router%2Fa/unpin', body: {} },
      { path: '/api/guards', body: { mode: 'pause', backend: null, for: 1_800_000 } },
      { path: '/api/guards', body: { mode: 'on', backend: 'router' } },
      { path: '/api/sleep', body: {} },
    ]);
  });

  it('reads every answer, also one that is none', async () => {
    expect(readOutcome(true, { message: 'Done.' })).toEqual({ ok: true, message: 'Done.' });
    expect(readOutcome(true, null)).toEqual({ ok: true, message: null });
    expect(
      readOutcome(false, {
        error: { code: 'vram_denied', message: 'No.', numbers: { freeBytes: null, x: 'y' } },
      }),
    ).toEqual({ ok: false, code: 'vram_denied', message: 'No.', numbers: { freeBytes: null } });
    expect(readOutcome(false, '<html>')).toMatchObject({ ok: false, code: 'internal' });
    const dead = createApi(() => Promise.reject(new TypeError('fetch failed')));
    expect(await dead.wake()).toMatchObject({ ok: false, code: 'unreachable' });
    const html = createApi(async () => new Response('<html>', { status: 502 }));
    expect(await html.wake()).toMatchObject({ ok: false, code: 'internal' });
  });
});
