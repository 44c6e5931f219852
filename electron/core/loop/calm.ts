import type { Operation } from '../actuators/operation.ts';
import type { DeviceSample, SampleSet } from '../devices/sample.ts';
import type { DeviceVerdict } from '../guards/world.ts';
import type { ModelView } from './model-view.ts';

const MIB = 1024 * 1024;
/** A desktop that rests moves by less; what takes more is looked at at once. */
const MOVED_BYTES = 16 * MIB;
/** This near to a floor every byte counts. */
const NEAR_BYTES = 512 * MIB;
/** After a load, or the end of a request, what is measured and learned goes by the readings that follow. */
const SETTLED_MS = 10_000;

/** Without any sample the loop still looks around this often: stale must be seen as stale. */
const IDLE_STEP_MS = 1_000;
/** Half a period of the sampler's: a reading that comes a little early is not put off by two. */
const EARLY_MS = 250;

/** When the next step is due at the latest. The loser of a race is due at the end of its grace, not at the step after it. */
export function stepInMs(operations: readonly Operation[], raceGraceMs: number, nowMs: number): number {
  const graces = operations.flatMap(({ cause, phase, requestedAtMs }) => {
    if (cause !== 'race' || phase !== 'requested' || requestedAtMs === null) return [];
    const inMs = requestedAtMs + raceGraceMs - nowMs;
    return inMs > 0 ? [inMs + 1] : [];
  });
  return Math.min(IDLE_STEP_MS, ...graces);
}

/**
 * Whether a reading may wait for the next one. While nothing happens a step finds what the one before it
 * found, and costs ten times what it does when much happens, since nothing of it is in the processor's
 * caches any more: so every second reading only goes into the book. Whatever is new in one, near a floor, or
 * waited for, is acted on with that reading.
 */
export class Calm {
  #steppedAtMs = Number.NEGATIVE_INFINITY;
  #devices: readonly DeviceSample[] = [];

  stepped(devices: readonly DeviceSample[], nowMs: number): void {
    this.#steppedAtMs = nowMs;
    this.#devices = devices;
  }

  /** `floorOf`: bytes to keep free of a device; null: none. */
  mayWait(
    set: SampleSet,
    views: readonly ModelView[],
    verdicts: readonly DeviceVerdict[],
    floorOf: (deviceId: string) => number | null,
    nowMs: number,
  ): boolean {
    return (
      nowMs - this.#steppedAtMs < IDLE_STEP_MS - EARLY_MS &&
      set.processes === null &&
      set.troubles.length === 0 &&
      saysTheSame(this.#devices, set.devices, floorOf) &&
      verdicts.every((verdict) => verdict.health === 'ok' || isAsleep(set, verdict.deviceId)) &&
      isAtRest(views, nowMs)
    );
  }
}

/** A card that its driver has put to sleep holds nothing, and is not touched. */
function isAsleep(set: SampleSet, deviceId: string): boolean {
  return set.devices.find((sample) => sample.id === deviceId)?.power === 'suspended';
}

/** No model has just changed, works or is on its way. */
function isAtRest(views: readonly ModelView[], nowMs: number): boolean {
  return views.every(({ status, operation, observed }) => {
    if (operation !== null || status === 'loading' || status === 'stopping') return false;
    const changedAtMs = Math.max(observed.sinceMs, observed.lastBusyAtMs ?? observed.sinceMs);
    return observed.busy !== true && nowMs - changedAtMs >= SETTLED_MS;
  });
}

/**
 * Whether readings say the same as those before: nothing that could break a floor, or that anybody would ask
 * about. `floorOf`: bytes to keep free; null: none. Pure.
 */
function saysTheSame(
  before: readonly DeviceSample[],
  now: readonly DeviceSample[],
  floorOf: (deviceId: string) => number | null,
): boolean {
  return (
    before.length === now.length &&
    now.every((sample, index) => {
      const last = before[index];
      const room = roomBytes(sample);
      return (
        last !== undefined &&
        isSameDevice(last, sample) &&
        isNear(last.freeBytes, sample.freeBytes) &&
        isNear(last.usedBytes, sample.usedBytes) &&
        isNear(last.gttUsedBytes, sample.gttUsedBytes) &&
        isNear(last.hostAvailableBytes, sample.hostAvailableBytes) &&
        (room === null || room - (floorOf(sample.id) ?? 0) >= NEAR_BYTES)
      );
    })
  );
}

function isSameDevice(last: DeviceSample, sample: DeviceSample): boolean {
  return (
    last.id === sample.id &&
    last.error === sample.error &&
    last.power === sample.power &&
    last.totalBytes === sample.totalBytes &&
    last.evictionUnderWay === sample.evictionUnderWay
  );
}

function roomBytes({ freeBytes, hostAvailableBytes }: DeviceSample): number | null {
  if (freeBytes === null || hostAvailableBytes === null) return freeBytes;
  return Math.min(freeBytes, hostAvailableBytes);
}

function isNear(one: number | null, other: number | null): boolean {
  return one === null || other === null ? one === other : Math.abs(one - other) < MOVED_BYTES;
}
