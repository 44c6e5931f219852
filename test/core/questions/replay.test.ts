import { describe, expect, it } from 'vitest';
import type { StoredSample } from '../../../electron/core/events/event-store.ts';
import { createReplayRun, isModelId, type ReplayPolicy } from '../../../electron/core/questions/replay.ts';
import type { ReplayRun } from '../../../shared/questions.ts';

const TOTAL = 24e9;
const BIG = 'router/qwen-27b';
const OTHER = 'router/vision-8b';

const POLICY: ReplayPolicy = {
  floorBytes: 3e9,
  hardFloorBytes: 1.5e9,
  capBytes: 21.6e9,
  guards: {
    idleMs: 60_000,
    raceGraceMs: 1000,
    maxBig: 'fit',
    race: 'class',
    breachMs: 5000,
    minResidencyMs: 60_000,
  },
};

const traits = () => ({ big: true, small: false, pinned: false, batchOnly: false, ttlMs: null });

interface Moment {
  readonly desktop: number;
  readonly models: Readonly<Record<string, number>>;
  readonly used?: readonly string[];
  readonly evicted?: readonly string[];
}

/** One reading each ten seconds. */
function run(moments: readonly Moment[], change: Partial<ReplayPolicy> = {}): ReplayRun {
  const runner = createReplayRun({ ...POLICY, ...change }, traits);
  for (const [index, { desktop, models, used = [], evicted = [] }] of moments.entries()) {
    const usedBytes = desktop + Object.values(models).reduce((sum, bytes) => sum + bytes, 0);
    const sample: StoredSample = {
      atMs: 1_000_000_000 + index * 10_000,
      deviceId: 'sim:0',
      totalBytes: TOTAL,
      usedBytes,
      freeBytes: TOTAL - usedBytes,
      gttUsedBytes: null,
      tenants: { 'desktop@sim:0': desktop, ...models },
      used,
    };
    runner.look(sample, new Set(evicted));
  }
  return runner.result();
}

const times = (count: number, moment: Moment): Moment[] => Array.from({ length: count }, () => moment);

describe('replay of recorded days', () => {
  it('evicts an idle model below a higher floor, and not under the floor of that day', () => {
    const day = times(20, { desktop: 2e9, models: { [BIG]: 17e9 } });
    expect(run(day)).toMatchObject({ evictions: 0, underFloorMs: 0, shortfalls: 0 });
    const higher = run(day, { floorBytes: 6e9, hardFloorBytes: 3e9 });
    expect(higher).toMatchObject({
      evictions: 1,
      shortfalls: 1,
      models: [{ model: BIG, evictions: 1, reloads: 0 }],
    });
    // Its memory counts as free from the moment it is away, though the record still has it.
    expect(higher.underFloorMs).toBeLessThan(20 * 10_000);
  });

  it('counts a reload when the model it evicted was used after all', () => {
    const idle = times(20, { desktop: 2e9, models: { [BIG]: 17e9 } });
    const used = times(3, { desktop: 2e9, models: { [BIG]: 17e9 }, used: [BIG] });
    const higher = run([...idle, ...used], { floorBytes: 6e9, hardFloorBytes: 3e9 });
    expect(higher).toMatchObject({ evictions: 1, reloads: 1 });
    expect(run([...idle, ...used])).toMatchObject({ evictions: 0, reloads: 0 });
  });

  it('keeps what a guard evicted that day where a lower floor would not have, and spares its reload', () => {
    const before = times(10, { desktop: 4e9, models: { [BIG]: 17.5e9 } });
    const gone: Moment = { desktop: 4e9, models: {}, evicted: [BIG] };
    const back = times(3, { desktop: 4e9, models: { [BIG]: 17.5e9 }, used: [BIG] });
    const day = [...before, gone, ...times(3, { desktop: 4e9, models: {} }), ...back];
    expect(run(day)).toMatchObject({ evictions: 1, reloads: 1 });
    const lower = run(day, { floorBytes: 1e9, hardFloorBytes: 0.5e9 });
    expect(lower).toMatchObject({ evictions: 0, reloads: 0, underFloorMs: 0 });
  });

  it('lets go of what left by itself or by a person’s order', () => {
    const day = [
      ...times(3, { desktop: 2e9, models: { [BIG]: 17e9 } }),
      ...times(20, { desktop: 9e9, models: {} }),
    ];
    expect(run(day, { floorBytes: 6e9 })).toMatchObject({ evictions: 0, underFloorMs: 30_000 - 10_000 });
  });

  it('holds one big model at a time where that is asked for, and the one used last stays', () => {
    const day = times(20, { desktop: 1e9, models: { [BIG]: 9e9, [OTHER]: 6e9 }, used: [] });
    const first: Moment = { desktop: 1e9, models: { [BIG]: 9e9, [OTHER]: 6e9 }, used: [OTHER] };
    const one = run([first, ...day], { guards: { ...POLICY.guards, maxBig: 1 } });
    expect(one).toMatchObject({ evictions: 1, models: [{ model: BIG }], maxBig: 1 });
    expect(run([first, ...day])).toMatchObject({ evictions: 0 });
  });

  it('never cuts one that is in use', () => {
    const busy = times(20, { desktop: 5e9, models: { [BIG]: 17e9 }, used: [BIG] });
    const result = run(busy);
    expect(result).toMatchObject({ evictions: 0, shortfalls: 1 });
    expect(result.underFloorMs).toBe(19 * 10_000);
  });

  it('takes models for models, and neither the desktop nor a program', () => {
    expect([BIG, 'ollama/qwen3:4b'].map(isModelId)).toEqual([true, true]);
    expect(['desktop@pci:0000:03:00.0', 'foreign:/usr/bin/blender@sim:0', 'job-1'].map(isModelId)).toEqual([
      false,
      false,
      false,
    ]);
  });
});
