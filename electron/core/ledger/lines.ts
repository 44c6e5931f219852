import type { Booking } from './booking.ts';

/**
 * What one ledger line, and one shared set of weights, stand for in bytes.
 *
 *   loading    booked = the larger of predicted and seen     outstanding = what is predicted and not seen yet
 *   resting    as loading: it is said to be loaded, but no reading shows yet all that it took
 *   committed  booked = measured, else the larger of the two outstanding = 0
 */
export interface Line {
  readonly id: string;
  readonly kind: Booking['kind'];
  readonly name: string;
  readonly deviceId: string;
  readonly sinceMs: number;
  readonly predictedBytes: number | null;
  /** Last measurement, private bytes; null: none yet. */
  readonly seenBytes: number | null;
  /** The measurement covers all of it (it came after the load), so it replaces the prediction. */
  readonly measured: boolean;
  readonly state: Booking['state'];
  /** Still `loading` here, though its load is over: its memory has not come to rest. */
  readonly resting: boolean;
  /** Key of the weights it shares; null: none. */
  readonly sharedKey: string | null;
  /**
   * Bytes that left `outstanding` by the commit but are newer than the device's last reading, which
   * therefore still shows them as free. Gone with the first reading taken after the commit.
   */
  readonly settlingBytes: number;
  /** Monotonic ms of the commit; null: not told, so the next reading settles it. */
  readonly settlingSinceMs: number | null;
}

/** Weights that several lines use, booked once (rule 1). */
export interface SharedWeights {
  readonly key: string;
  /** The most any holder asked for while held. */
  readonly bytes: number;
  readonly seenBytes: number;
  /** One of its holders has loaded, so the weights are there. */
  readonly loaded: boolean;
  /** How many lines hold them; at 0 they are gone. */
  readonly holders: number;
}

export function bookedOf(line: Line): number {
  const seen = line.seenBytes ?? 0;
  return line.measured ? seen : Math.max(line.predictedBytes ?? 0, seen);
}

export function outstandingOf(line: Line): number {
  if (line.state !== 'loading') return 0;
  return Math.max(0, (line.predictedBytes ?? 0) - (line.seenBytes ?? 0));
}

export function sharedBookedOf(weights: SharedWeights): number {
  return Math.max(weights.bytes, weights.seenBytes);
}

export function sharedOutstandingOf(weights: SharedWeights): number {
  return weights.loaded ? 0 : Math.max(0, weights.bytes - weights.seenBytes);
}

export function toBooking(line: Line, weights: SharedWeights | undefined): Booking {
  return {
    id: line.id,
    kind: line.kind,
    name: line.name,
    deviceId: line.deviceId,
    predictedBytes: line.predictedBytes,
    measuredBytes: line.seenBytes,
    state: line.state,
    sinceMs: line.sinceMs,
    shared: weights === undefined ? null : { key: weights.key, bytes: weights.bytes },
  };
}
