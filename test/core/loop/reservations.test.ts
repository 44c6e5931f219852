import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeviceSample, ProcessMemory } from '../../../electron/core/devices/sample.ts';
import { attribute } from '../../../electron/core/ledger/attribution.ts';
import { checkInvariants } from '../../../electron/core/ledger/invariants.ts';
import { Ledger } from '../../../electron/core/ledger/ledger.ts';
import { Reservations } from '../../../electron/core/loop/reservations.ts';
import type { TreeMember } from '../../../electron/core/process/process-tree.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { deviceSample } from '../../support/device-sample.ts';
import { handClock } from '../../support/serve-fake.ts';

const GB = 1_000_000_000;

function sample(freeBytes: number | null): DeviceSample {
  return deviceSample({
    drivesDisplay: null,
    totalBytes: 24 * GB,
    usedBytes: freeBytes === null ? null : 24 * GB - freeBytes,
    freeBytes,
    gttUsedBytes: null,
    takenAtMs: 1_000,
  });
}

function row(pid: number, bytes: number | null, name = 'python3'): ProcessMemory {
  return {
    pid,
    startTimeTicks: pid * 10,
    name,
    deviceId: 'sim:0',
    bytes,
    gttBytes: null,
    type: 'C',
    source: 'nvml',
  };
}

const member = (pid: number): TreeMember => ({ pid, startTimeTicks: pid * 10 });

function desk() {
  const ledger = new Ledger();
  ledger.setLimits('sim:0', {
    totalBytes: 24 * GB,
    capBytes: 21 * GB,
    floorBytes: 3 * GB,
    hardFloorBytes: 1 * GB,
  });
  ledger.reconcile('sim:0', {
    driverFreeBytes: 22 * GB,
    hostAvailableBytes: null,
    totalBytes: 24 * GB,
    unified: false,
    sampledAtMs: 1_000,
  });
  const clock = handClock();
  const events: NewEvent[] = [];
  const tree = new Map<number, readonly number[]>();
  const ends: string[] = [];
  const reservations = new Reservations({
    ledger,
    clock,
    tell: (event) => events.push(event),
    readTree: async (roots) =>
      [...new Set(roots.flatMap(({ pid }) => [pid, ...(tree.get(pid) ?? [])]))].map(member),
    changed: () => undefined,
  });
  const add = (id: string, bytes: number, holder: number | null): void => {
    const booked = ledger.reserve({
      id,
      kind: 'reserved',
      name: id,
      deviceId: 'sim:0',
      predictedBytes: bytes,
      nowMs: 0,
    });
    if (!booked.ok) throw new Error(booked.error.message);
    const deviceName = 'Card';
    reservations.add(
      {
        id,
        name: id,
        deviceId: 'sim:0',
        deviceName,
        bytes,
        holder: holder === null ? null : member(holder),
      },
      (how) => ends.push(`${id} ${how}`),
    );
  };
  const look = (freeBytes: number | null, processes: readonly ProcessMemory[] | null): boolean =>
    reservations.look({
      sequence: 1,
      takenAtMs: 1_000,
      devices: [sample(freeBytes)],
      processes,
      troubles: [],
    });
  const book = () => ledger.book('sim:0');
  return { ledger, clock, events, tree, ends, reservations, add, look, book };
}

describe('a reservation', () => {
  it('is promised in full until its processes hold it, and again what they give back', () => {
    const { add, look, book } = desk();
    add('render', 9 * GB, 40);
    expect(book()).toMatchObject({ bookedBytes: 9 * GB, outstandingBytes: 9 * GB });
    look(18 * GB, [row(40, 4 * GB)]);
    expect(book()).toMatchObject({ bookedBytes: 9 * GB, outstandingBytes: 5 * GB });
    look(20 * GB, [row(40, 2 * GB)]);
    expect(book()).toMatchObject({ bookedBytes: 9 * GB, outstandingBytes: 7 * GB });
    look(22 * GB, [row(7, 1 * GB, 'Xorg')]);
    expect(book()).toMatchObject({ bookedBytes: 9 * GB, outstandingBytes: 9 * GB });
  });

  it('counts as booked what it takes beyond what it asked for, and says so at its end', () => {
    const { add, look, book, events, clock, reservations } = desk();
    add('render', 9 * GB, 40);
    look(11 * GB, [row(40, 11 * GB)]);
    expect(book()).toMatchObject({ bookedBytes: 11 * GB, outstandingBytes: 0 });
    clock.advance(60_000);
    reservations.end('render', 'closed');
    expect(events.at(-1)).toMatchObject({
      kind: 'reservation_over',
      deviceId: 'sim:0',
      numbers: { reservedBytes: 9 * GB, peakBytes: 11 * GB, heldMs: 60_000 },
    });
    expect(events.at(-1)?.reason).toContain('11.0 GB at most, more than it had booked');
  });

  it('counts the whole family of its holder, once', async () => {
    const { add, look, book, tree, reservations } = desk();
    tree.set(40, [41, 42]);
    add('render', 9 * GB, 40);
    await expect.poll(() => reservations.list()[0]?.pids).toEqual([40, 41, 42]);
    const rows = [row(41, 3 * GB), row(42, 1 * GB), row(43, 5 * GB)];
    look(13 * GB, rows);
    expect(reservations.list()[0]?.measuredBytes).toBe(4 * GB);
    expect(book()?.outstandingBytes).toBe(5 * GB);
  });

  it('shows as a tenant with what it holds, which is then nobody else’s', async () => {
    const { add, look, tree, ledger, reservations } = desk();
    tree.set(40, [41]);
    add('render', 9 * GB, 40);
    await expect.poll(() => reservations.list()[0]?.pids).toEqual([40, 41]);
    const processes = [row(41, 3 * GB), row(99, 2 * GB, 'blender')];
    look(18 * GB, processes);
    const bookings = ledger.bookedOn('sim:0');
    const holders = reservations.holders();
    const tenants = attribute({ sample: sample(18 * GB), processes, models: [], bookings, holders });
    expect(tenants.map(({ kind, name, measuredBytes }) => [kind, name, measuredBytes])).toEqual([
      ['reserved', 'render', 3 * GB],
      ['foreign', 'blender', 2 * GB],
      ['desktop', 'the desktop', 1 * GB],
    ]);
    expect(tenants[0]).toMatchObject({ id: 'render', predictedBytes: 9 * GB, pids: [40, 41] });
  });

  it('holds nothing while the driver names others only, and an unknown amount where it names nobody (rule 5)', () => {
    const { add, look, reservations } = desk();
    add('render', 9 * GB, 40);
    look(22 * GB, []);
    expect(reservations.list()[0]?.measuredBytes).toBeNull();
    look(22 * GB, [row(7, null, 'Xorg')]);
    expect(reservations.list()[0]?.measuredBytes).toBeNull();
    look(22 * GB, [row(7, 1 * GB, 'Xorg')]);
    expect(reservations.list()[0]?.measuredBytes).toBe(0);
    look(22 * GB, [row(40, null)]);
    expect(reservations.list()[0]?.measuredBytes).toBe(0);
  });

  it('asks for a look at the processes when free memory falls before they are seen', () => {
    const { add, look } = desk();
    expect(look(22 * GB, [row(7, 1 * GB)])).toBe(false);
    expect(look(14 * GB, null)).toBe(false);
    add('render', 9 * GB, 40);
    look(22 * GB, [row(7, 1 * GB)]);
    expect(look(21.98 * GB, null)).toBe(false);
    expect(look(null, null)).toBe(false);
    expect(look(14 * GB, null)).toBe(true);
    look(13 * GB, [row(40, 9 * GB)]);
    expect(look(12 * GB, null)).toBe(false);
  });

  it('is given back at once, told once with its reason, and leaves no trace (rules 1 and 21)', () => {
    const { add, ledger, events, ends, reservations } = desk();
    add('render', 9 * GB, null);
    expect(events[0]).toMatchObject({ kind: 'reserved', numbers: { reservedBytes: 9 * GB } });
    expect(reservations.end('render', 'ended')).toBe(true);
    expect(reservations.end('render', 'closed')).toBe(false);
    expect(events).toHaveLength(2);
    expect(events[1]?.reason).toContain('somebody asked for its end');
    expect(ends).toEqual(['render ended']);
    expect(ledger.bookings()).toEqual([]);
    expect(ledger.book('sim:0')).toMatchObject({ bookedBytes: 0, outstandingBytes: 0 });
    expect(reservations.list()).toEqual([]);
  });

  it('leaves the book equal to the sum of its parts, whatever order jobs come, take and go in', () => {
    const step = fc.oneof(
      fc.record({
        what: fc.constant('add' as const),
        job: fc.nat(3),
        bytes: fc.integer({ min: 1, max: 6 * GB }),
      }),
      fc.record({ what: fc.constant('end' as const), job: fc.nat(3) }),
      fc.record({
        what: fc.constant('look' as const),
        job: fc.nat(3),
        bytes: fc.option(fc.integer({ min: 0, max: 12 * GB })),
      }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const { add, look, ledger, reservations } = desk();
        for (const one of steps) {
          const id = `job-${one.job}`;
          const booked = ledger.booking(id) !== null;
          if (
            one.what === 'add' &&
            !booked &&
            (ledger.book('sim:0')?.bookedBytes ?? 0) + one.bytes <= 12 * GB
          )
            add(id, one.bytes, 40 + one.job);
          if (one.what === 'end') expect(reservations.end(id, 'closed')).toBe(booked);
          if (one.what === 'look') look(20 * GB, [row(40 + one.job, one.bytes)]);
          expect(checkInvariants(ledger.snapshot())).toEqual([]);
          expect(ledger.bookings().map((line) => line.id)).toEqual(
            reservations.list().map((held) => held.id),
          );
        }
      }),
      { numRuns: 100 },
    );
  });
});
