import type { Effects } from '../../electron/core/actuators/effects.ts';
import type { Backend, ObservedModel } from '../../electron/core/backends/backend.ts';
import { systemClock } from '../../electron/core/clock.ts';
import { ControlLoop } from '../../electron/core/control-loop.ts';
import type { DeviceSample } from '../../electron/core/devices/sample.ts';
import type { EventStore } from '../../electron/core/events/event-store.ts';
import { Ledger } from '../../electron/core/ledger/ledger.ts';
import { Fleet } from '../../electron/core/loop/fleet.ts';
import { Intents } from '../../electron/core/loop/intents.ts';
import { Journal } from '../../electron/core/loop/journal.ts';
import { LaneBook } from '../../electron/core/loop/lanes.ts';
import { LearnedFloors } from '../../electron/core/loop/learned-floors.ts';
import { LoadWatch } from '../../electron/core/loop/load-watch.ts';
import { TenantBook } from '../../electron/core/loop/tenants.ts';
import { NO_WISHES } from '../../electron/core/loop/wishes.ts';
import { parseSettings } from '../../electron/core/settings/parse-settings.ts';
import { fail, ok } from '../../shared/errors.ts';
import type { BenchSide } from './report.ts';

const MODELS = [1, 10, 100];
const STEPS = 2_000;
const WARM_UP = 200;
/** A sample comes this often. */
export const PERIOD_MS = 500;

export interface LoopSteps {
  readonly models: number;
  readonly side: BenchSide;
  /** Of the whole process while it stepped, by the kernel's clocks: what else runs on the machine is not in it. */
  readonly cpuMsPerStep: number;
}

/** What one step of the control loop costs when nothing happens, by the number of models it watches. */
export async function benchLoop(short: boolean): Promise<readonly LoopSteps[]> {
  const steps = short ? 50 : STEPS;
  const measured: LoopSteps[] = [];
  for (const count of MODELS) {
    const { loop, sample } = await idleLoop(count);
    const samplesUs: number[] = [];
    let cpu = process.cpuUsage();
    for (let step = 0; step < WARM_UP + steps; step += 1) {
      if (step === WARM_UP) cpu = process.cpuUsage();
      const set = { sequence: step, takenAtMs: systemClock.monotonicMs(), processes: [], troubles: [] };
      const beganAtMs = performance.now();
      loop.onSamples({ ...set, devices: [{ ...sample, takenAtMs: set.takenAtMs }] });
      if (step >= WARM_UP) samplesUs.push((performance.now() - beganAtMs) * 1000);
    }
    const { user, system } = process.cpuUsage(cpu);
    loop.stop();
    const name = `a step of the loop with ${count} model${count === 1 ? '' : 's'}`;
    measured.push({
      models: count,
      side: { name, samplesUs },
      cpuMsPerStep: (user + system) / 1000 / steps,
    });
  }
  return measured;
}

async function idleLoop(
  count: number,
): Promise<{ readonly loop: ControlLoop; readonly sample: DeviceSample }> {
  const settings = parseSettings('', 'config.yaml', null);
  if (!settings.ok) throw new Error('the defaults do not parse');
  const models = Array.from({ length: count }, (_, index) => model(index));
  const fleet = new Fleet(
    () => backend(models),
    () => undefined,
  );
  await fleet.set([
    {
      name: 'router',
      kind: 'llama.cpp',
      url: 'http://127.0.0.1:9',
      front: null,
      lanes: null,
      command: null,
      models: {},
      guards: 'on',
      device: null,
      apiKeyEnv: null,
      found: false,
    },
  ]);
  const loop = new ControlLoop({
    clock: systemClock,
    ledger: new Ledger(),
    fleet,
    journal: new Journal(NO_STORE, systemClock, { write: () => undefined, flush: async () => undefined }),
    intents: new Intents(NO_STORE),
    tenants: new TenantBook(),
    lanes: new LaneBook({ read: () => [] }, () => []),
    floors: new LearnedFloors({ samples: async () => ok([]) }),
    loads: new LoadWatch(
      { predict: async () => null, footprint: async () => null, learn: () => undefined },
      () => undefined,
    ),
    effects: NO_EFFECTS,
    settings: settings.value,
    wishes: NO_WISHES,
    bootMs: () => systemClock.monotonicMs(),
    onStep: () => undefined,
    onWishes: () => undefined,
  });
  return { loop, sample: SAMPLE };
}

const TOTAL_BYTES = 34_200_000_000;

const SAMPLE: DeviceSample = {
  id: 'sim:0',
  kind: 'simulated',
  memory: 'discrete',
  name: 'Card',
  pciAddress: null,
  drivesDisplay: true,
  power: 'active',
  totalBytes: TOTAL_BYTES,
  usedBytes: TOTAL_BYTES / 2,
  freeBytes: TOTAL_BYTES / 2,
  gttTotalBytes: null,
  gttUsedBytes: 0,
  hostAvailableBytes: null,
  busyPercent: 0,
  source: 'simulated',
  takenAtMs: 0,
  periodMs: PERIOD_MS,
  notes: [],
  error: null,
};

/** Three loaded ones, as on a machine in use; the rest unloaded presets. */
function model(index: number): ObservedModel {
  const isLoaded = index < 3;
  return {
    name: `model-${index}`,
    aliases: [],
    status: isLoaded ? 'loaded' : 'unloaded',
    busy: false,
    lastBusyAtMs: null,
    sinceMs: systemClock.monotonicMs(),
    args: null,
    modelPath: null,
    port: isLoaded ? 40_000 + index : null,
    process: null,
    processNote: null,
    contextTokens: null,
    loadProgress: null,
    reportedBytes: isLoaded ? 3_000_000_000 : null,
    stopTimeoutMs: null,
    failure: null,
  };
}

function backend(models: readonly ObservedModel[]): Backend {
  const refused = async () => fail('not_supported', 'This is a measurement.');
  return {
    name: 'router',
    kind: 'llama.cpp',
    url: 'http://127.0.0.1:9',
    start: () => undefined,
    stop: async () => undefined,
    snapshot: () => ({
      name: 'router',
      kind: 'llama.cpp',
      url: 'http://127.0.0.1:9',
      status: 'up',
      sinceMs: 0,
      error: null,
      version: null,
      models,
      takenAtMs: systemClock.monotonicMs(),
      tellsBusy: true,
      notes: [],
    }),
    load: refused,
    unload: refused,
    confirmIdle: async () => ({ busy: false }),
    refresh: async () => undefined,
  };
}

const NO_STORE: EventStore = {
  append: async (event, epochMs) => ({ ...event, id: 1, at: new Date(epochMs).toISOString() }),
  query: async () => ok([]),
  addSamples: () => undefined,
  get: async () => undefined,
  set: async () => ok(undefined),
  all: async () => ({}),
  trouble: () => null,
  close: async () => undefined,
};

const NO_EFFECTS: Effects = {
  confirmIdle: async () => ({ busy: false }),
  unload: async () => ok(undefined),
  arm: async () => fail('not_proven', 'This is a measurement.'),
  refresh: () => undefined,
  processGone: async () => null,
  sampleSoon: () => undefined,
  lookAgain: () => undefined,
};
