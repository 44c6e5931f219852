import { type FloorSettings, resolveFloor, resolveSize, type Settings } from '../../../shared/settings.ts';
import { type DeviceSample, isStale } from '../devices/sample.ts';
import type { GuardDevice, GuardModel, GuardPolicy, GuardWorld } from '../guards/world.ts';
import type { DeviceBook, DeviceLimits } from '../ledger/booking.ts';
import type { ModelView } from './model-view.ts';

/** A floor breach of a second is a window being resized; five seconds are not (rule 13, wire facts 11). */
const BREACH_MS = 5_000;
const MIN_RESIDENCY_MS = 60_000;

export function policyOf(settings: Settings): GuardPolicy {
  return {
    idleMs: settings.idleMs,
    raceGraceMs: settings.raceGraceMs,
    maxBig: settings.maxBig,
    race: settings.race,
    breachMs: BREACH_MS,
    minResidencyMs: MIN_RESIDENCY_MS,
  };
}

export interface FloorFacts {
  /** What `floor: auto` has learned of this device; null: not enough yet. */
  readonly learnedBytes: number | null;
  /** What the desktop holds of it now; null: unknown. */
  readonly desktopBytes: number | null;
}

/** Cap and floors of one device under the settings; null where its total is unknown. */
export function limitsOf(
  settings: Settings,
  sample: DeviceSample,
  devices: readonly DeviceSample[],
  facts: FloorFacts,
): DeviceLimits {
  const own = ownFloor(settings, sample, devices);
  return {
    totalBytes: sample.totalBytes,
    capBytes: resolveSize(settings.cap, sample.totalBytes),
    ...resolveFloor(own ?? settings.floor, sample.totalBytes, facts.learnedBytes, facts.desktopBytes),
  };
}

function ownFloor(
  settings: Settings,
  sample: DeviceSample,
  devices: readonly DeviceSample[],
): FloorSettings | undefined {
  const index = settingIndex(settings, sample, devices);
  return index === null ? undefined : settings.devices?.[index]?.floor;
}

/**
 * Which entry of the config's `devices` speaks of a device; null: none. Devices of the config are read in
 * its order, so the nth of a kind there is the nth of that kind here.
 */
export function settingIndex(
  settings: Pick<Settings, 'devices'>,
  sample: Pick<DeviceSample, 'id' | 'kind'>,
  devices: readonly Pick<DeviceSample, 'id' | 'kind'>[],
): number | null {
  const nth = devices
    .filter((device) => device.kind === sample.kind)
    .findIndex((one) => one.id === sample.id);
  const ofKind = (settings.devices ?? []).flatMap(({ kind }, index) => (kind === sample.kind ? [index] : []));
  return ofKind[nth] ?? null;
}

export function guardDevice(
  sample: DeviceSample,
  book: DeviceBook,
  evictionUnderWay: boolean | null,
  nowMs: number,
): GuardDevice {
  return {
    id: sample.id,
    unified: sample.memory !== 'discrete',
    fresh: !isStale(sample, nowMs) && sample.freeBytes !== null,
    totalBytes: sample.totalBytes,
    freeBytes: sample.freeBytes,
    floorBytes: book.floorBytes,
    hardFloorBytes: book.hardFloorBytes,
    capBytes: book.capBytes,
    bookedBytes: book.bookedBytes,
    // What a load that is over has not been seen to take is for admissions alone: the guards go by readings.
    outstandingBytes: book.outstandingBytes - book.restingBytes,
    evictionUnderWay,
    sampledAtMs: sample.takenAtMs,
  };
}

export interface ModelUse {
  readonly class: 'interactive' | 'batch';
  /** Requests through us; 0 where another program's turn is known by the lane it holds. */
  readonly requests: number;
}

/** Whose turn a model serves now; null: nobody's that we know of. */
export type ModelUses = (modelId: string) => ModelUse | null;

export function guardModel(view: ModelView, uses: ModelUses = () => null): GuardModel {
  const { observed, operation } = view;
  const use = uses(view.id);
  return {
    id: view.id,
    backend: view.backend,
    deviceId: view.deviceId,
    status: view.status,
    statusSinceMs: observed.sinceMs,
    // A request that has been admitted counts before its backend shows it: a fresh model is not evicted before its first one.
    busy: use !== null && use.requests > 0 ? true : observed.busy,
    lastUsedAtMs: observed.lastBusyAtMs,
    big: view.big,
    small: view.small,
    pinned: view.pinned,
    batchOnly: view.batchOnly,
    ttlMs: view.ttlMs,
    bytes: view.measuredBytes ?? view.predictedBytes,
    predictedBytes: view.predictedBytes,
    seenBytes: view.measuredBytes,
    unloadRequestedAtMs: operation?.requestedAtMs ?? null,
    signalable: operation?.signalable ?? null,
    stopTimeoutMs: observed.stopTimeoutMs,
    ...(observed.isFixed === true ? { isFixed: true } : {}),
    turnClass: use?.class ?? null,
    guarded: view.guarded,
  };
}

export function guardWorld(input: {
  readonly nowMs: number;
  readonly devices: readonly GuardDevice[];
  readonly models: readonly GuardModel[];
  readonly asleep: boolean;
  readonly settings: Settings;
  readonly resumedAtMs: number | null;
  readonly wantedFree: GuardWorld['wantedFree'];
  readonly drain: GuardWorld['drain'];
}): GuardWorld {
  const { settings, ...rest } = input;
  return { ...rest, policy: policyOf(settings) };
}
