/** How large a model would be let in on a device now: the admission rule of the ledger, asked for its limit. Pure. */
import type { DeviceState } from '../../shared/state.ts';

export interface Room {
  /** 0 when nothing fits. */
  readonly bytes: number;
  /** What a larger one would break. */
  readonly bound: 'floor' | 'cap';
}

/** null when a figure it rests on is unknown or old. */
export function roomOf(device: DeviceState): Room | null {
  const { freeBytes, floorBytes, capBytes, bookedBytes, outstandingBytes, health } = device;
  if (freeBytes === null || floorBytes === null || health === 'stale') return null;
  const byFloor = freeBytes - outstandingBytes - floorBytes;
  const byCap = capBytes === null ? Number.POSITIVE_INFINITY : capBytes - bookedBytes;
  return {
    bytes: Math.max(0, Math.min(byFloor, byCap)),
    bound: byCap < byFloor ? 'cap' : 'floor',
  };
}
