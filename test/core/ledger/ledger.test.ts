import { describe, expect, it } from 'vitest';
import type { ReserveRequest } from '../../../electron/core/ledger/booking.ts';
import { checkInvariants } from '../../../electron/core/ledger/invariants.ts';
import { Ledger } from '../../../electron/core/ledger/ledger.ts';

const GB = 1_000_000_000;
const CARD = 'pci:0000:03:00.0';

function card(freeBytes: number | null, limits: { cap?: number; floor?: number } = {}): Ledger {
  const ledger = new Ledger();
  ledger.setLimits(CARD, {
    totalBytes: 32 * GB,
    capBytes: limits.cap ?? 28.8 * GB,
    floorBytes: limits.floor ?? 4 * GB,
    hardFloorBytes: 2 * GB,
  });
  reading(ledger, freeBytes, 0);
  return ledger;
}

function reading(ledger: Ledger, driverFreeBytes: number | null, sampledAtMs: number): void {
  ledger.reconcile(CARD, {
    driverFreeBytes,
    hostAvailableBytes: null,
    totalBytes: 32 * GB,
    unified: false,
    sampledAtMs,
  });
}

function ask(id: string, predictedBytes: number | null, more: Partial<ReserveRequest> = {}): ReserveRequest {
  return { id, kind: 'model', name: id, deviceId: CARD, predictedBytes, nowMs: 1, ...more };
}

function booked(ledger: Ledger): number | undefined {
  return ledger.book(CARD)?.bookedBytes;
}

describe('rule 1: book before you build', () => {
  it('leaves no trace of a refused load', () => {
    const ledger = card(6.9 * GB);
    const before = JSON.stringify(ledger.snapshot());
    expect(ledger.reserve(ask('qwen-27b', 18.6 * GB)).ok).toBe(false);
    expect(JSON.stringify(ledger.snapshot())).toBe(before);
  });

  it('leaves no trace of a failed load, and a second release is no error', () => {
    const ledger = card(30 * GB);
    const before = JSON.stringify(ledger.snapshot());
    ledger.reserve(ask('a', 5 * GB, { shared: { key: 'w', bytes: 3 * GB } }));
    ledger.seen('a', 2 * GB);
    expect(ledger.release('a')).toBe(true);
    expect(ledger.release('a')).toBe(false);
    expect(JSON.stringify(ledger.snapshot())).toBe(before);
  });

  it('books the weights two agents share once, until the last of them goes', () => {
    const ledger = card(30 * GB);
    const weights = { key: '/models/smol.gguf', bytes: 8 * GB };
    ledger.reserve(ask('one', 1 * GB, { kind: 'agent', shared: weights }));
    ledger.reserve(ask('two', 2 * GB, { kind: 'agent', shared: weights }));
    expect(booked(ledger)).toBe(11 * GB);
    expect(ledger.book(CARD)?.outstandingBytes).toBe(11 * GB);
    ledger.commit('one', 1 * GB);
    expect(ledger.book(CARD)?.outstandingBytes).toBe(2 * GB);
    ledger.release('one');
    expect(booked(ledger)).toBe(10 * GB);
    ledger.release('two');
    expect(booked(ledger)).toBe(0);
  });

  it('asks room for the weights of a second agent only where they are not booked', () => {
    const ledger = card(14 * GB);
    const weights = { key: 'w', bytes: 8 * GB };
    expect(ledger.reserve(ask('one', 1 * GB, { shared: weights })).ok).toBe(true);
    expect(ledger.reserve(ask('two', 1 * GB, { shared: weights })).ok).toBe(true);
    expect(ledger.reserve(ask('other', 1 * GB, { shared: { key: 'x', bytes: 8 * GB } })).ok).toBe(false);
  });

  it('puts measured bytes in the place of predicted ones after the load', () => {
    const ledger = card(30 * GB);
    ledger.reserve(ask('a', 10 * GB));
    ledger.commit('a', 7 * GB);
    expect(booked(ledger)).toBe(7 * GB);
    ledger.seen('a', 8 * GB);
    expect(booked(ledger)).toBe(8 * GB);
  });

  it('keeps the prediction booked while a loaded model can not be measured', () => {
    const ledger = card(30 * GB);
    ledger.reserve(ask('a', 10 * GB));
    ledger.seen('a', 4 * GB);
    ledger.commit('a', null);
    expect(booked(ledger)).toBe(10 * GB);
    ledger.correct('a', 9 * GB);
    expect(booked(ledger)).toBe(9 * GB);
  });

  it('books a forced load whatever is free, once, and takes a later prediction', () => {
    const ledger = card(1 * GB);
    expect(ledger.reserve(ask('a', null, { forced: true })).ok).toBe(true);
    expect(booked(ledger)).toBe(0);
    expect(ledger.reserve(ask('a', 10 * GB, { forced: true })).ok).toBe(true);
    expect(booked(ledger)).toBe(10 * GB);
    expect(ledger.bookings()).toHaveLength(1);
  });

  it('refuses to book a line a second time', () => {
    const ledger = card(30 * GB);
    ledger.reserve(ask('a', 1 * GB));
    const again = ledger.reserve(ask('a', 1 * GB));
    expect(again.ok ? null : again.error.code).toBe('ALREADY_BOOKED');
    expect(booked(ledger)).toBe(1 * GB);
  });
});

describe('rule 2: check and book are one step', () => {
  it('counts part-loaded bytes once', () => {
    const ledger = card(20 * GB);
    ledger.reserve(ask('a', 10 * GB));
    ledger.seen('a', 6 * GB);
    reading(ledger, 14 * GB, 10);
    // 14 free, 4 still to come, floor 4: 6 more fit and not a byte beyond.
    expect(ledger.reserve(ask('b', 6 * GB + 1)).ok).toBe(false);
    expect(ledger.reserve(ask('b', 6 * GB)).ok).toBe(true);
  });

  it('does not give away what a load that just ended took after the last reading', () => {
    const ledger = card(20 * GB);
    ledger.reserve(ask('a', 10 * GB));
    ledger.commit('a', null, 50);
    expect(ledger.reserve(ask('b', 7 * GB)).ok).toBe(false);
    reading(ledger, 20 * GB, 40);
    expect(ledger.reserve(ask('b', 7 * GB)).ok).toBe(false);
    reading(ledger, 10 * GB, 60);
    expect(ledger.book(CARD)?.freeBytes).toBe(10 * GB);
    expect(ledger.reserve(ask('b', 6 * GB)).ok).toBe(true);
  });

  it('trusts the smaller of the driver and total minus the book', () => {
    const ledger = card(30 * GB);
    ledger.reserve(ask('a', 20 * GB));
    ledger.commit('a', 20 * GB);
    reading(ledger, 30 * GB, 10);
    expect(ledger.book(CARD)?.freeBytes).toBe(12 * GB);
    reading(ledger, 5 * GB, 20);
    expect(ledger.book(CARD)?.freeBytes).toBe(5 * GB);
  });

  it('admits into the bytes planned evictions give back, each time anew and never more than is booked', () => {
    const ledger = card(6 * GB);
    ledger.reserve(ask('old', 20 * GB, { forced: true }));
    ledger.commit('old', 20 * GB);
    reading(ledger, 6 * GB, 10);
    expect(ledger.reserve(ask('new', 15 * GB)).ok).toBe(false);
    expect(ledger.reserve(ask('new', 15 * GB, { creditBytes: 20 * GB })).ok).toBe(true);
    expect(ledger.reserve(ask('more', 10 * GB, { creditBytes: 20 * GB })).ok).toBe(false);
    expect(ledger.reserve(ask('more', 27 * GB, { creditBytes: 9000 * GB })).ok).toBe(false);
  });

  for (const bad of [Number.NaN, -1, 1.5, 2 ** 53, Number.POSITIVE_INFINITY])
    it(`refuses ${bad} everywhere and leaves the book as it was`, () => {
      const ledger = card(20 * GB);
      ledger.reserve(ask('a', 5 * GB, { shared: { key: 'w', bytes: GB } }));
      const before = JSON.stringify(ledger.snapshot());
      const refused = ledger.reserve(ask('b', bad, { forced: true }));
      expect(refused.ok ? null : refused.error.code).toBe('BAD_INPUT');
      expect(ledger.reserve(ask('b', 1, { shared: { key: 'x', bytes: bad } })).ok).toBe(false);
      expect(ledger.reserve(ask('b', 1, { creditBytes: bad })).ok).toBe(false);
      expect(ledger.seen('a', bad).ok).toBe(false);
      expect(ledger.seenShared(CARD, 'w', bad).ok).toBe(false);
      expect(ledger.commit('a', bad).ok).toBe(false);
      expect(ledger.correct('a', bad).ok).toBe(false);
      const limits = { totalBytes: bad, capBytes: 1, floorBytes: 1, hardFloorBytes: 1 };
      expect(ledger.setLimits(CARD, limits).ok).toBe(false);
      expect(JSON.stringify(ledger.snapshot())).toBe(before);
    });

  it('refuses a line whose sum would no longer be exact, forced or not', () => {
    const ledger = card(20 * GB);
    expect(ledger.reserve(ask('a', Number.MAX_SAFE_INTEGER, { forced: true })).ok).toBe(true);
    expect(ledger.reserve(ask('b', 1, { forced: true })).ok).toBe(false);
    expect(ledger.seen('a', Number.MAX_SAFE_INTEGER).ok).toBe(true);
    expect(checkInvariants(ledger.snapshot())).toEqual([]);
  });

  it('keeps exact sums with 100 000 lines', () => {
    const ledger = card(32 * GB, { cap: 32 * GB, floor: 0 });
    for (let index = 0; index < 100_000; index++)
      ledger.reserve(ask(`line-${index}`, 100_003, { shared: { key: `w${index % 7}`, bytes: 1_001 } }));
    expect(booked(ledger)).toBe(100_000 * 100_003 + 7 * 1_001);
    for (let index = 0; index < 100_000; index += 2) ledger.commit(`line-${index}`, 7);
    for (let index = 0; index < 100_000; index += 3) ledger.release(`line-${index}`);
    expect(checkInvariants(ledger.snapshot())).toEqual([]);
  });
});

describe('rule 3: the sample counts at once', () => {
  it('refuses what a game has taken since the last tick', () => {
    const ledger = card(20 * GB);
    expect(ledger.reserve(ask('probe', 10 * GB)).ok).toBe(true);
    ledger.release('probe');
    reading(ledger, 12 * GB, 500);
    expect(ledger.reserve(ask('probe', 10 * GB)).ok).toBe(false);
  });

  it('ignores a reading older than the last', () => {
    const ledger = card(20 * GB);
    reading(ledger, 12 * GB, 500);
    reading(ledger, 20 * GB, 400);
    expect(ledger.book(CARD)?.driverFreeBytes).toBe(12 * GB);
  });

  it('bounds unified memory by what the system has available', () => {
    const ledger = card(20 * GB);
    const unified = { driverFreeBytes: 20 * GB, totalBytes: 32 * GB, unified: true };
    ledger.reconcile(CARD, { ...unified, hostAvailableBytes: 5 * GB, sampledAtMs: 9 });
    expect(ledger.book(CARD)?.freeBytes).toBe(5 * GB);
  });
});

describe('rule 4: a denial says why in numbers', () => {
  it('gives the floor with all its figures and what has to go', () => {
    const denied = card(6.9 * GB).reserve(ask('Qwen-27B', 18.6 * GB));
    expect(denied).toEqual({
      ok: false,
      error: {
        code: 'FLOOR',
        message:
          'Qwen-27B needs 18.6 GB; 6.9 GB is free and 4.0 GB of it is kept for the desktop: 15.7 GB has to go first.',
        capBytes: 28.8 * GB,
        bookedBytes: 0,
        requestedBytes: 18.6 * GB,
        freeBytes: 6.9 * GB,
        floorBytes: 4 * GB,
        outstandingBytes: 0,
        shortBytes: 15.7 * GB,
      },
    });
  });

  it('gives the cap where the book is full', () => {
    const ledger = card(30 * GB, { cap: 20 * GB });
    ledger.reserve(ask('a', 15 * GB));
    const denied = ledger.reserve(ask('b', 6 * GB));
    expect(denied.ok ? null : denied.error).toMatchObject({ code: 'CAP', shortBytes: 1 * GB });
    expect(denied.ok ? null : denied.error.message).toBe(
      'b needs 6.0 GB; models may book 20.0 GB on this device and 15.0 GB is booked: 1.0 GB has to go first.',
    );
  });

  it('frees exactly enough: what it calls short makes it fit', () => {
    const ledger = card(20 * GB);
    ledger.reserve(ask('a', 8 * GB, { forced: true }));
    ledger.commit('a', 8 * GB);
    reading(ledger, 20 * GB, 5);
    const denied = ledger.reserve(ask('b', 19 * GB));
    const short = denied.ok ? null : denied.error.shortBytes;
    expect(short).toBe(3 * GB);
    expect(ledger.reserve(ask('b', 19 * GB, { creditBytes: (short ?? 0) - 1 })).ok).toBe(false);
    expect(ledger.reserve(ask('b', 19 * GB, { creditBytes: short ?? 0 })).ok).toBe(true);
  });

  it('says when a model can not fit at all', () => {
    const denied = card(20 * GB).reserve(ask('huge', 40 * GB));
    expect(denied.ok ? null : denied.error.message).toContain("can't fit here even alone (28.0 GB at most)");
  });

  it('gives a job no advice that is for models', () => {
    const denied = card(20 * GB).reserve(ask('render', 40 * GB, { kind: 'reserved' }));
    expect(denied.ok ? null : denied.error.message).toMatch(
      /even alone .* Book less, or use another device\.$/,
    );
    const blind = card(null).reserve(ask('render', 1 * GB, { kind: 'reserved' }));
    expect(blind.ok ? null : blind.error.message).toMatch(/says what fails\)\.$/);
  });

  it('lets a sole big model down to the hard floor and no further', () => {
    const ledger = card(20.7 * GB);
    expect(ledger.reserve(ask('big', 18.6 * GB)).ok).toBe(false);
    expect(ledger.reserve(ask('big', 18.8 * GB, { soleBig: true })).ok).toBe(false);
    expect(ledger.reserve(ask('big', 18.6 * GB, { soleBig: true })).ok).toBe(true);
  });

  it('names a device that is not there', () => {
    const denied = card(20 * GB).reserve(ask('a', 1, { deviceId: 'pci:gone' }));
    expect(denied.ok ? null : denied.error.code).toBe('UNKNOWN_DEVICE');
  });
});

describe('rule 5: unknown is neither 0 nor endless', () => {
  it('denies on unknown free memory as unknown, unless forced', () => {
    const ledger = card(null);
    const denied = ledger.reserve(ask('a', 1));
    expect(denied.ok ? null : denied.error).toMatchObject({
      code: 'UNKNOWN_FREE',
      freeBytes: null,
      shortBytes: null,
    });
    expect(ledger.reserve(ask('a', 1, { forced: true })).ok).toBe(true);
  });

  it('denies on an unknown floor or cap', () => {
    for (const unknown of [{ capBytes: null }, { floorBytes: null, hardFloorBytes: null }]) {
      const ledger = card(20 * GB);
      const known = { totalBytes: 32 * GB, capBytes: 28 * GB, floorBytes: GB, hardFloorBytes: GB };
      ledger.setLimits(CARD, { ...known, ...unknown });
      const denied = ledger.reserve(ask('a', 1));
      expect(denied.ok ? null : denied.error.code).toBe('UNKNOWN_FREE');
    }
  });

  it('forgets a reading past its validity', () => {
    const ledger = card(20 * GB);
    ledger.reconcile(CARD, {
      driverFreeBytes: 20 * GB,
      hostAvailableBytes: null,
      totalBytes: 32 * GB,
      unified: false,
      sampledAtMs: 100,
      validForMs: 1_500,
    });
    expect(ledger.reserve(ask('late', 1, { nowMs: 1_601 })).ok).toBe(false);
    expect(ledger.reserve(ask('in time', 1, { nowMs: 1_600 })).ok).toBe(true);
  });

  it('takes a garbled reading as unknown and says so', () => {
    const ledger = card(20 * GB);
    const garbled = { driverFreeBytes: Number.NaN, hostAvailableBytes: null, totalBytes: 32 * GB };
    expect(ledger.reconcile(CARD, { ...garbled, unified: false, sampledAtMs: 9 }).ok).toBe(false);
    expect(ledger.book(CARD)?.freeBytes).toBeNull();
  });

  it('lets an unknown footprint in only where nothing is short', () => {
    expect(card(4 * GB).reserve(ask('a', null)).ok).toBe(true);
    expect(card(4 * GB - 1).reserve(ask('a', null)).ok).toBe(false);
  });
});
