import type { GuardModel } from '../../../electron/core/guards/world.ts';
import type { DeviceBook } from '../../../electron/core/ledger/booking.ts';

export function deviceBook(change: Partial<DeviceBook>): DeviceBook {
  return {
    deviceId: 'sim:0',
    totalBytes: 24e9,
    capBytes: 21.6e9,
    floorBytes: 4e9,
    hardFloorBytes: 2e9,
    driverFreeBytes: 10e9,
    freeBytes: 10e9,
    sampledAtMs: 0,
    bookedBytes: 0,
    outstandingBytes: 0,
    restingBytes: 0,
    ...change,
  };
}

export function guardModelOf(change: Partial<GuardModel>): GuardModel {
  return {
    id: 'router/b',
    backend: 'router',
    deviceId: 'sim:0',
    status: 'loaded',
    statusSinceMs: 0,
    busy: false,
    lastUsedAtMs: null,
    big: true,
    small: false,
    pinned: false,
    batchOnly: false,
    ttlMs: null,
    bytes: 5e9,
    predictedBytes: 5e9,
    seenBytes: 5e9,
    unloadRequestedAtMs: null,
    signalable: null,
    turnClass: null,
    guarded: 'on',
    ...change,
  };
}
