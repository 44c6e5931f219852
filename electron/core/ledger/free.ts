import type { DeviceLimits } from './booking.ts';

/** The last reading the ledger was reconciled with. */
export interface Reading {
  /** What the driver calls free; null: unknown, so nothing is admitted. */
  readonly driverFreeBytes: number | null;
  /** What the system has available; bounds free memory where models and the system share one pool. */
  readonly hostAvailableBytes: number | null;
  readonly unified: boolean;
  /** Monotonic ms. */
  readonly sampledAtMs: number;
  /** How long after `sampledAtMs` it may be used; null: until the next one. */
  readonly validForMs: number | null;
}

export interface Sums {
  readonly bookedBytes: number;
  readonly outstandingBytes: number;
  readonly settlingBytes: number;
}

/**
 * Free bytes to plan with: the smaller of what the driver says and total minus the book (a driver
 * may lag behind, or hold back what a process has just given up). The book counts here without what
 * is still outstanding, since admission subtracts that from the result; memory of loaded models is in
 * the driver's used figure already, and what the desktop holds is in no book. On unified memory what
 * the system has available bounds it too; where that is not known the driver's figure stands, which
 * the sampler has bounded.
 */
export function freeBytes(
  reading: Reading | null,
  limits: DeviceLimits | null,
  sums: Sums,
  nowMs: number | null,
): number | null {
  if (reading === null || reading.driverFreeBytes === null) return null;
  if (nowMs !== null && reading.validForMs !== null && nowMs - reading.sampledAtMs > reading.validForMs)
    return null;
  let free = reading.driverFreeBytes - sums.settlingBytes;
  if (reading.unified && reading.hostAvailableBytes !== null)
    free = Math.min(free, reading.hostAvailableBytes - sums.settlingBytes);
  const totalBytes = limits?.totalBytes ?? null;
  if (totalBytes !== null) free = Math.min(free, totalBytes - (sums.bookedBytes - sums.outstandingBytes));
  return Math.max(0, free);
}
