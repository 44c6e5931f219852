import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkInvariants } from '../../../electron/core/ledger/invariants.ts';
import { Ledger } from '../../../electron/core/ledger/ledger.ts';

const IDS = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
const DEVICES = ['gpu:0', 'gpu:1'] as const;
const TOTAL = 1_000;
const LIMITS = { totalBytes: TOTAL, capBytes: 900, floorBytes: 120, hardFloorBytes: 60 };

const bytes = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 400 }) },
  { weight: 1, arbitrary: fc.constantFrom(-5, Number.NaN, 0.5, 2 ** 53, Number.MAX_SAFE_INTEGER) },
);
const maybe = fc.option(bytes, { freq: 5 });
const id = fc.constantFrom(...IDS);
const device = fc.constantFrom(...DEVICES);
const shared = fc.option(fc.record({ key: fc.constantFrom('w1', 'w2'), bytes }), { nil: undefined });

const step = fc.oneof(
  fc.record({
    do: fc.constant('reserve' as const),
    id,
    device,
    bytes: maybe,
    shared,
    forced: fc.boolean(),
    soleBig: fc.boolean(),
    credit: fc.option(fc.integer({ min: 0, max: 300 }), { nil: 0 }),
  }),
  fc.record({ do: fc.constant('seen' as const), id, bytes: maybe }),
  fc.record({
    do: fc.constant('seenShared' as const),
    device,
    key: fc.constantFrom('w1', 'w2'),
    bytes,
  }),
  fc.record({ do: fc.constant('commit' as const), id, bytes: maybe }),
  fc.record({ do: fc.constant('correct' as const), id, bytes: maybe }),
  fc.record({ do: fc.constant('release' as const), id }),
  fc.record({
    do: fc.constant('reconcile' as const),
    device,
    free: maybe,
    host: maybe,
    unified: fc.boolean(),
  }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function freshLedger(): Ledger {
  const ledger = new Ledger();
  for (const deviceId of DEVICES) {
    ledger.setLimits(deviceId, LIMITS);
    ledger.reconcile(deviceId, {
      driverFreeBytes: 900,
      hostAvailableBytes: null,
      totalBytes: TOTAL,
      unified: false,
      sampledAtMs: 0,
    });
  }
  return ledger;
}

function take(ledger: Ledger, step: Step, nowMs: number): { ok: boolean } {
  switch (step.do) {
    case 'reserve': {
      const { id, device, bytes, shared, forced, soleBig, credit } = step;
      return ledger.reserve({
        id,
        kind: 'model',
        name: id,
        deviceId: device,
        predictedBytes: bytes,
        ...(shared === undefined ? {} : { shared }),
        forced,
        soleBig,
        creditBytes: credit,
        nowMs,
      });
    }
    case 'seen':
      return ledger.seen(step.id, step.bytes);
    case 'seenShared':
      return ledger.seenShared(step.device, step.key, step.bytes);
    case 'commit':
      return ledger.commit(step.id, step.bytes, nowMs);
    case 'correct':
      return ledger.correct(step.id, step.bytes);
    case 'release':
      return { ok: ledger.release(step.id) };
    case 'reconcile':
      return ledger.reconcile(step.device, {
        driverFreeBytes: step.free,
        hostAvailableBytes: step.host,
        totalBytes: TOTAL,
        unified: step.unified,
        sampledAtMs: nowMs,
      });
  }
}

describe('rules 1 to 5 over random interleavings', () => {
  it('keeps every invariant after every step, and a refused step changes nothing', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const ledger = freshLedger();
        steps.forEach((step, index) => {
          const before = JSON.stringify(ledger.snapshot());
          const { ok } = take(ledger, step, index + 1);
          expect(checkInvariants(ledger.snapshot())).toEqual([]);
          if (!ok && step.do !== 'reconcile') expect(JSON.stringify(ledger.snapshot())).toBe(before);
        });
        for (const id of IDS) ledger.release(id);
        for (const deviceId of DEVICES)
          expect(ledger.book(deviceId)).toMatchObject({ bookedBytes: 0, outstandingBytes: 0 });
        expect(ledger.bookings()).toEqual([]);
      }),
      { numRuns: 400 },
    );
  });

  it('rule 2: an unforced admission leaves cap and floor unbroken at that instant', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const ledger = freshLedger();
        steps.forEach((step, index) => {
          const { ok } = take(ledger, step, index + 1);
          if (step.do !== 'reserve' || !ok || step.forced || step.credit > 0) return;
          const book = ledger.book(step.device);
          const floor = step.soleBig ? LIMITS.hardFloorBytes : LIMITS.floorBytes;
          expect(book?.bookedBytes).toBeLessThanOrEqual(LIMITS.capBytes);
          expect((book?.freeBytes ?? Number.NaN) - (book?.outstandingBytes ?? 0)).toBeGreaterThanOrEqual(
            floor,
          );
        });
      }),
      { numRuns: 400 },
    );
  });

  it('rule 4: a denial carries its figures, and what it calls short is what is missing', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: TOTAL }),
        fc.integer({ min: 0, max: 600 }),
        fc.integer({ min: 0, max: TOTAL }),
        (free, held, need) => {
          const ledger = freshLedger();
          const line = { kind: 'model', deviceId: 'gpu:0', nowMs: 1 } as const;
          ledger.reserve({ ...line, id: 'held', name: 'held', predictedBytes: held, forced: true });
          ledger.reconcile('gpu:0', {
            driverFreeBytes: free,
            hostAvailableBytes: null,
            totalBytes: TOTAL,
            unified: false,
            sampledAtMs: 1,
          });
          const result = ledger.reserve({ ...line, id: 'asked', name: 'asked', predictedBytes: need });
          if (result.ok) return;
          const denial = result.error;
          const overCap = denial.bookedBytes + denial.requestedBytes - (denial.capBytes ?? Number.NaN);
          const underFloor =
            (denial.floorBytes ?? Number.NaN) +
            denial.outstandingBytes +
            denial.requestedBytes -
            (denial.freeBytes ?? Number.NaN);
          expect(denial.shortBytes).toBe(Math.max(overCap, underFloor));
          expect(denial.code).toBe(overCap > 0 ? 'CAP' : 'FLOOR');
          expect(denial.message).toMatch(/^asked needs .*\.$/);
        },
      ),
    );
  });
});

describe('rule 2 with loads that run at the same time', () => {
  it('never lets real use pass total less floor, however loads, readings and deaths interleave', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(
          fc.record({
            bytes: fc.integer({ min: 1, max: 500 }),
            chunks: fc.integer({ min: 1, max: 3 }),
            stays: fc.boolean(),
            crashes: fc.boolean(),
            measured: fc.boolean(),
          }),
          { minLength: 2, maxLength: 8 },
        ),
        fc.integer({ min: 0, max: 300 }),
        async (scheduler, loads, desktop) => {
          const ledger = new Ledger();
          ledger.setLimits('gpu:0', LIMITS);
          const inUse = new Map<string, number>();
          const real = () => desktop + [...inUse.values()].reduce((sum, value) => sum + value, 0);
          let now = 0;
          const sample = () => {
            now += 1;
            ledger.reconcile('gpu:0', {
              driverFreeBytes: TOTAL - real(),
              hostAvailableBytes: null,
              totalBytes: TOTAL,
              unified: false,
              sampledAtMs: now,
            });
            for (const [name, held] of inUse) ledger.seen(name, held);
            expect(checkInvariants(ledger.snapshot())).toEqual([]);
          };
          sample();
          const run = async (load: (typeof loads)[number], index: number) => {
            const name = `model-${index}`;
            await scheduler.schedule(Promise.resolve(), `${name} asks`);
            now += 1;
            const admitted = ledger.reserve({
              id: name,
              kind: 'model',
              name,
              deviceId: 'gpu:0',
              predictedBytes: load.bytes,
              nowMs: now,
            });
            if (!admitted.ok) return;
            for (let chunk = 1; chunk <= load.chunks; chunk++) {
              await scheduler.schedule(Promise.resolve(), `${name} allocates`);
              inUse.set(name, Math.floor((load.bytes * chunk) / load.chunks));
              expect(real()).toBeLessThanOrEqual(TOTAL - LIMITS.floorBytes);
            }
            await scheduler.schedule(Promise.resolve(), `${name} is done`);
            now += 1;
            if (!load.crashes) ledger.commit(name, load.measured ? load.bytes : null, now);
            if (load.crashes || !load.stays) {
              await scheduler.schedule(Promise.resolve(), `${name} goes`);
              inUse.delete(name);
              ledger.release(name);
            }
          };
          const watch = async () => {
            for (let tick = 0; tick < 12; tick++) {
              await scheduler.schedule(Promise.resolve(), 'tick');
              sample();
            }
          };
          const all = Promise.all([watch(), ...loads.map(run)]);
          await scheduler.waitFor(all);
          expect(checkInvariants(ledger.snapshot())).toEqual([]);
        },
      ),
      { numRuns: 300 },
    );
  });
});
