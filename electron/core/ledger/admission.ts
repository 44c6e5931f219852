import { formatBytes } from '../../../shared/format.ts';
import type { Denial, DeviceBook } from './booking.ts';

/** What is asked for, once shared weights that are already booked have been taken off. */
export interface Need {
  readonly name: string;
  /** Bytes over and above the book; null: nobody can say. */
  readonly bytes: number | null;
  /** A reserved job, not a model's load. */
  readonly job?: boolean;
  readonly soleBig: boolean;
  /** What planned evictions give back. */
  readonly creditBytes: number;
}

/**
 * Admission per device (design §1): booked + need ≤ cap, and free − outstanding − need ≥ floor.
 * An unknown figure is neither 0 nor endless: without free, cap and floor nothing is admitted. A need
 * nobody can tell gets in only while the device is inside its limits as it stands; the load itself is
 * then the measurement, and the guards make room if it turns out too much.
 *
 * Returns null when it fits.
 */
export function denial(book: DeviceBook, need: Need): Denial | null {
  const { capBytes, freeBytes, bookedBytes, outstandingBytes } = book;
  const floorBytes = need.soleBig ? (book.hardFloorBytes ?? book.floorBytes) : book.floorBytes;
  const requestedBytes = need.bytes ?? 0;
  const numbers = { capBytes, bookedBytes, requestedBytes, freeBytes, floorBytes, outstandingBytes };
  if (freeBytes === null || capBytes === null || floorBytes === null) {
    const what =
      freeBytes === null
        ? 'how much memory is free'
        : capBytes === null
          ? 'how much models may book'
          : 'how much to keep free';
    const message = `${need.name} needs ${wants(need)}, but ${what} on ${book.deviceId} is not known: mend the reading (\`landlord doctor\` says what fails)${need.job === true ? '' : ', or force the load'}.`;
    return { code: 'UNKNOWN_FREE', message, ...numbers, shortBytes: null };
  }
  // Only what has been booked and is there can be given back.
  const credit = Math.min(need.creditBytes, bookedBytes - outstandingBytes);
  const overCap = bookedBytes - credit + requestedBytes - capBytes;
  const underFloor = floorBytes + outstandingBytes + requestedBytes - freeBytes - credit;
  const shortBytes = Math.min(Number.MAX_SAFE_INTEGER, Math.max(overCap, underFloor));
  if (shortBytes <= 0) return null;
  const code = overCap > 0 ? 'CAP' : 'FLOOR';
  const message = sentence(book, need, floorBytes, { overCap, underFloor, credit });
  return { code, message, ...numbers, shortBytes };
}

function wants(need: Need): string {
  return need.bytes === null ? 'an unknown amount' : formatBytes(need.bytes);
}

function sentence(
  book: DeviceBook,
  need: Need,
  floorBytes: number,
  short: { readonly overCap: number; readonly underFloor: number; readonly credit: number },
): string {
  const clauses: string[] = [];
  if (short.overCap > 0)
    clauses.push(
      `models may book ${formatBytes(book.capBytes)} on this device and ${formatBytes(book.bookedBytes)} is booked`,
    );
  if (short.underFloor > 0) {
    const free = `${formatBytes(book.freeBytes)} is free`;
    const kept = `${formatBytes(floorBytes)} of it is kept for the desktop`;
    const promised = `${formatBytes(book.outstandingBytes)} is promised to loads in flight`;
    clauses.push(book.outstandingBytes > 0 ? `${free}, ${promised} and ${kept}` : `${free} and ${kept}`);
  }
  if (short.credit > 0) clauses.push(`${formatBytes(short.credit)} is about to be given back`);
  const bytes = need.bytes ?? 0;
  const head = `${need.name} needs ${wants(need)}; ${clauses.join('; ')}`;
  const room = Math.min(book.capBytes ?? 0, (book.totalBytes ?? Number.MAX_SAFE_INTEGER) - floorBytes);
  if (bytes > room)
    return `${head}: it can't fit here even alone (${formatBytes(Math.max(0, room))} at most). ${need.job === true ? 'Book less, or use another device.' : 'Choose a smaller context or quantisation.'}`;
  return `${head}: ${formatBytes(Math.max(short.overCap, short.underFloor))} has to go first.`;
}
