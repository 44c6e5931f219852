import { describe, expect, it } from 'vitest';
import { bridgeOf, createIpcApi, createIpcWorld, onRuntimeBack } from '../../renderer/ipc-api.ts';
import { createReplica } from '../../renderer/store.ts';
import { fail, ok } from '../../shared/errors.ts';
import { makeBridge } from '../../shared/ipc-bridge.ts';
import { callChannel, type LinkState, pushChannel } from '../../shared/ipc-schema.ts';
import { sampleState } from '../support/fake-runtime.ts';

/** A main process of a test's own: what it was asked, its answers, and its pushes. */
function desk(): {
  readonly bridge: ReturnType<typeof makeBridge>;
  readonly asked: [string, unknown][];
  answer: (channel: string) => unknown;
  push(name: 'state' | 'link', value: unknown): void;
  listeners(): number;
} {
  const listeners = new Map<string, Set<(text: unknown) => void>>();
  const asked: [string, unknown][] = [];
  const there: ReturnType<typeof desk> = {
    asked,
    answer: () => ok({ message: 'Done.' }),
    bridge: makeBridge({
      invoke: async (channel, args) => {
        asked.push([channel, args]);
        return there.answer(channel);
      },
      listen(channel, listener) {
        const set = listeners.get(channel) ?? new Set();
        listeners.set(channel, set.add(listener));
        return () => void set.delete(listener);
      },
    }),
    push: (name, value) => {
      for (const listener of [...(listeners.get(pushChannel(name)) ?? [])]) listener(JSON.stringify(value));
    },
    listeners: () => [...listeners.values()].reduce((sum, set) => sum + set.size, 0),
  };
  return there;
}

const quiet = { now: () => 0, after: () => () => {} };
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
const link = (kind: LinkState['kind']): LinkState => ({ kind, message: kind });

describe('page in the desktop app', () => {
  it('uses the app’s calls where they are there, and HTTP elsewhere', () => {
    const { bridge } = desk();
    expect(bridgeOf({ landlord: bridge })).toBe(bridge);
    for (const page of [{}, { landlord: null }, { landlord: 'x' }, { landlord: {} }])
      expect(bridgeOf(page)).toBe(null);
  });

  it('asks for the same things as over HTTP', async () => {
    const there = desk();
    const api = createIpcApi(there.bridge);
    expect(await api.load('router/a', true)).toEqual({ ok: true, message: 'Done.' });
    await api.unload('router/a', false);
    await api.pin('router/a', true);
    await api.pin('router/a', false);
    await api.sleep();
    await api.wake();
    await api.restore();
    await api.guards('pause', null);
    await api.guards('on', 'router');
    await api.host();
    expect(there.asked).toEqual([
      [callChannel('load'), { model: 'router/a', force: true }],
      [callChannel('unload'), { model: 'router/a', force: false }],
      [callChannel('pin'), { model: 'router/a' }],
      [callChannel('unpin'), { model: 'router/a' }],
      [callChannel('sleep'), { forMs: null }],
      [callChannel('wake'), {}],
      [callChannel('restore'), {}],
      [callChannel('guards'), { mode: 'pause', backend: null, forMs: 1_800_000 }],
      [callChannel('guards'), { mode: 'on', backend: 'router', forMs: null }],
      [callChannel('host'), {}],
    ]);
  });

  it('hands on a refusal with its code and figures, and says when the app does not answer', async () => {
    const there = desk();
    const api = createIpcApi(there.bridge);
    there.answer = () => fail('vram_denied', 'It does not fit.', { needBytes: 1, freeBytes: null });
    expect(await api.load('router/a', false)).toEqual({
      ok: false,
      code: 'vram_denied',
      message: 'It does not fit.',
      numbers: { needBytes: 1, freeBytes: null },
    });
    there.answer = () => {
      throw new Error('gone');
    };
    expect(await api.wake()).toMatchObject({ ok: false, code: 'unreachable' });
  });

  it('keeps the same replica as over HTTP: live, lost with its runtime, live again once there is one', async () => {
    const there = desk();
    there.answer = (channel) => ok(channel === callChannel('events') ? [] : null);
    const replica = createReplica(createIpcWorld(there.bridge, quiet));
    const kind = (): string => replica.store.getState().connection.kind;
    const undo = onRuntimeBack(there.bridge, () => replica.retryNow());
    replica.start();
    expect(there.asked[0]).toEqual([callChannel('watch'), {}]);
    there.push('state', sampleState());
    there.push('link', link('attached'));
    expect(kind()).toBe('live');
    expect(there.asked.filter(([channel]) => channel === callChannel('watch'))).toHaveLength(1);

    there.push('link', link('lost'));
    expect(kind()).toBe('lost');
    expect(replica.store.getState().state).not.toBe(null);
    // Nobody watches now: a late state is not taken for a new one.
    there.push('state', { ...sampleState(), revision: 9 });
    expect(kind()).toBe('lost');

    there.push('link', link('own'));
    await settled();
    expect(there.asked.filter(([channel]) => channel === callChannel('watch'))).toHaveLength(2);
    there.push('state', { ...sampleState(), revision: 1 });
    expect(kind()).toBe('live');
    replica.stop();
    undo();
    expect(there.listeners()).toBe(0);
  });

  it('shows a watch that is refused as a broken stream', async () => {
    const there = desk();
    there.answer = () => fail('not_permitted', 'Not from here.');
    const replica = createReplica(createIpcWorld(there.bridge, quiet));
    replica.start();
    await settled();
    expect(replica.store.getState().connection.kind).toBe('locked');
    replica.stop();
  });
});
