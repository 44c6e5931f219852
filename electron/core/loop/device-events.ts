import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes, formatDuration } from '../../../shared/format.ts';
import type { DeviceSample } from '../devices/sample.ts';
import type { DeviceVerdict } from '../guards/world.ts';
import type { DeviceBook } from '../ledger/booking.ts';

/** What of a device was told last; the next look compares with it, so that each crossing is told once. */
export interface ToldDevice {
  readonly lost: boolean;
  /** Monotonic ms since its reading is seen to be too old, without a word why; null: it is not. */
  readonly staleSinceMs: number | null;
  readonly health: 'ok' | 'threatened' | 'critical';
  /** Monotonic ms since the present health differs from the told one; null: it does not. */
  readonly differsSinceMs: number | null;
  readonly evicting: boolean;
  readonly evictingQuietSinceMs: number | null;
  readonly gttAtStartBytes: number | null;
}

const NEW: ToldDevice = {
  lost: false,
  staleSinceMs: null,
  health: 'ok',
  differsSinceMs: null,
  evicting: false,
  evictingQuietSinceMs: null,
  gttAtStartBytes: null,
};

/** A threat is told when it has lasted this long, its end too; a critical state at once (rule 13). */
const LASTS_MS = 5_000;
/** A process that was stopped sees an old reading first and the new one a moment later. */
const STALE_LASTS_MS = 1_000;

export interface DeviceLook {
  readonly sample: DeviceSample;
  readonly book: DeviceBook;
  readonly verdict: DeviceVerdict | null;
  readonly evictionUnderWay: boolean | null;
  readonly stale: boolean;
  /** `firefox grew by 0.9 GB`; null: nobody stands out. */
  readonly growth: string | null;
  readonly nowMs: number;
}

/** The events of one look at a device, and what is told from now on. */
export function deviceEvents(
  before: ToldDevice | undefined,
  look: DeviceLook,
): { readonly events: readonly NewEvent[]; readonly told: ToldDevice } {
  const events: NewEvent[] = [];
  const { sample } = look;
  const base = { deviceId: sample.id };
  let told = before ?? NEW;
  if (before === undefined && sample.error === null)
    events.push({
      ...base,
      kind: 'device_found',
      reason: `${sample.name}: ${formatBytes(sample.totalBytes)} in all, ${formatBytes(sample.freeBytes)} free${sample.drivesDisplay === true ? ', drives the display' : ''}.`,
      numbers: { totalBytes: sample.totalBytes, freeBytes: sample.freeBytes },
    });
  if (look.stale && sample.power !== 'suspended' && !told.lost) {
    const staleSinceMs = told.staleSinceMs ?? look.nowMs;
    if (sample.error === null && look.nowMs - staleSinceMs < STALE_LASTS_MS)
      return { events, told: { ...told, staleSinceMs } };
    const ageMs = Math.round(look.nowMs - sample.takenAtMs);
    const why =
      sample.error === null
        ? `${sample.name} was last read ${formatDuration(ageMs)} ago.`
        : `${sample.name} can't be read: ${sample.error}`;
    events.push({
      ...base,
      kind: 'device_lost',
      reason: `${why} No guard acts on it until it can be read.`,
      numbers: { ageMs },
    });
    return { events, told: { ...told, lost: true } };
  }
  if (look.stale) return { events, told };
  if (told.staleSinceMs !== null) told = { ...told, staleSinceMs: null };
  if (told.lost) {
    events.push({
      ...base,
      kind: 'device_found',
      reason: `${sample.name} can be read again: ${formatBytes(sample.freeBytes)} free.`,
      numbers: { freeBytes: sample.freeBytes },
    });
    told = { ...told, lost: false };
  }
  told = floorEvents(told, look, events);
  told = driverEvents(told, look, events);
  return { events, told };
}

function floorEvents(told: ToldDevice, look: DeviceLook, events: NewEvent[]): ToldDevice {
  const { sample, book, nowMs } = look;
  const health = look.verdict?.health ?? 'ok';
  if (health === 'stale' || health === told.health) return { ...told, differsSinceMs: null };
  const sinceMs = told.differsSinceMs ?? nowMs;
  const atOnce = health === 'critical';
  if (!atOnce && nowMs - sinceMs < LASTS_MS) return { ...told, differsSinceMs: sinceMs };
  const numbers = {
    freeBytes: sample.freeBytes,
    floorBytes: book.floorBytes,
    hardFloorBytes: book.hardFloorBytes,
    fallingBytesPerS: look.verdict?.fallingBytesPerS ?? null,
  };
  const free = `${formatBytes(sample.freeBytes)} is free`;
  const who = look.growth === null ? '' : ` ${look.growth}.`;
  if (health === 'ok')
    events.push({
      deviceId: sample.id,
      kind: 'floor_restored',
      reason: `The desktop has its room again: ${free}, the floor is ${formatBytes(book.floorBytes)}.`,
      numbers,
    });
  else if (told.health !== 'critical' || health === 'critical')
    events.push({
      deviceId: sample.id,
      kind: 'floor_threatened',
      reason:
        health === 'critical'
          ? `The desktop is short of memory: ${free}, the hard floor is ${formatBytes(book.hardFloorBytes)}.${who}`
          : isFalling(look)
            ? `The desktop's floor is about to be reached: ${free}, the floor is ${formatBytes(book.floorBytes)}, and it falls by ${formatBytes(look.verdict?.fallingBytesPerS ?? null)} a second.${who}`
            : `The desktop's floor is threatened: ${free}, the floor is ${formatBytes(book.floorBytes)}.${who}`,
      numbers,
    });
  return { ...told, health, differsSinceMs: null };
}

function isFalling(look: DeviceLook): boolean {
  const { freeBytes } = look.sample;
  return freeBytes !== null && look.book.floorBytes !== null && freeBytes >= look.book.floorBytes;
}

function driverEvents(told: ToldDevice, look: DeviceLook, events: NewEvent[]): ToldDevice {
  const { sample, nowMs } = look;
  if (look.evictionUnderWay === true) {
    if (!told.evicting)
      events.push({
        deviceId: sample.id,
        kind: 'driver_eviction',
        reason: `The driver is moving memory of ${sample.name} out to system RAM (${formatBytes(sample.gttUsedBytes)} there now). Everything on the card slows down until there is room.`,
        numbers: { gttUsedBytes: sample.gttUsedBytes, freeBytes: sample.freeBytes },
      });
    return {
      ...told,
      evicting: true,
      evictingQuietSinceMs: null,
      gttAtStartBytes: told.evicting ? told.gttAtStartBytes : sample.gttUsedBytes,
    };
  }
  if (!told.evicting) return told;
  const quietSinceMs = told.evictingQuietSinceMs ?? nowMs;
  if (nowMs - quietSinceMs < LASTS_MS) return { ...told, evictingQuietSinceMs: quietSinceMs };
  events.push({
    deviceId: sample.id,
    kind: 'driver_eviction_over',
    reason: `The driver has stopped moving memory out; it was quiet for ${formatDuration(LASTS_MS)}. Models it moved stay slow until they are loaded again.`,
    numbers: { gttUsedBytes: sample.gttUsedBytes, gttAtStartBytes: told.gttAtStartBytes },
  });
  return { ...told, evicting: false, evictingQuietSinceMs: null, gttAtStartBytes: null };
}
