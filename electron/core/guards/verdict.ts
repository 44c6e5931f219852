import { fallingBytesPerS, RATE_WINDOW_MS } from './hysteresis.ts';
import { isUsable } from './view.ts';
import type { DeviceVerdict, GuardDevice, GuardMemory, GuardWorld } from './world.ts';

/** Free memory that reaches the floor within this at its present rate of fall is threatened (design §5.7). */
const HORIZON_S = 10;

/** `memory` holds this world's reading already. */
export function verdict(device: GuardDevice, memory: GuardMemory, world: GuardWorld): DeviceVerdict {
  const { id: deviceId, freeBytes, floorBytes, hardFloorBytes } = device;
  if (!isUsable(device, world) || freeBytes === null)
    return { deviceId, health: 'stale', shortBytes: null, fallingBytesPerS: null };
  const falling = takesItsRoom(device, world) ? null : fallingBytesPerS(memory.recentFree[deviceId] ?? []);
  const shortBytes = floorBytes === null ? null : Math.max(0, floorBytes - freeBytes);
  const critical =
    device.evictionUnderWay === true || (hardFloorBytes !== null && freeBytes < hardFloorBytes);
  const health = critical ? 'critical' : isThreatened(device, falling) ? 'threatened' : 'ok';
  return { deviceId, health, shortBytes, fallingBytesPerS: falling };
}

/**
 * A load takes what it was admitted with, as fast as it can: that fall ends by itself, and is no
 * threat before it is really under the floor. The guards ask about loads by themselves (race.ts).
 */
function takesItsRoom(device: GuardDevice, world: GuardWorld): boolean {
  return world.models.some(
    (model) =>
      model.deviceId === device.id &&
      (model.status === 'loading' ||
        (model.status === 'loaded' && world.nowMs - model.statusSinceMs <= RATE_WINDOW_MS)),
  );
}

/** Under the floor, or falling to it within 10 s. */
export function isThreatened(device: GuardDevice, falling: number | null): boolean {
  const { freeBytes, floorBytes } = device;
  if (freeBytes === null || floorBytes === null) return false;
  return freeBytes - (falling ?? 0) * HORIZON_S < floorBytes;
}
