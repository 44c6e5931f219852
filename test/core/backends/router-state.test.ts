import { describe, expect, it } from 'vitest';
import type { ListedModel } from '../../../electron/core/backends/models-list.ts';
import {
  NO_MODELS,
  type RouterInput,
  type RouterState,
  reduce,
  type TrackedModel,
} from '../../../electron/core/backends/router-state.ts';

type Status = Extract<RouterInput, { type: 'status' }>;

function listed(change: Partial<ListedModel> = {}): ListedModel {
  return {
    name: 'm',
    aliases: [],
    status: 'unloaded',
    statusText: change.status ?? 'unloaded',
    failed: false,
    exitCode: null,
    args: null,
    port: null,
    modelPath: null,
    contextTokens: null,
    stopTimeoutMs: null,
    tellsMetrics: false,
    ...change,
  };
}

function list(atMs: number, ...models: Partial<ListedModel>[]): RouterInput {
  return { type: 'list', models: models.map(listed), askedAtMs: atMs, atMs };
}

function event(atMs: number, status: Status['status'], change: Partial<Status> = {}): RouterInput {
  return {
    type: 'status',
    model: 'm',
    status,
    statusText: status,
    progress: null,
    contextTokens: null,
    exitCode: null,
    failed: false,
    atMs,
    ...change,
  };
}

/** Plays inputs from nothing; the model `m` at the end, and what was told of it. */
function play(...inputs: RouterInput[]): {
  model: TrackedModel | undefined;
  told: string[];
  state: RouterState;
} {
  let state = NO_MODELS;
  const told: string[] = [];
  for (const input of inputs) {
    const step = reduce(state, input);
    state = step.state;
    told.push(...step.changes.map((change) => change.what));
  }
  return { model: state.get('m'), told, state };
}

const unload = (atMs: number): RouterInput => ({ type: 'unload_asked', model: 'm', atMs });

describe('state from events', () => {
  it('follows a load, sleep, waking and unload', () => {
    const { told, model } = play(
      list(0, {}),
      event(10, 'loading'),
      event(20, 'loading', { progress: 0.5 }),
      event(30, 'loaded', { contextTokens: 4096 }),
      event(40, 'sleeping'),
      event(50, 'loading'),
      event(60, 'loaded'),
      event(70, 'unloaded', { exitCode: 0 }),
    );
    expect(told).toEqual(['list', 'loading', 'list', 'loaded', 'sleeping', 'loading', 'loaded', 'unloaded']);
    expect(model).toMatchObject({ status: 'unloaded', sinceMs: 70, contextTokens: 4096, failure: null });
  });

  it('keeps since when it is in its state through repeated words', () => {
    expect(
      play(event(10, 'loaded'), event(20, 'loaded'), list(30, { status: 'loaded' })).model?.sinceMs,
    ).toBe(10);
  });

  it('a model first seen loaded is told as loaded', () => {
    expect(play(list(0, { status: 'loaded', port: 5 })).told).toEqual(['loaded']);
  });
});

describe('failed means a transition we saw, not a flag', () => {
  it('a preset marked failed that we never saw run is just not loaded', () => {
    const { model, told } = play(
      list(0, { failed: true, exitCode: 10 }),
      list(1, { failed: true, exitCode: 1 }),
    );
    expect(model).toMatchObject({ status: 'unloaded', failure: null });
    expect(told).toEqual(['list']);
  });

  it('an unload that we asked for is none, whatever its exit code', () => {
    const { model } = play(
      event(0, 'loaded'),
      unload(5),
      event(10, 'unloaded', { exitCode: 1, failed: true }),
    );
    expect(model).toMatchObject({ status: 'unloaded', failure: null, unloadAskedAtMs: null });
  });

  it('a clean end that another program asked for is none', () => {
    expect(play(event(0, 'loaded'), event(10, 'unloaded', { exitCode: 0 })).told).toEqual([
      'loaded',
      'unloaded',
    ]);
  });

  it('a loaded model that ends with an exit code crashed, by event or by list', () => {
    for (const end of [event(10, 'unloaded', { exitCode: 1 }), list(10, { failed: true, exitCode: 1 })]) {
      const { model, told } = play(event(0, 'loaded'), end);
      expect(told).toEqual(['loaded', 'crashed']);
      expect(model?.status).toBe('failed');
      expect(model?.failure).toMatch(/without our asking \(exit code 1\)/);
    }
  });

  it('a load that ends badly is a failed load, not a crash, and is forgotten by the next load', () => {
    const failed = [event(0, 'loading'), event(10, 'unloaded', { exitCode: 1 })];
    expect(play(...failed).told).toEqual(['loading', 'load_failed']);
    expect(play(...failed, list(20, { failed: true, exitCode: 1 })).model?.status).toBe('failed');
    expect(play(...failed, event(30, 'loading')).model).toMatchObject({ status: 'loading', failure: null });
  });
});

describe('stopping is ours', () => {
  it('stands from our unload until the model is gone, whatever the router still says', () => {
    const asked = [event(0, 'loaded'), unload(10), list(20, { status: 'loaded' }), event(30, 'sleeping')];
    expect(play(...asked).model).toMatchObject({ status: 'stopping', sinceMs: 10 });
    expect(play(...asked, event(40, 'unloaded', { exitCode: 0 })).model?.status).toBe('unloaded');
  });

  it('of a load stands through its progress, and ends when a new load begins', () => {
    const asked = [event(0, 'loading'), unload(10), event(20, 'loading', { progress: 0.9 })];
    expect(play(...asked).model?.status).toBe('stopping');
    expect(play(...asked, event(30, 'loaded')).model?.status).toBe('stopping');
    expect(play(...asked, event(30, 'loaded'), event(40, 'loading')).model?.status).toBe('loading');
  });

  it('is taken back when the router refuses, or holds on far beyond its stop time-out', () => {
    const refused: RouterInput = { type: 'unload_refused', model: 'm', atMs: 20 };
    expect(play(event(0, 'loaded'), unload(10), refused).model?.status).toBe('loaded');
    const statusAt = (atMs: number) =>
      play(list(0, { status: 'loaded', stopTimeoutMs: 3_000 }), unload(10), { type: 'tick', atMs }).model
        ?.status;
    expect(statusAt(30_000)).toBe('stopping');
    expect(statusAt(34_000)).toBe('loaded');
  });

  it('is not entered by a model that is not there', () => {
    expect(play(list(0, {}), unload(10)).model?.status).toBe('unloaded');
    expect(play(unload(10)).model).toBeUndefined();
  });
});

describe('a load is bounded', () => {
  const tick = (atMs: number): RouterInput => ({ type: 'tick', atMs });

  it('one that does not move for ten minutes has failed, though the router says loading for ever', () => {
    const stuck = [event(0, 'loading'), tick(600_001), list(600_100, { status: 'loading' })];
    const { model } = play(...stuck);
    expect(model?.status).toBe('failed');
    expect(model?.failure).toMatch(/10 minutes without moving/);
    expect(play(...stuck, event(700_000, 'loaded')).model).toMatchObject({ status: 'loaded', failure: null });
  });

  it('one that moves has not', () => {
    const slow = [event(0, 'loading'), event(500_000, 'loading', { progress: 0.4 }), tick(900_000)];
    expect(play(...slow).model?.status).toBe('loading');
  });
});

describe('lists and events that cross', () => {
  it('a list asked before an event does not undo it', () => {
    const crossing: RouterInput = {
      type: 'list',
      models: [listed({ status: 'loaded', port: 9 })],
      askedAtMs: 5,
      atMs: 12,
    };
    const { model } = play(event(0, 'loaded'), event(10, 'unloaded', { exitCode: 0 }), crossing);
    expect(model).toMatchObject({ status: 'unloaded' });
  });

  it('progress that a list has overtaken does not look like a new load', () => {
    const { told } = play(
      event(0, 'loading'),
      list(10, { status: 'loaded', port: 9 }),
      event(11, 'loading', { progress: 1 }),
      event(12, 'loaded'),
    );
    expect(told).toEqual(['loading', 'loaded']);
  });

  it('a model that begins to load just after a list is a new load', () => {
    expect(play(list(0, { status: 'loaded' }), event(10, 'loading')).told).toEqual(['loaded', 'loading']);
  });

  it('a port comes from the list, and goes with the model', () => {
    const loaded = [event(0, 'loading'), list(1, { status: 'loading', port: 41_000 }), event(2, 'loaded')];
    expect(play(...loaded).model?.port).toBe(41_000);
    expect(play(...loaded, event(3, 'unloaded', { exitCode: 0 })).model?.port).toBeNull();
    expect(play(...loaded, list(3, { status: 'loaded', port: 41_007 })).model?.port).toBe(41_007);
  });

  it('models come and go with the list and with their removal', () => {
    expect(play(list(0, {}, { name: 'n' }), list(1, { name: 'n' })).state.size).toBe(1);
    expect(play(list(0, {}), { type: 'removed', model: 'm', atMs: 1 }).model).toBeUndefined();
    const recent = play(event(10, 'loading'), { type: 'list', models: [], askedAtMs: 5, atMs: 15 });
    expect(recent.model?.status).toBe('loading');
  });
});

describe('what is not known', () => {
  it('a word we do not know changes nothing, and a model first met in it counts as loaded', () => {
    const odd = { status: 'unknown', statusText: 'frozen' } as const;
    expect(play(list(0, odd)).model).toMatchObject({ status: 'loaded', oddStatus: 'frozen' });
    expect(play(list(0, {}), list(1, odd)).model).toMatchObject({ status: 'unloaded', oddStatus: 'frozen' });
    expect(play(event(0, 'sleeping'), list(1, odd), list(2, { status: 'sleeping' })).model).toMatchObject({
      status: 'sleeping',
      oddStatus: null,
    });
  });

  it('a router that is gone has no running models, and that is no crash of theirs', () => {
    const { model, told } = play(event(0, 'loaded'), { type: 'gone', atMs: 9 });
    expect(model).toMatchObject({ status: 'unloaded', failure: null, reported: null });
    expect(told).toEqual(['loaded', 'unloaded']);
  });
});
