import { describe, expect, it } from 'vitest';
import type { Operation } from '../../../electron/core/actuators/operation.ts';
import type { BackendSnapshot } from '../../../electron/core/backends/backend.ts';
import { eventOf, gaveNothing } from '../../../electron/core/loop/outcome-events.ts';
import { backendNews, modelEvents, toldModel } from '../../../electron/core/loop/status-events.ts';
import { NO_WISHES, parseWishes } from '../../../electron/core/loop/wishes.ts';
import { modelView } from '../../support/model-view.ts';

const GB = 1_000_000_000;

function operation(change: Partial<Operation> = {}): Operation {
  return {
    modelId: 'router/vision-8b',
    deviceId: 'sim:0',
    cause: 'race',
    reason: 'Unloading vision-8b: qwen-27b is loading and needs 12.5 GB, 6.9 GB is free.',
    numbers: { neededBytes: 12.5 * GB },
    forModelId: 'router/qwen-27b',
    startedAtMs: 0,
    freeBeforeBytes: 6.9 * GB,
    heldBytes: 6.2 * GB,
    phase: 'settling',
    requestedAtMs: 100,
    armed: null,
    signalable: null,
    signalNote: null,
    killedAtMs: null,
    goneAtMs: 1_200,
    lastFreeBytes: null,
    lastSampleAtMs: null,
    steadySamples: 0,
    disturbed: false,
    stuckTold: false,
    ...change,
  };
}

describe('what an eviction leaves behind (rule 21)', () => {
  it('is one sentence in the past tense with what came back', () => {
    const event = eventOf({
      type: 'left',
      operation: operation(),
      freedBytes: 6.2 * GB,
      tookMs: 1_100,
      killed: false,
    });
    expect(event).toMatchObject({
      kind: 'evicted',
      model: 'router/vision-8b',
      backend: 'router',
      deviceId: 'sim:0',
    });
    expect(event?.reason).toBe(
      'Unloaded vision-8b: qwen-27b is loading and needs 12.5 GB, 6.9 GB was free. 6.2 GB came back in 1.1 s.',
    );
    expect(event?.numbers).toMatchObject({ neededBytes: 12.5 * GB, freedBytes: 6.2 * GB, tookMs: 1_100 });
  });

  it('says that a process was ended, and that what came back is not known where it is not', () => {
    const killed = eventOf({
      type: 'left',
      operation: operation({ killedAtMs: 1_100 }),
      freedBytes: null,
      tookMs: 1_100,
      killed: true,
    });
    expect(killed?.kind).toBe('killed');
    expect(killed?.reason).toContain('its process was ended');
    expect(killed?.reason).toContain("how much came back can't be told");
    expect(killed?.numbers.freedBytes).toBeNull();
  });

  it('is an unload, not an eviction, where a person asked', () => {
    const outcome = {
      type: 'left',
      operation: operation({ cause: 'person', reason: 'Unloaded router/vision-8b, as you asked.' }),
      freedBytes: GB,
      tookMs: 50,
      killed: false,
    } as const;
    expect(eventOf(outcome)?.kind).toBe('unloaded');
  });

  it('is nothing where the model turned out busy', () => {
    expect(eventOf({ type: 'busy', operation: operation(), detail: 'slot 0 generates' })).toBeNull();
  });

  it('names why it can not be signalled where it is stuck', () => {
    const event = eventOf({
      type: 'stuck',
      operation: operation({ signalNote: 'Set `stop-timeout`.' }),
      waitedMs: 31_000,
    });
    expect(event?.kind).toBe('eviction_failed');
    expect(event?.reason).toContain('still there after 31 s');
    expect(event?.reason).toContain('stop-timeout');
  });

  it('gave nothing below 64 MiB, and unknown is not nothing', () => {
    const left = (freedBytes: number | null) =>
      gaveNothing({ type: 'left', operation: operation(), freedBytes, tookMs: 1, killed: false });
    expect(left(0)).toBe(true);
    expect(left(64 * 1024 * 1024)).toBe(false);
    expect(left(null)).toBe(false);
  });
});

describe('what a changed status tells', () => {
  const kinds = (from: Parameters<typeof modelEvents>[0], view: ReturnType<typeof modelView>) =>
    modelEvents(from, view, 5_000).map((event) => event.kind);
  const was = (status: 'unloaded' | 'loading' | 'loaded' | 'sleeping' | 'stopping') => ({
    status,
    sinceMs: 1_000,
    contextTokens: null,
  });

  it('is nothing at the first look: what was so before is no news', () => {
    expect(kinds(undefined, modelView({ status: 'loaded' }))).toEqual([]);
  });

  it.each([
    ['unloaded', 'loading', ['loading']],
    ['loading', 'loaded', ['loaded']],
    ['sleeping', 'loaded', []],
    ['loaded', 'sleeping', []],
    ['loading', 'failed', ['load_failed']],
    ['loaded', 'failed', ['model_crashed']],
    ['loaded', 'unloaded', ['unloaded']],
    ['stopping', 'unloaded', []],
    ['loaded', 'loaded', []],
  ] as const)('from %s to %s: %j', (from, to, expected) => {
    expect(kinds(was(from), modelView({ status: to }))).toEqual(expected);
  });

  it('is a context that a client has changed, whether its server was seen loading or not', () => {
    const loaded = (tokens: number | null) =>
      modelView({
        status: 'loaded',
        observed: { args: tokens === null ? null : ['ollama', '--ctx-size', String(tokens)] },
      });
    const small = toldModel(undefined, loaded(4096), 1_000);
    expect(modelEvents(small, loaded(4096), 2_000)).toEqual([]);
    expect(modelEvents(small, loaded(32_768), 2_000)).toMatchObject([
      { kind: 'context_changed', numbers: { contextTokens: 32_768, contextBeforeTokens: 4096 } },
    ]);
    const between = toldModel(small, modelView({ status: 'loading' }), 3_000);
    expect(kinds(between, loaded(32_768))).toEqual(['context_changed', 'loaded']);
    // What is not told has not changed, and what was told once is not told again.
    expect(modelEvents(small, loaded(null), 2_000)).toEqual([]);
    const told = toldModel(small, loaded(32_768), 2_000);
    expect(modelEvents(told, loaded(32_768), 3_000)).toEqual([]);
    expect(toldModel(told, loaded(32_768), 3_000)).toBe(told);
  });

  it('gives a backend away and back again once each', () => {
    const snapshot = (status: 'up' | 'down' | 'unknown') => ({
      name: 'router',
      kind: 'llama.cpp' as const,
      url: 'http://127.0.0.1:8080',
      status,
      sinceMs: null,
      error: null,
      version: null,
      models: [],
      takenAtMs: 0,
      tellsBusy: true,
      notes: [],
    });
    expect(backendNews(undefined, snapshot('unknown'), false).events).toEqual([]);
    expect(backendNews('unknown', snapshot('up'), false).events[0]?.kind).toBe('backend_up');
    const engine = { ...snapshot('up'), name: 'embedded', kind: 'embedded' } as const;
    expect(backendNews('unknown', engine, false).events[0]?.reason).toMatch(
      /^The built-in engine has \d models?\.$/,
    );
    expect(backendNews('unknown', snapshot('up'), true).events[0]?.kind).toBe('backend_found');
    expect(backendNews('up', snapshot('up'), true).events).toEqual([]);
    expect(backendNews('up', snapshot('down'), true).events[0]?.kind).toBe('backend_down');
    expect(backendNews('down', snapshot('up'), true).events[0]?.kind).toBe('backend_up');
  });

  it('calls no server of ours lost before it has answered once, and each that ends by itself', () => {
    const own = (status: NonNullable<BackendSnapshot['own']>['status']): BackendSnapshot => ({
      name: 'router',
      kind: 'llama.cpp',
      url: 'http://127.0.0.1:8080',
      status: 'down',
      sinceMs: null,
      error: null,
      version: null,
      models: [],
      takenAtMs: 0,
      tellsBusy: true,
      notes: [],
      own: {
        status,
        pid: null,
        startedAtMs: null,
        nextStartAtMs: null,
        restarts: 0,
        note: null,
        logFile: '/logs/router.log',
        lastLines: [],
      },
    });
    let told: BackendSnapshot['status'] | undefined;
    const kinds: (string | undefined)[] = [];
    const goes: readonly (readonly [Parameters<typeof own>[0], BackendSnapshot['status']])[] = [
      ['idle', 'unknown'],
      ['idle', 'down'],
      ['starting', 'down'],
      ['running', 'down'],
      ['running', 'up'],
      ['waiting', 'down'],
      ['starting', 'down'],
      ['running', 'up'],
    ];
    for (const [process, status] of goes) {
      const snapshot = { ...own(process), status };
      const { events, status: next } = backendNews(told, snapshot, false);
      kinds.push(events[0]?.kind);
      told = next;
    }
    expect(kinds).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      'backend_up',
      'backend_down',
      undefined,
      'backend_up',
    ]);
    expect(backendNews('unknown', own('waiting'), false).events[0]?.kind).toBe('backend_down');
  });
});

describe('wishes that an earlier run kept', () => {
  it('are read back as they were', () => {
    const wishes = {
      pins: { 'router/a': true, 'router/b': false },
      sleep: { sinceMs: 5, untilMs: null },
      guards: { mode: 'observe', pausedUntilMs: 9, perBackend: { router: 'on' } },
      restorable: ['router/c'],
      loadAnyway: ['router/d'],
    };
    expect(parseWishes(JSON.parse(JSON.stringify(wishes)))).toEqual(wishes);
  });

  it.each([[null], ['text'], [[]], [{ pins: 'x', sleep: 7, guards: { mode: 'maybe' }, restorable: [1] }]])(
    'are none where %j stands there',
    (value) => {
      expect(parseWishes(value)).toEqual(NO_WISHES);
    },
  );
});

it('a failure that is a sentence about the model already is not said twice', () => {
  const failed = (failure: string | null) =>
    modelEvents(
      { status: 'loaded', sinceMs: 0, contextTokens: null },
      modelView({ name: 'vision-8b', status: 'failed', observed: { failure } }),
      1,
    )[0]?.reason;
  expect(failed('vision-8b ended without our asking (exit code 1)')).toBe(
    'vision-8b ended without our asking (exit code 1).',
  );
  expect(failed('the disk is gone.')).toBe('vision-8b ended by itself: the disk is gone.');
  expect(failed(null)).toBe('vision-8b ended by itself.');
});
