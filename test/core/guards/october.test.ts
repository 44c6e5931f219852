import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { begin, change, freeOf, grow, type Simulation, simulation, tick } from './simulation.ts';
import { GB, LONG_AGO, model, NOW, small } from './worlds.ts';

/** The layout of a card of 34.2 GB that drives a monitor: an always-on 9B, an embedder, a 27B on demand, a vision model. */
function layout(vision: 'loaded' | 'unloaded'): Simulation {
  return simulation(
    [
      small('nine-b', { bytes: 10.6 * GB, busy: true, lastUsedAtMs: NOW }),
      small('bge-m3', { bytes: 1.2 * GB }),
      model('qwen-27b', { status: 'unloaded', bytes: null, lastUsedAtMs: null }),
      model('vision-8b', {
        status: vision,
        bytes: 8 * GB,
        busy: vision === 'loaded',
        lastUsedAtMs: LONG_AGO,
      }),
    ],
    0.6 * GB,
    NOW,
  );
}

const VISION = 'router/vision-8b';
const BIG = 'router/qwen-27b';

function says(sim: Simulation): readonly string[] {
  return sim.log.map(({ decision }) => `${decision.type} ${decision.modelId.slice(7)} ${decision.cause}`);
}

/** Loads in 13 half-second chunks, as a model that needs its memory about 3 s after the request does. */
function load(sim: Simulation, id: string, bytes: number): boolean {
  begin(sim, id, bytes);
  for (let chunk = 0; chunk < 14; chunk++) {
    tick(sim, 500);
    const done = grow(sim, id, bytes / 13);
    if (done === null) return false;
    if (done) return true;
  }
  return false;
}

describe('an October morning: 33.9 of 34.2 GB used, then a music player asks for more', () => {
  it('unguarded, the fill reaches 33.9 GB', () => {
    const sim = layout('unloaded');
    change(sim, BIG, { status: 'loaded', bytes: 21.5 * GB, busy: true });
    expect(sim.totalBytes - freeOf(sim)).toBeCloseTo(33.9 * GB, -7);
  });

  it('guarded, the 27B of 21.5 GB costs the resident 9B its place rather than the card its last gigabyte', () => {
    const sim = layout('unloaded');
    expect(load(sim, BIG, 21.5 * GB)).toBe(true);
    expect(says(sim)).toContain('kill nine-b race');
    expect(freeOf(sim)).toBeGreaterThan(4 * GB);
    sim.desktopBytes += 0.9 * GB;
    for (let second = 0; second < 30; second++) tick(sim, 1_000);
    expect(says(sim).filter((line) => line.includes('floor'))).toEqual([]);
  });

  it('found full, with everything idle, the 27B leaves and the residents stay', () => {
    const sim = layout('unloaded');
    change(sim, BIG, { status: 'loaded', bytes: 21.5 * GB, busy: false, statusSinceMs: LONG_AGO });
    change(sim, 'router/nine-b', { busy: false, lastUsedAtMs: LONG_AGO });
    sim.desktopBytes += 0.3 * GB;
    tick(sim, 500);
    expect(says(sim)).toEqual(['unload qwen-27b floor']);
    for (let second = 0; second < 60; second++) tick(sim, 1_000);
    expect(says(sim)).toHaveLength(1);
  });

  it('found full, with the 27B in a request, nothing is cut; it leaves 180 s after its request', () => {
    const sim = layout('unloaded');
    change(sim, BIG, { status: 'loaded', bytes: 21.5 * GB, busy: true, statusSinceMs: LONG_AGO });
    change(sim, 'router/bge-m3', { busy: true });
    for (let second = 0; second < 60; second++) tick(sim, 1_000);
    expect(says(sim)).toEqual([]);
    change(sim, BIG, { busy: false, lastUsedAtMs: sim.nowMs });
    const endedAtMs = sim.nowMs;
    while (sim.log.length === 0) tick(sim, 500);
    expect(says(sim)).toEqual(['unload qwen-27b floor']);
    expect((sim.log[0]?.atMs ?? 0) - endedAtMs).toBe(180_000);
  });
});

describe('the 27B beside the 9B at 2.9 to 3.1 GB free, under a floor of 4 GB', () => {
  for (const desktopGb of [0.7, 0.9])
    it(`gets in alone with a desktop of ${desktopGb} GB, cuts no resident, and leaves when idle`, () => {
      const sim = layout('unloaded');
      sim.desktopBytes = desktopGb * GB;
      expect(load(sim, BIG, 18.6 * GB)).toBe(true);
      expect(freeOf(sim)).toBeGreaterThan(2.8 * GB);
      expect(freeOf(sim)).toBeLessThan(3.2 * GB);
      for (let second = 0; second < 120; second++) tick(sim, 1_000);
      expect(says(sim)).toEqual([]);
      change(sim, BIG, { busy: false, lastUsedAtMs: sim.nowMs });
      for (let second = 0; second < 179; second++) tick(sim, 1_000);
      expect(says(sim)).toEqual([]);
      tick(sim, 1_000);
      expect(says(sim)).toEqual(['unload qwen-27b floor']);
    });
});

describe('the 27B is asked for while the vision model reads a page', () => {
  for (const maxBig of ['fit', 1] as const)
    it(`maxBig ${maxBig}: unload at once, SIGKILL a second later, and the 27B loads; the residents stay`, () => {
      const sim = layout('loaded');
      sim.policy = { maxBig };
      expect(load(sim, BIG, 18.6 * GB)).toBe(true);
      expect(says(sim)).toEqual(['unload vision-8b race', 'kill vision-8b race']);
      expect(sim.log.map(({ atMs }) => atMs - NOW)).toEqual([500, 1_500]);
      expect(sim.models.find((one) => one.id === VISION)?.status).toBe('unloaded');
    });
});

describe('rule 13: the loop comes to rest', () => {
  it('whatever it starts from: over the floor or with nothing left that may go, each model leaving at most once', () => {
    const start = fc.record({
      models: fc.array(
        fc.record({
          bytes: fc.integer({ min: 1, max: 12 }).map((value) => value * GB),
          big: fc.boolean(),
          small: fc.boolean(),
          pinned: fc.boolean(),
          batchOnly: fc.boolean(),
          busy: fc.boolean(),
        }),
        { maxLength: 6 },
      ),
      desktop: fc.integer({ min: 0, max: 34 }).map((value) => value * GB),
      maxBig: fc.constantFrom<'fit' | number>('fit', 1, 2),
    });
    fc.assert(
      fc.property(start, ({ models, desktop, maxBig }) => {
        const sim = simulation(
          models.map((more, index) => model(`m${index}`, more)),
          desktop,
          NOW,
        );
        sim.policy = { maxBig };
        for (let step = 0; step < 40; step++) tick(sim, 1_000);
        const settled = sim.log.length;
        for (let step = 0; step < 60; step++) tick(sim, 1_000);
        expect(sim.log.length).toBe(settled);
        const left = sim.log.map(({ decision }) => decision.modelId);
        expect(new Set(left).size).toBe(left.length);
        const mayLeave = sim.models.filter(
          (one) => one.status === 'loaded' && !one.pinned && !one.busy && (!one.small || one.batchOnly),
        );
        if (freeOf(sim) < 4 * GB) expect(mayLeave).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it('two big models asked for in turn do not throw each other out mid-request', () => {
    const sim = simulation(
      [model('one', { bytes: 18 * GB, busy: true }), model('two', { status: 'unloaded', bytes: null })],
      2 * GB,
      NOW,
    );
    sim.policy = { race: 'newcomer' };
    for (let round = 0; round < 5; round++) {
      begin(sim, 'router/two', 18 * GB);
      tick(sim, 500);
      expect(sim.models.find((other) => other.id === 'router/one')?.status).toBe('loaded');
      for (let step = 0; step < 20; step++) tick(sim, 1_000);
    }
  });
});
