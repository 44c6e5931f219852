import { describe, expect, it } from 'vitest';
import type { ProcessMemory } from '../../../electron/core/devices/sample.ts';
import type { Booking } from '../../../electron/core/ledger/booking.ts';
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
  /** It is looked at after the measured one. */
  readonly besideComesAfter?: boolean;
  /** Its server does not answer: the measured model is not listed. */
  readonly isOutOfSight?: boolean;
  readonly deviceId?: string;
  readonly args?: readonly string[];
  /** No reading comes. */
  readonly isBlind?: boolean;
  readonly bookings?: readonly Booking[];
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
  let bookings: readonly Booking[] = [];
  const watch = new LoadWatch(
    forecaster,
    () => undefined,
    () => bookings,
  );
  const sight = new Sight();
  const models = new SomeModels();
  let nowMs = 0;
  let sinceMs = 0;
  let before: ModelStatus | undefined;
  for (const moment of moments) {
    for (let tick = 0; tick < (moment.ticks ?? 12); tick += 1) {
      nowMs += TICK_MS;
      if (moment.status !== before) sinceMs = nowMs;
      bookings = moment.bookings ?? [];
      if (moment.isBlind !== true)
        sight.take({
          sequence: nowMs,
          takenAtMs: nowMs,
          devices: ['sim:0', 'sim:1'].map((id) => ({
            ...SAMPLE,
            id,
            takenAtMs: nowMs,
            freeBytes: moment.free * GB,
          })),
          processes: moment.processes ?? null,
          troubles: [],
        });
      const view: ModelView = modelView({
        status: moment.status,
        deviceId: moment.deviceId ?? 'sim:0',
        measuredBytes: moment.reported === undefined ? null : moment.reported * GB,
        predictedBytes: moment.predicted === undefined ? null : moment.predicted * GB,
        observed: {
          status: moment.status,
          sinceMs,
          busy: false,
          lastBusyAtMs: moment.lastBusyAtMs ?? null,
          reportedBytes: moment.reported === undefined ? null : moment.reported * GB,
          process: moment.proven === true ? SERVER : null,
          args: moment.args ?? null,
        },
      });
      const other =
        moment.beside === undefined
          ? []
          : [modelView({ name: 'other', status: moment.beside, observed: { status: moment.beside } })];
      const look = (): void => {
        for (const one of other) watch.look(one, one.status, sight, models, nowMs);
      };
      models.list = [...(moment.isOutOfSight === true ? [] : [view]), ...other];
      if (moment.besideComesAfter !== true) look();
      if (moment.isOutOfSight !== true) watch.look(view, before, sight, models, nowMs);
      if (moment.besideComesAfter === true) look();
      before = moment.isOutOfSight === true ? undefined : moment.status;
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

  it('is not the part that a driver tells, where it names the process once more without its bytes (rule 5)', () => {
    const part: Moment = {
      status: 'loaded',
      free: 10,
      proven: true,
      processes: [use(77, 'llama-server', 4 * GB), use(77, 'llama-server', null)],
    };
    expect(learned([unloaded, loading, part])).toEqual([10]);
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

  it('is nothing where another model came or left in the very step in which the load was seen, in whatever order', () => {
    const swap = (from: ModelStatus, to: ModelStatus, besideComesAfter: boolean): readonly number[] =>
      learned([
        { ...unloaded, beside: from, besideComesAfter, ticks: 12 },
        { ...loading, beside: to, besideComesAfter },
        { status: 'loaded', free: 14, beside: to, besideComesAfter },
      ]);
    for (const after of [false, true]) {
      expect(swap('loaded', 'unloaded', after)).toEqual([]);
      expect(swap('unloaded', 'loaded', after)).toEqual([]);
      expect(swap('loaded', 'loaded', after)).toEqual([6]);
    }
  });

  it('is nothing where another model’s server stopped answering just before: what it held comes back', () => {
    const gone = (ticks: number): readonly number[] =>
      learned([
        { ...unloaded, free: 8, beside: 'loaded', ticks: 12 },
        { ...unloaded, free: 20, ticks },
        { ...loading, free: 15 },
        { status: 'loaded', free: 14 },
      ]);
    expect([1, 4, 10].flatMap(gone)).toEqual([]);
    expect(gone(12)).toEqual([6]);
  });

  it('is nothing where the same model was there a moment ago, whole or asleep', () => {
    const again = (was: Moment): readonly number[] =>
      learned([
        { ...unloaded, ticks: 12 },
        was,
        { ...loading, free: 9 },
        { status: 'loaded', free: 8 },
      ]).slice(was.status === 'loaded' ? 1 : 0);
    expect(again({ status: 'loaded', free: 10 })).toEqual([]);
    expect(again({ status: 'sleeping', free: 19.5 })).toEqual([]);
    expect(
      learned([
        { ...unloaded, ticks: 12 },
        loading,
        { status: 'loaded', free: 10 },
        { status: 'unloaded', free: 10, ticks: 8 },
        { ...loading, free: 9 },
        { status: 'loaded', free: 8 },
      ]),
    ).toEqual([10]);
  });

  it('is nothing of one that fell asleep before it had come to rest', () => {
    expect(
      learned([
        unloaded,
        loading,
        { status: 'loaded', free: 10, ticks: 2 },
        { status: 'sleeping', free: 19.5 },
      ]),
    ).toEqual([]);
  });

  it('is nothing where it turns out to be on another device than was thought', () => {
    expect(learned([unloaded, loading, { status: 'loaded', free: 10, deviceId: 'sim:1' }])).toEqual([]);
  });

  it('is nothing where no reading came for a while before: others moved unseen', () => {
    const blindFor = (ticks: number): readonly number[] =>
      learned([
        { ...unloaded, ticks: 12 },
        { ...unloaded, ticks, isBlind: true },
        { ...loading, free: 12 },
        { status: 'loaded', free: 8 },
      ]);
    expect(blindFor(2)).toEqual([12]);
    expect(blindFor(12)).toEqual([]);
  });

  it('is nothing where it was out of sight between its load and its rest', () => {
    expect(
      learned([unloaded, loading, { ...loading, isOutOfSight: true }, { status: 'loaded', free: 10 }]),
    ).toEqual([]);
  });

  it('does not blame a model for what the desktop took before the next list of processes said so', () => {
    const firefox = (bytes: number) => [use(5, 'firefox', bytes * GB)];
    const listed = { ...unloaded, processes: firefox(1) };
    expect(
      learned([
        listed,
        { ...loading, processes: firefox(1) },
        { status: 'loaded', free: 10, ticks: 2, processes: firefox(1) },
        { status: 'loaded', free: 9, ticks: 5 },
        { status: 'loaded', free: 9, ticks: 1, processes: firefox(2) },
      ]),
    ).toEqual([10]);
  });

  it('waits where the driver has stopped telling what others hold, and sees where they have ended', () => {
    const firefox = [use(5, 'firefox', 1 * GB)];
    const start = [
      { ...unloaded, processes: firefox },
      { ...loading, processes: firefox },
    ] as const;
    expect(
      learned([...start, { status: 'loading', free: 9, ticks: 40 }, { status: 'loaded', free: 9 }]),
    ).toEqual([]);
    expect(learned([...start, { status: 'loaded', free: 11, processes: [] }])).toEqual([10]);
  });

  it('is nothing while agents or reserved jobs move beside it', () => {
    const line = (kind: Booking['kind'], bytes: number): Booking => ({
      id: `${kind}:x`,
      kind,
      name: 'x',
      deviceId: 'sim:0',
      predictedBytes: bytes,
      measuredBytes: null,
      state: 'committed',
      sinceMs: 0,
      shared: null,
    });
    const beside = (first: readonly Booking[], then: readonly Booking[]): readonly number[] =>
      learned([
        { ...unloaded, bookings: first },
        { ...loading, bookings: first },
        { status: 'loaded', free: 8, bookings: then },
      ]);
    expect(beside([], [])).toEqual([12]);
    expect(beside([line('agent', GB)], [line('agent', GB)])).toEqual([12]);
    expect(beside([], [line('agent', GB)])).toEqual([]);
    expect(beside([line('agent', GB)], [line('agent', 2 * GB)])).toEqual([]);
    expect(beside([line('reserved', GB)], [line('reserved', GB)])).toEqual([]);
    expect(beside([], [line('reserved', GB)])).toEqual([]);
  });

  it('is not what else took memory between its load and its first use, hours later', () => {
    expect(
      learned([
        unloaded,
        loading,
        { status: 'loaded', free: 10 },
        { status: 'loaded', free: 8.5, ticks: 20 },
        { status: 'loaded', free: 8, lastBusyAtMs: 60_000, ticks: 20 },
      ]),
    ).toEqual([10, 10.5]);
  });

  it('is nothing of a model that is partly behind the bus: that would teach that it needs less', () => {
    const on = (gttGb: number): Moment => ({
      status: 'loaded',
      free: 10,
      proven: true,
      predicted: 16,
      processes: [{ ...use(77, 'llama-server', 10 * GB), gttBytes: gttGb * GB }],
    });
    expect(learned([unloaded, loading, on(6)])).toEqual([]);
    expect(learned([unloaded, loading, on(0.5)])).toEqual([10]);
  });

  it('is nothing of a model whose server kept layers off a full card: with room it takes them all', () => {
    const on = (
      args: readonly string[],
      free: number,
      more: readonly ProcessMemory[] = [],
    ): readonly number[] =>
      learned([
        unloaded,
        loading,
        {
          status: 'loaded',
          free,
          proven: true,
          predicted: 18,
          args,
          processes: [use(77, 'llama-server', 9 * GB), ...more],
        },
      ]);
    const asked = ['llama-server', '-c', '8192'];
    expect(on(asked, 1.2)).toEqual([]);
    expect(on(asked, 6)).toEqual([9]);
    expect(on([...asked, '-ngl', '40'], 1.2)).toEqual([9]);
    expect(on([...asked, '--fit', 'off'], 1.2)).toEqual([9]);
    expect(on(['llama-server'], 1.2)).toEqual([9]);
    // Its other half is on another card.
    expect(on(asked, 1.2, [{ ...use(77, 'llama-server', 9 * GB), deviceId: 'sim:1' }])).toEqual([9]);
  });

  it('begins anew with the next load', () => {
    const at = (free: number): Moment => ({ status: 'loaded', free });
    const again = { ...unloaded, ticks: 12 };
    expect(learned([unloaded, loading, at(10), again, loading, at(12)])).toEqual([10, 8]);
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

  it('is of the flags that were asked about last, whichever answer comes first', async () => {
    const answers: ((bytes: number) => void)[] = [];
    const forecaster: Forecaster = {
      predict: () =>
        new Promise((resolve) => {
          answers.push((bytes) => resolve({ bytes, source: 'estimate' }));
        }),
      footprint: async () => null,
      learn: () => undefined,
    };
    const models = new Models();
    const watch = new LoadWatch(forecaster, () => undefined);
    for (const context of ['4096', '8192'])
      watch.look(modelView({ observed: { args: ['-c', context] } }), 'unloaded', new Sight(), models, 0);
    answers[1]?.(12 * GB);
    await new Promise((resolve) => setImmediate(resolve));
    answers[0]?.(10 * GB);
    await new Promise((resolve) => setImmediate(resolve));
    expect(models.memo('router/m').predictedBytes).toBe(12 * GB);
  });

  it('is asked for anew once it has left: what was learned counts for the load that its server begins', async () => {
    let bytes = 12 * GB;
    const forecaster: Forecaster = {
      predict: async () => ({ bytes, source: 'estimate' }),
      footprint: async () => null,
      learn: () => undefined,
    };
    const models = new Models();
    const watch = new LoadWatch(forecaster, () => undefined);
    const look = async (status: ModelStatus, before: ModelStatus): Promise<number | null> => {
      watch.look(modelView({ observed: { status, args: ['-c', '4096'] } }), before, new Sight(), models, 0);
      await new Promise((resolve) => setImmediate(resolve));
      return models.memo('router/m').predictedBytes;
    };
    expect(await look('loaded', 'loaded')).toBe(12 * GB);
    bytes = 10 * GB;
    expect(await look('loaded', 'loaded')).toBe(12 * GB);
    expect(await look('unloaded', 'loaded')).toBe(10 * GB);
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
