import { decide } from '../../../electron/core/guards/decide.ts';
import { emptyMemory } from '../../../electron/core/guards/memory.ts';
import type {
  Decision,
  GuardDevice,
  GuardMemory,
  GuardModel,
  GuardPolicy,
  GuardWorld,
} from '../../../electron/core/guards/world.ts';

export const GB = 1_000_000_000;
export const CARD = 'pci:0000:03:00.0';
/** Far enough from 0 that "long ago" is a positive time. */
export const NOW = 10_000_000;
export const LONG_AGO = NOW - 3_600_000;

export const POLICY: GuardPolicy = {
  idleMs: 180_000,
  raceGraceMs: 1_000,
  maxBig: 'fit',
  race: 'class',
  breachMs: 5_000,
  minResidencyMs: 60_000,
};

export function device(more: Partial<GuardDevice> = {}): GuardDevice {
  return {
    id: CARD,
    unified: false,
    fresh: true,
    totalBytes: 32 * GB,
    freeBytes: 10 * GB,
    floorBytes: 4 * GB,
    hardFloorBytes: 2 * GB,
    capBytes: 28.8 * GB,
    bookedBytes: 0,
    outstandingBytes: 0,
    evictionUnderWay: false,
    sampledAtMs: NOW,
    ...more,
  };
}

/** A big model, loaded and idle for an hour, unless told otherwise. */
export function model(name: string, more: Partial<GuardModel> = {}): GuardModel {
  return {
    id: `router/${name}`,
    backend: 'router',
    deviceId: CARD,
    status: 'loaded',
    statusSinceMs: LONG_AGO,
    busy: false,
    lastUsedAtMs: LONG_AGO,
    big: true,
    small: false,
    pinned: false,
    batchOnly: false,
    ttlMs: null,
    bytes: 8 * GB,
    predictedBytes: null,
    seenBytes: null,
    unloadRequestedAtMs: null,
    signalable: true,
    turnClass: null,
    guarded: 'on',
    ...more,
  };
}

export function loading(
  name: string,
  predictedBytes: number | null,
  more: Partial<GuardModel> = {},
): GuardModel {
  return model(name, {
    status: 'loading',
    statusSinceMs: NOW,
    lastUsedAtMs: null,
    busy: null,
    bytes: predictedBytes,
    predictedBytes,
    seenBytes: 0,
    ...more,
  });
}

/** Allow-listed as a resident. */
export function small(name: string, more: Partial<GuardModel> = {}): GuardModel {
  return model(name, { big: false, small: true, bytes: 1.2 * GB, ...more });
}

export function batch(name: string, more: Partial<GuardModel> = {}): GuardModel {
  return model(name, { big: false, batchOnly: true, bytes: 1.8 * GB, ...more });
}

export function world(
  devices: GuardDevice | readonly GuardDevice[],
  models: readonly GuardModel[],
  more: Partial<Omit<GuardWorld, 'policy'>> & { policy?: Partial<GuardPolicy> } = {},
): GuardWorld {
  const { policy, ...rest } = more;
  return {
    nowMs: NOW,
    devices: 'id' in devices ? [devices] : devices,
    models,
    asleep: false,
    resumedAtMs: null,
    wantedFree: [],
    drain: null,
    ...rest,
    policy: { ...POLICY, ...policy },
  };
}

/** A memory in which the card has been below its floor for long enough. */
export function breached(memory: GuardMemory = emptyMemory()): GuardMemory {
  return { ...memory, breachSinceMs: { [CARD]: NOW - 60_000 } };
}

export function decisionsOf(world: GuardWorld, memory: GuardMemory = emptyMemory()): readonly Decision[] {
  return decide(world, memory).decisions;
}

/** `unload vision-8b race`, one line a decision: what most tests are about. */
export function told(world: GuardWorld, memory: GuardMemory = emptyMemory()): readonly string[] {
  return decisionsOf(world, memory).map(
    ({ type, modelId, cause }) => `${type} ${modelId.slice(modelId.indexOf('/') + 1)} ${cause}`,
  );
}
