import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decide } from '../../../electron/core/guards/decide.ts';
import { emptyMemory } from '../../../electron/core/guards/memory.ts';
import type { GuardMemory, GuardModel, GuardWorld } from '../../../electron/core/guards/world.ts';
import { breached, CARD, device, GB, model, NOW, world } from './worlds.ts';

const OTHER = 'pci:0000:04:00.0';
const gigabytes = fc.integer({ min: 0, max: 20 }).map((value) => value * GB);
const maybeBytes = fc.option(gigabytes, { freq: 5 });
const past = fc.integer({ min: 0, max: 400_000 }).map((ms) => NOW - ms);

const anyModel = fc.record({
  deviceId: fc.constantFrom(CARD, CARD, OTHER, null),
  status: fc.constantFrom(
    'loaded',
    'loaded',
    'loaded',
    'loading',
    'sleeping',
    'stopping',
    'unloaded',
    'failed',
  ),
  statusSinceMs: past,
  busy: fc.constantFrom(true, false, false, null),
  lastUsedAtMs: fc.option(past),
  big: fc.boolean(),
  small: fc.boolean(),
  pinned: fc.boolean(),
  batchOnly: fc.boolean(),
  ttlMs: fc.option(fc.constantFrom(1_000, 60_000)),
  bytes: maybeBytes,
  predictedBytes: maybeBytes,
  seenBytes: maybeBytes,
  unloadRequestedAtMs: fc.option(past, { freq: 3 }),
  signalable: fc.constantFrom(true, true, false, null),
  turnClass: fc.constantFrom('interactive', 'batch', null),
  guarded: fc.constantFrom('on', 'on', 'observe'),
} as const) as fc.Arbitrary<Partial<GuardModel>>;

const anyDevice = fc.record({
  fresh: fc.boolean(),
  freeBytes: fc.option(fc.integer({ min: 0, max: 160 }).map((tenths) => (tenths * GB) / 10)),
  sampledAtMs: fc.option(past),
  evictionUnderWay: fc.constantFrom(true, false, null),
  bookedBytes: gigabytes,
  outstandingBytes: gigabytes,
});

const anyWorld: fc.Arbitrary<GuardWorld> = fc
  .record({
    here: anyDevice,
    there: anyDevice,
    models: fc.array(anyModel, { maxLength: 7 }),
    asleep: fc.boolean(),
    maxBig: fc.constantFrom<'fit' | number>('fit', 0, 1, 2),
    race: fc.constantFrom('class', 'resident', 'newcomer'),
    resumedAtMs: fc.option(past),
    wanted: fc.option(gigabytes),
  })
  .map(({ here, there, models, asleep, maxBig, race, resumedAtMs, wanted }) =>
    world(
      [device(here), device({ ...there, id: OTHER })],
      models.map((more, index) => model(`m${index}`, more)),
      {
        asleep,
        resumedAtMs,
        policy: { maxBig, race },
        wantedFree: wanted === null ? [] : [{ deviceId: CARD, freeBytes: wanted }],
      },
    ),
  );

const memories = fc.constantFrom<GuardMemory>(emptyMemory(), breached());

function eachDecision(
  check: (found: GuardModel, cause: string, type: string, world: GuardWorld) => void,
): void {
  fc.assert(
    fc.property(anyWorld, memories, (world, memory) => {
      for (const decision of decide(world, memory).decisions) {
        const found = world.models.find((one) => one.id === decision.modelId);
        expect(found).toBeDefined();
        if (found !== undefined) check(found, decision.cause, decision.type, world);
      }
    }),
    { numRuns: 1_500 },
  );
}

describe('over random worlds', () => {
  it('rule 9: never a pinned model', () => {
    eachDecision((found) => expect(found.pinned).toBe(false));
  });

  it('rule 6: never on a device whose reading is stale, unknown or from before the resume', () => {
    eachDecision((found, _cause, _type, world) => {
      const on = world.devices.find((one) => one.id === found.deviceId);
      expect(on?.fresh).toBe(true);
      expect(on?.freeBytes).not.toBeNull();
      expect(on?.sampledAtMs ?? Number.NEGATIVE_INFINITY).toBeGreaterThan(world.resumedAtMs ?? -1);
    });
  });

  it('rule 7: never a busy one, or one whose state is unknown, outside a race; a loading one only in a race it loses', () => {
    eachDecision((found, cause) => {
      if (found.busy !== false || found.status === 'loading') expect(cause).toBe('race');
    });
  });

  it('rule 7: a kill only of a proven one whose unload has been open for the grace', () => {
    eachDecision((found, _cause, type) => {
      if (type !== 'kill') return;
      expect(found.signalable).toBe(true);
      expect(NOW - (found.unloadRequestedAtMs ?? NOW)).toBeGreaterThanOrEqual(1_000);
    });
  });

  it('rule 9: small residents leave for the floor only below the hard floor', () => {
    eachDecision((found, cause, _type, world) => {
      if (!found.small || found.batchOnly || !['floor', 'hard_floor'].includes(cause)) return;
      const on = world.devices.find((one) => one.id === found.deviceId);
      expect(on?.freeBytes ?? Number.NaN).toBeLessThan(on?.hardFloorBytes ?? Number.NaN);
    });
  });

  it('decides on each model once, in a whole sentence', () => {
    fc.assert(
      fc.property(anyWorld, memories, (world, memory) => {
        const { decisions } = decide(world, memory);
        expect(new Set(decisions.map((one) => one.modelId)).size).toBe(decisions.length);
        for (const { reason } of decisions) expect(reason).toMatch(/^(Unloading|Killing) m\d: .+\.$/);
      }),
    );
  });

  it('is the same for the same world, in whatever order its models stand, and changes none of its inputs', () => {
    const sorted = (value: ReturnType<typeof decide>) =>
      JSON.stringify(value.decisions.map((one) => `${one.type} ${one.modelId} ${one.cause}`).sort());
    fc.assert(
      fc.property(anyWorld, memories, (world, memory) => {
        const before = JSON.stringify([world, memory]);
        const one = decide(world, memory);
        expect(JSON.stringify([world, memory])).toBe(before);
        expect(JSON.stringify(decide(world, memory))).toBe(JSON.stringify(one));
        const turned = { ...world, models: [...world.models].reverse() };
        expect(sorted(decide(turned, memory))).toBe(sorted(one));
      }),
    );
  });

  it('rule 13: says nothing more in the next half second of an unchanged world', () => {
    fc.assert(
      fc.property(anyWorld, memories, (world, memory) => {
        const first = decide(world, memory);
        const next = decide({ ...world, nowMs: world.nowMs + 1 }, first.memory).decisions;
        const before = new Set(first.decisions.map((one) => `${one.modelId}`));
        expect(next.filter((one) => before.has(one.modelId))).toEqual([]);
      }),
    );
  });
});
