import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes, formatDuration } from '../../../shared/format.ts';
import type { Clock } from '../clock.ts';
import type { ProcessMemory, SampleSet } from '../devices/sample.ts';
import { heldBy } from '../ledger/attribution.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { TreeMember } from '../process/process-tree.ts';
import type { Reservation, ReservationEnd } from '../runtime-api.ts';

/**
 * A job's booking, from the ledger's yes to its end.
 *
 *   reserved (outstanding: booked less what its processes hold now) ─► over (connection closed, ended, stopping)
 *
 * The line never leaves the ledger's `loading`: a job takes its memory and gives it back as its stages
 * come, and what it does not hold at the moment stays promised to it.
 */
export interface NewReservation {
  /** Of its line in the ledger, which is there already. */
  readonly id: string;
  readonly name: string;
  readonly deviceId: string;
  readonly deviceName: string;
  readonly bytes: number;
  /** Who asked for it; null: not known, and nothing of it is measured. */
  readonly holder: TreeMember | null;
}

interface Held extends NewReservation {
  readonly sinceMs: number;
  readonly sinceEpochMs: number;
  readonly onOver: (end: ReservationEnd) => void;
  processes: readonly TreeMember[];
  seenBytes: number | null;
  peakBytes: number | null;
}

export interface ReservationsOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly tell: (event: NewEvent) => void;
  /** Those of these processes that are still there, and their descendants. */
  readonly readTree: (roots: readonly TreeMember[]) => Promise<readonly TreeMember[]>;
  /** What is booked, or whose a process is, has changed. */
  readonly changed: () => void;
}

/** Free memory that fell by so much may be a job taking what it has booked. */
const FALL_BYTES = 64 * 1024 * 1024;
/** A process list older than this says nothing of now. */
const ROWS_KEPT_MS = 15_000;

/** The bookings of jobs that are no models: who holds them, what they take, and when they end. */
export class Reservations {
  readonly #options: ReservationsOptions;
  readonly #held = new Map<string, Held>();
  readonly #freeThen = new Map<string, number | null>();
  #rows: readonly ProcessMemory[] = [];
  #rowsAtMs = 0;
  #reading = false;

  constructor(options: ReservationsOptions) {
    this.#options = options;
  }

  /** `onOver` is called once, however it ends. */
  add(booked: NewReservation, onOver: (end: ReservationEnd) => void): Reservation {
    const { clock, tell, changed } = this.#options;
    const held: Held = {
      ...booked,
      sinceMs: clock.monotonicMs(),
      sinceEpochMs: clock.epochMs(),
      onOver,
      processes: booked.holder === null ? [] : [booked.holder],
      seenBytes: null,
      peakBytes: null,
    };
    this.#held.set(booked.id, held);
    this.#measure();
    tell({
      kind: 'reserved',
      deviceId: booked.deviceId,
      reason: `${booked.name} reserved ${formatBytes(booked.bytes)} on ${booked.deviceName}; that is kept for it until it ends.`,
      numbers: { reservedBytes: booked.bytes },
    });
    changed();
    void this.#readTrees();
    return shown(held);
  }

  /** Gives it back at once; false: there is no such reservation (any more). */
  end(id: string, how: ReservationEnd): boolean {
    const held = this.#held.get(id);
    if (held === undefined) return false;
    this.#held.delete(id);
    const { ledger, clock, tell, changed } = this.#options;
    ledger.release(id);
    const heldMs = clock.monotonicMs() - held.sinceMs;
    tell({
      kind: 'reservation_over',
      deviceId: held.deviceId,
      reason: `${held.name} gave back the ${formatBytes(held.bytes)} it had reserved on ${held.deviceName} after ${formatDuration(heldMs)}: ${WHY[how]}.${peakSentence(held)}`,
      numbers: { reservedBytes: held.bytes, peakBytes: held.peakBytes, heldMs: Math.round(heldMs) },
    });
    held.onOver(how);
    changed();
    return true;
  }

  /** Oldest first. */
  list(): readonly Reservation[] {
    return [...this.#held.values()].map(shown);
  }

  /** Their processes, by the id of the line. */
  holders(): ReadonlyMap<string, readonly TreeMember[]> {
    return new Map([...this.#held.values()].map((held) => [held.id, held.processes]));
  }

  /**
   * Takes one turn of the sampler into the book. True: a job seems to be taking its memory, so its
   * processes are wanted now; until they are seen its bytes count twice, as gone and as promised.
   */
  look(set: SampleSet): boolean {
    if (set.processes === null && set.takenAtMs - this.#rowsAtMs > ROWS_KEPT_MS) this.#rows = [];
    if (set.processes !== null) {
      this.#rows = set.processes;
      this.#rowsAtMs = set.takenAtMs;
      for (const { id, freeBytes } of set.devices) this.#freeThen.set(id, freeBytes);
      this.#measure();
      if (this.#held.size > 0) void this.#readTrees();
      return false;
    }
    return set.devices.some(({ id, freeBytes }) => {
      const then = this.#freeThen.get(id) ?? null;
      const promised = [...this.#held.values()].some(
        (held) => held.deviceId === id && held.bytes > (held.seenBytes ?? 0),
      );
      return promised && then !== null && freeBytes !== null && then - freeBytes >= FALL_BYTES;
    });
  }

  #measure(): void {
    for (const held of this.#held.values()) {
      if (held.processes.length === 0) continue;
      const here = this.#rows.filter((row) => row.deviceId === held.deviceId);
      const mine = heldBy(here, held.processes);
      // Where the driver tells of others and not of it, it holds nothing yet; where it tells of nobody, that is unknown.
      const bytes = mine ?? (here.some((row) => row.bytes !== null) ? 0 : null);
      if (bytes === null) continue;
      held.seenBytes = bytes;
      held.peakBytes = Math.max(held.peakBytes ?? 0, bytes);
      this.#options.ledger.seen(held.id, bytes);
    }
  }

  /** One reading at a time; a process once found is kept, also when its parent has left it. */
  async #readTrees(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    try {
      let moved = false;
      for (const held of [...this.#held.values()]) {
        const before = held.processes.map((process) => process.pid).join();
        const roots = held.holder === null ? held.processes : [held.holder, ...held.processes];
        held.processes = roots.length === 0 ? [] : await this.#options.readTree(roots);
        moved ||= before !== held.processes.map((process) => process.pid).join();
      }
      if (!moved) return;
      this.#measure();
      this.#options.changed();
    } finally {
      this.#reading = false;
    }
  }
}

const WHY: Readonly<Record<ReservationEnd, string>> = {
  closed: 'the program that held it ended or closed its connection',
  ended: 'somebody asked for its end',
  stopping: 'VRAM Landlord is being stopped',
};

function peakSentence(held: Held): string {
  if (held.peakBytes === null || held.peakBytes === 0) return '';
  const over = held.peakBytes > held.bytes ? ', more than it had booked' : '';
  return ` It was seen to take ${formatBytes(held.peakBytes)} at most${over}.`;
}

function shown(held: Held): Reservation {
  return {
    id: held.id,
    name: held.name,
    deviceId: held.deviceId,
    bytes: held.bytes,
    measuredBytes: held.seenBytes,
    pids: held.processes.map((process) => process.pid),
    since: new Date(held.sinceEpochMs).toISOString(),
  };
}
