import { describe, expect, it } from 'vitest';
import type { Backend } from '../../../electron/core/backends/backend.ts';
import type { DeviceSample } from '../../../electron/core/devices/sample.ts';
import type { LaneWatch } from '../../../electron/core/gate/lane-watch.ts';
import { Fleet } from '../../../electron/core/loop/fleet.ts';
import { LaneBook } from '../../../electron/core/loop/lanes.ts';
import { Sight } from '../../../electron/core/loop/sight.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import type { LaneState } from '../../../shared/state.ts';
import { deviceSample } from '../../support/device-sample.ts';
import { modelView } from '../../support/model-view.ts';

const SETTING: BackendSetting = {
  name: 'router',
  kind: 'llama.cpp',
  url: 'http://127.0.0.1:8080',
  lanes: 1,
  front: null,
  command: null,
  models: {},
  device: null,
  guards: null,
  apiKeyEnv: null,
  found: false,
};

const HELD: LaneState = {
  backend: 'router',
  configured: true,
  path: '/gates/127.0.0.1_8080.lock',
  width: 1,
  held: true,
  holders: [
    {
      pid: 42,
      command: 'agent',
      session: 'writer',
      model: null,
      class: null,
      turn: 't1',
      acquiredAt: null,
    },
  ],
  waiting: 0,
};
const FREE: LaneState = { ...HELD, held: false, holders: [] };

function backend(): Backend {
  return {
    name: 'router',
    kind: 'llama.cpp',
    url: 'http://127.0.0.1:8080',
    start: () => {},
    stop: async () => {},
    snapshot: () => ({
      name: 'router',
      kind: 'llama.cpp',
      url: 'http://127.0.0.1:8080',
      status: 'up',
      sinceMs: 0,
      error: null,
      version: null,
      models: [],
      takenAtMs: 0,
      tellsBusy: true,
      notes: [],
    }),
    load: async () => ({ ok: true, value: undefined }),
    unload: async () => ({ ok: true, value: undefined }),
    confirmIdle: async () => ({ busy: false }),
    refresh: async () => {},
  };
}

function card(busyPercent: number | null, takenAtMs: number): DeviceSample {
  return deviceSample({
    drivesDisplay: null,
    totalBytes: 1,
    usedBytes: 0,
    freeBytes: 1,
    gttUsedBytes: null,
    busyPercent,
    takenAtMs,
  });
}

/** Looks every second; `at` says what lane and busy flag stand at each. */
async function run(
  seconds: number,
  at: (nowMs: number) => {
    readonly lane: LaneState;
    readonly busy: boolean | null;
    readonly percent: number | null;
    readonly served?: string;
  },
  setting: BackendSetting = SETTING,
) {
  const fleet = new Fleet(
    () => backend(),
    () => {},
  );
  await fleet.set([setting]);
  const sight = new Sight();
  let lane = FREE;
  let since: number | null = null;
  const watch: LaneWatch = {
    read: () => [{ state: lane, heldSinceMs: lane.held === true ? since : null }],
  };
  let walks = 0;
  const book = new LaneBook(watch, () => {
    walks += 1;
    return [{ pid: 7, command: 'curl' }];
  });
  const told: string[] = [];
  for (let second = 0; second <= seconds; second += 1) {
    const nowMs = second * 1_000;
    const now = at(nowMs);
    lane = now.lane;
    if (now.served !== undefined) book.served(now.served);
    since = lane.held === true ? (since ?? nowMs) : null;
    sight.take({
      sequence: second,
      takenAtMs: nowMs,
      devices: [card(now.percent, nowMs)],
      processes: null,
      troubles: [],
    });
    const views = [modelView({ status: 'loaded', observed: { busy: now.busy } })];
    for (const event of book.look({ fleet, views, sight, nowMs }))
      told.push(`${event.kind}: ${event.reason}`);
  }
  return { told, walks, lanes: book.list() };
}

describe('a lane', () => {
  it('is in the state as the kernel has it', async () => {
    const { lanes, told } = await run(1, () => ({ lane: HELD, busy: true, percent: 90 }));
    expect(lanes).toEqual([HELD]);
    expect(told).toEqual([]);
  });

  it('held for long while its device does nothing is told once, and never broken', async () => {
    const { told } = await run(400, () => ({ lane: HELD, busy: false, percent: 1 }));
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(/^lane_stuck: .*session writer/);
  });

  it('held for long while its device works, or cannot be told to be idle, is no news', async () => {
    expect((await run(400, () => ({ lane: HELD, busy: true, percent: 80 }))).told).toEqual([]);
    expect((await run(400, () => ({ lane: HELD, busy: true, percent: null }))).told).toEqual([]);
  });

  it('free while its backend works is used outside the lane: told once, with who it is', async () => {
    const { told, walks } = await run(300, () => ({ lane: FREE, busy: true, percent: 80 }));
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(/^lane_bypassed: .*pid 7 \(curl\)/);
    expect(walks).toBe(1);
  });

  it('is used properly by turns through the gateway that are too short to be seen, and by no other backend’s', async () => {
    const looked = { lane: FREE, busy: true, percent: 80 };
    expect((await run(30, () => ({ ...looked, served: SETTING.name }))).told).toEqual([]);
    expect((await run(30, () => ({ ...looked, served: 'other' }))).told).toHaveLength(1);
    // It is over, and somebody else goes on.
    const { told } = await run(30, (nowMs) => ({
      ...looked,
      ...(nowMs < 5_000 ? { served: SETTING.name } : {}),
    }));
    expect(told).toHaveLength(1);
  });

  it('is used properly by one turn in a wide lane that has room for more', async () => {
    const wide = { ...HELD, width: 3, held: false };
    expect((await run(30, () => ({ lane: wide, busy: true, percent: 80 }))).told).toEqual([]);
  });

  it('is nobody’s business where lanes are not set, and while busy is not known', async () => {
    expect(
      (await run(30, () => ({ lane: FREE, busy: true, percent: 80 }), { ...SETTING, lanes: null })).told,
    ).toEqual([]);
    expect((await run(30, () => ({ lane: FREE, busy: null, percent: 80 }))).told).toEqual([]);
  });
});
