/** A day on a card of 32 GB, told as states and events: what a test plays to the tray. */
import type { NewEvent } from '../../shared/events.ts';
import type { LandlordState, ModelState } from '../../shared/state.ts';
import type { FakeRuntime } from './fake-runtime.ts';
import { sampleModel, sampleState } from './fake-runtime.ts';

const GB = 1_000_000_000;
const CARD = 'pci:0000:03:00.0';
const TOTAL = 32 * GB;
const FLOOR = 4 * GB;

/** What changes over the day; the state follows from it. */
export interface Scene {
  desktopBytes: number;
  /** What a game holds; 0: none runs. */
  gameBytes: number;
  evicting: boolean;
  models: ModelState[];
  lanes: LandlordState['lanes'];
  agents: LandlordState['agents'];
  asleep: LandlordState['asleep'];
  restorable: string[];
  routerUp: boolean;
  /** The runtime reads the card; false: it does not. */
  reading: boolean;
}

export function morning(): Scene {
  return {
    desktopBytes: 2.6 * GB,
    gameBytes: 0,
    evicting: false,
    models: [
      sampleModel({ id: 'router/coder-9b', big: true, predictedBytes: 7.2 * GB, deviceId: CARD }),
      sampleModel({ id: 'router/writer-27b', big: true, predictedBytes: 16.8 * GB, deviceId: CARD }),
      sampleModel({
        id: 'router/bge-m3',
        small: true,
        pinned: true,
        predictedBytes: 0.7 * GB,
        deviceId: CARD,
      }),
    ],
    lanes: [],
    agents: [],
    asleep: null,
    restorable: [],
    routerUp: true,
    reading: true,
  };
}

export function change(scene: Scene, id: string, to: Partial<ModelState>): void {
  scene.models = scene.models.map((model) => (model.id === id ? { ...model, ...to } : model));
}

export function stateOf(scene: Scene, before: LandlordState, nowMs: number): LandlordState {
  const [device] = before.devices;
  if (device === undefined) throw new Error('the sample has a device');
  const held = scene.models.reduce((sum, model) => sum + (model.measuredBytes ?? 0), 0);
  const freeBytes = TOTAL - scene.desktopBytes - scene.gameBytes - held;
  const at = new Date(nowMs).toISOString();
  return {
    ...before,
    revision: before.revision + 1,
    at,
    devices: [
      {
        ...device,
        id: CARD,
        name: 'Radeon 32',
        totalBytes: TOTAL,
        usedBytes: TOTAL - freeBytes,
        freeBytes,
        sampledAt: scene.reading ? at : device.sampledAt,
        floorBytes: FLOOR,
        hardFloorBytes: FLOOR / 2,
        capBytes: 0.9 * TOTAL,
        bookedBytes: held,
        health: freeBytes < FLOOR / 2 ? 'critical' : freeBytes < FLOOR ? 'threatened' : 'ok',
        evictionUnderWay: scene.evicting,
      },
    ],
    tenants: scene.gameBytes === 0 ? [] : [game(scene.gameBytes)],
    models: scene.routerUp ? scene.models : [],
    lanes: scene.lanes,
    agents: scene.agents,
    asleep: scene.asleep,
    restorable: scene.restorable,
    backends: before.backends
      .filter((backend) => backend.name === 'router')
      .map((backend) => ({ ...backend, status: scene.routerUp ? 'up' : 'down' })),
  };
}

function game(measuredBytes: number): LandlordState['tenants'][number] {
  return {
    id: 'foreign:game',
    kind: 'foreign',
    name: 'game',
    deviceId: CARD,
    predictedBytes: null,
    measuredBytes,
    pids: [7000],
  };
}

export function publish(runtime: FakeRuntime, scene: Scene, nowMs: number): void {
  runtime.publish(stateOf(scene, runtime.state(), nowMs));
}

export function firstState(scene: Scene, nowMs: number): LandlordState {
  return stateOf(scene, sampleState(), nowMs);
}

/** Events as the runtime words them. */
export const told = {
  loaded: (name: string, took: string): NewEvent => ({
    kind: 'loaded',
    model: `router/${name}`,
    backend: 'router',
    reason: `${name} is loaded after ${took}.`,
    numbers: {},
  }),
  threatened: (free: string): NewEvent => ({
    kind: 'floor_threatened',
    deviceId: CARD,
    reason: `The desktop's floor is threatened: ${free} is free, the floor is 4.0 GB. firefox grew by 1.6 GB.`,
    numbers: { freeBytes: 3.5 * GB, floorBytes: FLOOR, hardFloorBytes: FLOOR / 2 },
  }),
  evicted: (name: string, why: string, freedBytes: number): NewEvent => ({
    kind: 'evicted',
    model: `router/${name}`,
    backend: 'router',
    deviceId: CARD,
    reason: `Unloaded ${name}: ${why}. ${(freedBytes / GB).toFixed(1)} GB came back in 1.9 s.`,
    numbers: { freedBytes },
  }),
  slept: (): NewEvent => ({
    kind: 'slept',
    reason: 'Big models are asleep for 60 min: idle ones leave now, busy ones after their request.',
    numbers: { forMs: 3_600_000 },
  }),
  woke: (): NewEvent => ({
    kind: 'woke',
    reason: 'Big-model sleep is over: its time is up.',
    numbers: { asleepMs: 3_600_000 },
  }),
  resumed: (): NewEvent => ({
    kind: 'resumed',
    reason: 'The machine was suspended. Readings from before do not count; devices are read anew.',
    numbers: { suspendedMs: 4_200_000 },
  }),
  routerDown: (): NewEvent => ({
    kind: 'backend_down',
    backend: 'router',
    reason: 'router does not answer at http://127.0.0.1:8080: the connection was refused.',
    numbers: { models: 0 },
  }),
  routerUp: (): NewEvent => ({
    kind: 'backend_up',
    backend: 'router',
    reason: 'router answers at http://127.0.0.1:8080: 3 models. It was away.',
    numbers: { models: 3 },
  }),
} as const;
