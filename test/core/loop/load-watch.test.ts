import { describe, expect, it } from 'vitest';
import type { ProcessMemory } from '../../../electron/core/devices/sample.ts';
import { type DevicePlace, type Forecaster, LoadWatch } from '../../../electron/core/loop/load-watch.ts';
import type { ModelView } from '../../../electron/core/loop/model-view.ts';
import { Models } from '../../../electron/core/loop/models.ts';
import { Sight } from '../../../electron/core/loop/sight.ts';
import type { ProcessIdentity } from '../../../electron/core/process/identity.ts';
import type { ModelStatus } from '../../../shared/state.ts';
import { deviceSample } from '../../support/device-sample.ts';
import { modelView } from '../../support/model-view.ts';

const GB = 1_000_000_000;
const TICK_MS = 500;

const SAMPLE = deviceSample({
  totalBytes: 24 * GB,
  usedBytes: null,
  freeBytes: 20 * GB,
  gttUsedBytes: null,
  periodMs: TICK_MS,
});

const SERVER: ProcessIdentity = {
  pid: 77,
  startTimeTicks: 1,
  command: ['llama-server'],
  port: 41_001,
  parentPid: 1,
  parentStartTimeTicks: 1,
};

function use(pid: number, name: string, bytes: number | null): ProcessMemory {
  return {
    pid,
    startTimeTicks: 1,
    name,
    deviceId: 'sim:0',
    bytes,
    gttBytes: null,
    type: null,
    source: 'drm-fdinfo',
  };
}

interface Moment {
  readonly status: ModelStatus;
  readonly free: number;
  readonly processes?: readonly ProcessMemory[] | null;
  readonly proven?: boolean;
  readonly lastBusyAtMs?: number;
  readonly reported?: number;
  /** GB. */
  readonly predicted?: number;
  readonly ticks?: number;
  /** Of another model on the same device; left out: there is none. */
  readonly beside?: ModelStatus;
}

class SomeModels extends Models {
  list: readonly ModelView[] = [];
  override views(): readonly ModelView[] {
    return this.list;
  }
}

/** Runs one model through moments, each seen for some ticks, and returns what was learned. */
function learned(moments: readonly Moment[]): readonly number[] {
  const figures: number[] = [];
  const forecaster: Forecaster = {
    predict: async () => null,
    footprint: async () => null,
    learn: (_view, bytes) => void figures.push(bytes / GB),
  };
  const watch = new LoadWatch(forecaster, () => undefined);
  const sight = new Sight();
  const models = new SomeModels();
  let nowMs = 0;
  let sinceMs = 0;
  let before: ModelStatus | undefined;
  for (const moment of moments) {
    for (let tick = 0; tick < (moment.ticks ?? 12); tick += 1) {
      nowMs += TICK_MS;
      if (moment.status !== before) sinceMs = nowMs;
      sight.take({
        sequence: nowMs,
        takenAtMs: nowMs,
        devices: [{ ...SAMPLE, takenAtMs: nowMs, freeBytes: moment.free * GB }],
        processes: moment.processes ?? null,
        troubles: [],
      });
      const view: ModelView = modelView({
        status: moment.status,
        measuredBytes: moment.reported === undefined ? null : moment.reported * GB,
        predictedBytes: moment.predicted === undefined ? null : moment.predicted * GB,
        observed: {
          status: moment.status,
          sinceMs,
          busy: false,
          lastBusyAtMs: moment.lastBusyAtMs ?? null,
          reportedBytes: moment.reported === undefined ? null : moment.reported * GB,
          process: moment.proven === true ? SERVER : null,
        },
      });
      const other =
        moment.beside === undefined
          ? []
          : [modelView({ name: 'other', status: moment.beside, observed: { status: moment.beside } })];
      models.list = [view, ...other];
      for (const one of other) watch.look(one, one.status, sight, models, nowMs);
      watch.look(view, before, sight, models, nowMs);
      before = moment.status;
    }
  }
  return figures;
}

const unloaded: Moment = { status: 'unloaded', free: 20, ticks: 2 };
const loading: Moment = { status: 'loading', free: 15, ticks: 4 };

describe('what is learned from a load', () => {
  it('is the driver’s figure for its process, and the most of it', () => {
    const at = (bytes: number): Moment => ({
      status: 'loaded',
      free: 20 - bytes,
      proven: true,
      processes: [use(77, 'llama-server', bytes * GB), use(5, 'firefox', 2 * GB)],
    });
    // 0.1 more is an allocator breathing; half more is a first prompt, and what is given back comes again.
    expect(learned([unloaded, loading, at(10), at(10.1), at(10.5), at(9)])).toEqual([10, 10.5]);
  });

  it('is nothing where the model is not on its card: that would teach that it needs no memory', () => {
    const onlyContext: Moment = {
      status: 'loaded',
      free: 19.7,
      predicted: 18,
      proven: true,
      processes: [use(77, 'llama-server', 0.3 * GB)],
    };
    expect(learned([unloaded, loading, onlyContext])).toEqual([]);
    expect(learned([unloaded, loading, { ...onlyContext, predicted: 0.4 }])).toEqual([0.3]);
  });

  it('is the settled difference of the device where the driver does not tell, desktop left out', () => {
    const firefox = (bytes: number) => [use(5, 'firefox', bytes * GB)];
    expect(
      learned([
        { ...unloaded, processes: firefox(1) },
        { ...loading, processes: firefox(1) },
        { status: 'loaded', free: 9, processes: firefox(2) },
      ]),
    ).toEqual([10]);
    expect(learned([unloaded, loading, { status: 'loaded', free: 10 }])).toEqual([10]);
  });

  it('leaves out a job that was there before and has grown, but not the server itself', () => {
    const seen = (comfy: number, server: number): readonly ProcessMemory[] => [
      use(6, 'python3', comfy * GB),
      use(8, 'ollama', server * GB),
    ];
    expect(
      learned([
        { ...unloaded, processes: seen(1, 0.5) },
        { ...loading, processes: seen(1, 4) },
        { status: 'loaded', free: 8, processes: seen(3, 10.5) },
      ]),
    ).toEqual([10]);
  });

  it('is not what its server claims', () => {
    expect(learned([unloaded, loading, { status: 'loaded', free: 10, reported: 14 }])).toEqual([10]);
  });

  it('is what a first prompt takes too, once it has rested', () => {
    expect(
      learned([
        unloaded,
        loading,
        { status: 'loaded', free: 10 },
        { status: 'loaded', free: 9.5, lastBusyAtMs: 60_000 },
        { status: 'loaded', free: 7, lastBusyAtMs: 60_000, ticks: 20 },
      ]),
    ).toEqual([10, 10.5]);
  });

  it('is nothing of a load that was seen half-way', () => {
    expect(learned([loading, { status: 'loaded', free: 10 }])).toEqual([]);
  });

  it('is nothing where another model ended or came meanwhile, too short to be seen under way', () => {
    const swap = (beside: readonly [ModelStatus, ModelStatus, ModelStatus]): readonly number[] =>
      learned([
        { ...unloaded, beside: beside[0], ticks: 12 },
        { ...loading, beside: beside[1] },
        { status: 'loaded', free: 14, beside: beside[2] },
      ]);
    expect(swap(['loaded', 'loaded', 'loaded'])).toEqual([6]);
    expect(swap(['unloaded', 'unloaded', 'unloaded'])).toEqual([6]);
    expect(swap(['loaded', 'loaded', 'unloaded'])).toEqual([]);
    expect(swap(['loaded', 'unloaded', 'unloaded'])).toEqual([]);
    expect(swap(['unloaded', 'unloaded', 'loaded'])).toEqual([]);
    expect(swap(['loaded', 'loaded', 'sleeping'])).toEqual([]);
  });

  it('is nothing where another model came just before: what was free until then is less by that one', () => {
    const after = (ticks: number): readonly number[] =>
      learned([
        { ...unloaded, beside: 'unloaded', ticks: 12 },
        { ...unloaded, free: 8, beside: 'loaded', ticks },
        { ...loading, free: 5, beside: 'loaded' },
        { status: 'loaded', free: 2, beside: 'loaded' },
      ]);
    expect([1, 2, 3].flatMap(after)).toEqual([]);
    expect(after(4)).toEqual([6]);
  });

  it('begins anew with the next load', () => {
    const at = (free: number): Moment => ({ status: 'loaded', free });
    expect(learned([unloaded, loading, at(10), unloaded, loading, at(12)])).toEqual([10, 8]);
  });
});

describe('a prediction', () => {
  it('that becomes better is asked for anew', async () => {
    let tell: (modelId: string) => void = () => undefined;
    let bytes = 1 * GB;
    let wakes = 0;
    const forecaster: Forecaster = {
      predict: async () => ({ bytes, source: 'estimate' }),
      footprint: async () => null,
      learn: () => undefined,
      onBetter: (listener) => {
        tell = listener;
      },
    };
    const models = new Models();
    const watch = new LoadWatch(forecaster, () => {
      wakes += 1;
    });
    const look = async (): Promise<number | null> => {
      watch.look(modelView({ observed: { modelPath: '/m.gguf' } }), 'unloaded', new Sight(), models, 0);
      await new Promise((resolve) => setImmediate(resolve));
      return models.memo('router/m').predictedBytes;
    };
    expect(await look()).toBe(1 * GB);
    bytes = 2 * GB;
    expect(await look()).toBe(1 * GB);
    tell('router/m');
    expect(await look()).toBe(2 * GB);
    expect(wakes).toBeGreaterThanOrEqual(3);
  });

  it('is asked with the memory of its card, and of all cards of that kind together', async () => {
    const asked: DevicePlace[] = [];
    const forecaster: Forecaster = {
      predict: async (_view, place) => {
        asked.push(place);
        return null;
      },
      footprint: async () => null,
      learn: () => undefined,
    };
    const sight = new Sight();
    const cards = [
      { ...SAMPLE, id: 'a', kind: 'nvidia', totalBytes: 24 * GB },
      { ...SAMPLE, id: 'b', kind: 'nvidia', totalBytes: 16 * GB },
      { ...SAMPLE, id: 'c', kind: 'unified', totalBytes: 30 * GB },
    ] as const;
    sight.take({ sequence: 1, takenAtMs: 0, devices: cards, processes: null, troubles: [] });
    const watch = new LoadWatch(forecaster, () => undefined);
    watch.look(modelView({ deviceId: 'b' }), 'unloaded', sight, new Models(), 0);
    watch.look(modelView({ name: 'x', deviceId: null }), 'unloaded', sight, new Models(), 0);
    expect(asked).toEqual([
      { deviceKind: 'cuda', deviceTotalBytes: 16 * GB, kindTotalBytes: 40 * GB },
      { deviceKind: null, deviceTotalBytes: null, kindTotalBytes: null },
    ]);
  });
});
