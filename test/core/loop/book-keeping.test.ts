import { describe, expect, it } from 'vitest';
import { checkInvariants } from '../../../electron/core/ledger/invariants.ts';
import { Ledger } from '../../../electron/core/ledger/ledger.ts';
import { bookingId, bookModel, SLEEPING_BYTES } from '../../../electron/core/loop/book-keeping.ts';
import { guardDevice } from '../../../electron/core/loop/world.ts';
import { deviceSample } from '../../support/device-sample.ts';
import { modelView } from '../../support/model-view.ts';

const GB = 1_000_000_000;

const SAMPLE = deviceSample({
  name: 'a card',
  usedBytes: 4 * GB,
  freeBytes: 30 * GB,
  gttUsedBytes: null,
});

function ledger(): Ledger {
  const book = new Ledger();
  book.setLimits('sim:0', {
    totalBytes: 34 * GB,
    capBytes: 30 * GB,
    floorBytes: 4 * GB,
    hardFloorBytes: 2 * GB,
  });
  book.reconcile('sim:0', {
    driverFreeBytes: 30 * GB,
    hostAvailableBytes: null,
    totalBytes: 34 * GB,
    unified: false,
    sampledAtMs: 0,
  });
  return book;
}

describe('the book follows what backends do (rule 3)', () => {
  it('books a load that nobody asked us for, counts it as outstanding, and lets it go', () => {
    const book = ledger();
    const look = (change: Parameters<typeof modelView>[0], nowMs: number): void => {
      bookModel(book, modelView(change), false, nowMs);
      expect(checkInvariants(book.snapshot())).toEqual([]);
    };
    look({ status: 'loading', predictedBytes: 18 * GB }, 1);
    expect(book.book('sim:0')).toMatchObject({ bookedBytes: 18 * GB, outstandingBytes: 18 * GB });
    look({ status: 'loading', predictedBytes: 18 * GB, measuredBytes: 5 * GB }, 2);
    expect(book.book('sim:0')).toMatchObject({ bookedBytes: 18 * GB, outstandingBytes: 13 * GB });
    look({ status: 'loaded', predictedBytes: 18 * GB, measuredBytes: 18.6 * GB }, 3);
    expect(book.book('sim:0')).toMatchObject({ bookedBytes: 18.6 * GB, outstandingBytes: 0 });
    look({ status: 'unloaded', predictedBytes: 18 * GB }, 4);
    expect(book.book('sim:0')?.bookedBytes).toBe(0);
    expect(book.bookings()).toEqual([]);
  });

  it('keeps a prediction until a reading shows the loaded model at rest, not one from amid its load', () => {
    const book = ledger();
    const look = (change: Parameters<typeof modelView>[0], nowMs: number): void => {
      bookModel(book, modelView({ predictedBytes: 18 * GB, ...change }), false, nowMs);
      expect(checkInvariants(book.snapshot())).toEqual([]);
    };
    const next = (nowMs: number) =>
      book.reserve({
        id: 'next',
        kind: 'model',
        name: 'next',
        deviceId: 'sim:0',
        predictedBytes: 13 * GB,
        nowMs,
      });
    look({ status: 'loading', measuredBytes: 2 * GB }, 1);
    look({ status: 'loaded', measuredBytes: null, atRest: false }, 2);
    look({ status: 'loaded', measuredBytes: 2 * GB, atRest: false }, 2);
    expect(book.book('sim:0')).toMatchObject({ bookedBytes: 18 * GB, outstandingBytes: 16 * GB });
    const denied = next(3);
    expect(denied).toMatchObject({ ok: false, error: { code: 'CAP' } });
    if (denied.ok) return;
    expect(book.mayYetFit('sim:0', denied.error)).toBe(true);
    expect(book.mayYetFit('sim:0', { ...denied.error, shortBytes: 17 * GB })).toBe(false);
    // It took less than was predicted: now that is known, and the other one fits.
    look({ status: 'loaded', measuredBytes: 15 * GB }, 4);
    expect(book.book('sim:0')).toMatchObject({ bookedBytes: 15 * GB, outstandingBytes: 0 });
    expect(book.mayYetFit('sim:0', denied.error)).toBe(false);
    expect(next(5).ok).toBe(true);
  });

  it('keeps it also where the process was found after the load, and its figure is from amid it', () => {
    const book = ledger();
    const loaded = modelView({ status: 'loaded', predictedBytes: 18 * GB });
    bookModel(book, loaded, false, 1);
    bookModel(book, { ...loaded, measuredBytes: 2 * GB, atRest: false }, false, 2);
    expect(book.book('sim:0')?.bookedBytes).toBe(18 * GB);
    bookModel(book, { ...loaded, measuredBytes: 15 * GB }, false, 3);
    expect(book.book('sim:0')?.bookedBytes).toBe(15 * GB);
    // A first prompt takes more: that is booked at once.
    bookModel(book, { ...loaded, measuredBytes: 18.5 * GB, atRest: false }, false, 4);
    expect(book.book('sim:0')?.bookedBytes).toBe(18.5 * GB);
  });

  it('keeps from the guards what only an admission has to doubt: they go by readings', () => {
    const book = ledger();
    const look = { predictedBytes: 18 * GB, measuredBytes: 2 * GB };
    bookModel(book, modelView({ ...look, status: 'loading' }), false, 1);
    const told = () => {
      const now = book.book('sim:0');
      return now === null ? null : guardDevice(SAMPLE, now, null, 1).outstandingBytes;
    };
    expect(told()).toBe(16 * GB);
    bookModel(book, modelView({ ...look, status: 'loaded', atRest: false }), false, 2);
    expect(book.book('sim:0')?.outstandingBytes).toBe(16 * GB);
    expect(told()).toBe(0);
  });

  it('takes what a model held awake until a reading shows it asleep', () => {
    const book = ledger();
    bookModel(book, modelView({ status: 'loaded', measuredBytes: 18 * GB }), false, 1);
    bookModel(book, modelView({ status: 'sleeping', measuredBytes: 18 * GB, atRest: false }), false, 2);
    expect(book.book('sim:0')?.bookedBytes).toBe(18 * GB);
    bookModel(book, modelView({ status: 'sleeping', measuredBytes: 0.4 * GB }), false, 3);
    expect(book.book('sim:0')?.bookedBytes).toBe(0.4 * GB);
  });

  it('takes a sleeping model for small, not for nothing', () => {
    const book = ledger();
    bookModel(
      book,
      modelView({ status: 'loaded', predictedBytes: 18 * GB, measuredBytes: 18 * GB }),
      false,
      1,
    );
    bookModel(book, modelView({ status: 'sleeping', predictedBytes: 18 * GB }), false, 2);
    expect(book.book('sim:0')?.bookedBytes).toBe(SLEEPING_BYTES);
  });

  it('takes a model for small that was asleep when it was first seen, before any reading', () => {
    const book = ledger();
    bookModel(book, modelView({ status: 'sleeping', predictedBytes: 18 * GB, atRest: false }), false, 1);
    expect(book.book('sim:0')?.bookedBytes).toBe(SLEEPING_BYTES);
  });

  it('keeps the line of a load of ours that its backend has not begun yet', () => {
    const book = ledger();
    const view = modelView({ predictedBytes: 18 * GB });
    book.reserve({
      id: bookingId(view.id),
      kind: 'model',
      name: view.id,
      deviceId: 'sim:0',
      predictedBytes: 18 * GB,
      nowMs: 1,
    });
    bookModel(book, view, true, 2);
    expect(book.book('sim:0')?.bookedBytes).toBe(18 * GB);
    bookModel(book, view, false, 3);
    expect(book.book('sim:0')?.bookedBytes).toBe(0);
  });

  it('moves the line with the model to the device it is really on', () => {
    const book = ledger();
    book.setLimits('sim:1', { totalBytes: 8 * GB, capBytes: 7 * GB, floorBytes: GB, hardFloorBytes: GB / 2 });
    bookModel(book, modelView({ status: 'loaded', measuredBytes: 5 * GB }), false, 1);
    bookModel(book, modelView({ status: 'loaded', measuredBytes: 5 * GB, deviceId: 'sim:1' }), false, 2);
    expect(book.book('sim:0')?.bookedBytes).toBe(0);
    expect(book.book('sim:1')?.bookedBytes).toBe(5 * GB);
  });
});
