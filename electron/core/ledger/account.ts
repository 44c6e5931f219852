import type { DeviceBook, DeviceLimits } from './booking.ts';
import { freeBytes, type Reading } from './free.ts';
import {
  bookedOf,
  type Line,
  outstandingOf,
  type SharedWeights,
  sharedBookedOf,
  sharedOutstandingOf,
} from './lines.ts';

/** What one step of the ledger puts in place of what; undefined: no line (no weights) on that side. */
export interface Change {
  readonly lineBefore: Line | undefined;
  readonly lineAfter: Line | undefined;
  readonly sharedBefore: SharedWeights | undefined;
  readonly sharedAfter: SharedWeights | undefined;
}

/**
 * The lines of one device with their running sums, so that a step costs the same whether the book
 * holds ten lines or a hundred thousand.
 */
export class Account {
  readonly deviceId: string;
  limits: DeviceLimits | null = null;
  reading: Reading | null = null;
  readonly lines = new Map<string, Line>();
  readonly shared = new Map<string, SharedWeights>();
  readonly settling = new Set<string>();
  readonly resting = new Set<string>();
  bookedBytes = 0;
  outstandingBytes = 0;
  settlingBytes = 0;

  constructor(deviceId: string) {
    this.deviceId = deviceId;
  }

  /** Applies the change and returns true, or leaves all as it was and returns false when the sum would no longer be exact. */
  apply(change: Change): boolean {
    const { lineBefore, lineAfter, sharedBefore, sharedAfter } = change;
    const bookedBytes =
      this.bookedBytes -
      (lineBefore ? bookedOf(lineBefore) : 0) -
      (sharedBefore ? sharedBookedOf(sharedBefore) : 0) +
      (lineAfter ? bookedOf(lineAfter) : 0) +
      (sharedAfter ? sharedBookedOf(sharedAfter) : 0);
    if (!Number.isSafeInteger(bookedBytes)) return false;
    this.bookedBytes = bookedBytes;
    this.outstandingBytes +=
      (lineAfter ? outstandingOf(lineAfter) : 0) -
      (lineBefore ? outstandingOf(lineBefore) : 0) +
      (sharedAfter ? sharedOutstandingOf(sharedAfter) : 0) -
      (sharedBefore ? sharedOutstandingOf(sharedBefore) : 0);
    this.settlingBytes += (lineAfter?.settlingBytes ?? 0) - (lineBefore?.settlingBytes ?? 0);
    this.#store(change);
    return true;
  }

  /** What the reading taken at `sampledAtMs` shows is no longer settling. */
  settle(sampledAtMs: number): void {
    for (const id of [...this.settling]) {
      const line = this.lines.get(id);
      if (line === undefined || (line.settlingSinceMs !== null && line.settlingSinceMs >= sampledAtMs))
        continue;
      this.apply({
        lineBefore: line,
        lineAfter: { ...line, settlingBytes: 0, settlingSinceMs: null },
        sharedBefore: undefined,
        sharedAfter: undefined,
      });
    }
  }

  /** What is outstanding of loads that are over: nothing more may come. */
  restingBytes(): number {
    let bytes = 0;
    for (const id of this.resting) {
      const line = this.lines.get(id);
      if (line !== undefined) bytes += outstandingOf(line);
    }
    return bytes;
  }

  book(nowMs: number | null = null): DeviceBook {
    return {
      deviceId: this.deviceId,
      totalBytes: this.limits?.totalBytes ?? null,
      capBytes: this.limits?.capBytes ?? null,
      floorBytes: this.limits?.floorBytes ?? null,
      hardFloorBytes: this.limits?.hardFloorBytes ?? null,
      bookedBytes: this.bookedBytes,
      outstandingBytes: this.outstandingBytes,
      restingBytes: this.restingBytes(),
      driverFreeBytes: this.reading?.driverFreeBytes ?? null,
      freeBytes: freeBytes(this.reading, this.limits, this, nowMs),
      sampledAtMs: this.reading?.sampledAtMs ?? null,
    };
  }

  #store({ lineBefore, lineAfter, sharedBefore, sharedAfter }: Change): void {
    if (lineAfter !== undefined) {
      this.lines.set(lineAfter.id, lineAfter);
      if (lineAfter.settlingBytes > 0) this.settling.add(lineAfter.id);
      else this.settling.delete(lineAfter.id);
      if (lineAfter.resting) this.resting.add(lineAfter.id);
      else this.resting.delete(lineAfter.id);
    } else if (lineBefore !== undefined) {
      this.lines.delete(lineBefore.id);
      this.settling.delete(lineBefore.id);
      this.resting.delete(lineBefore.id);
    }
    if (sharedAfter !== undefined) this.shared.set(sharedAfter.key, sharedAfter);
    else if (sharedBefore !== undefined) this.shared.delete(sharedBefore.key);
  }
}
