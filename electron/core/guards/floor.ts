import { formatBytes, formatDuration } from '../../../shared/format.ts';
import { justEnough, leaversOn } from './candidates.ts';
import { isBreachReal } from './hysteresis.ts';
import { comingOn, type GuardView, idleSinceMs, usableDevices } from './view.ts';
import { unload } from './wording.ts';
import type { Decision, GuardDevice } from './world.ts';

/**
 * Rule 9. Below the floor, free just enough to be back over it, counting what open unloads will give:
 * batch-only, idle big, idle others; small residents only below the hard floor. A sole big model that
 * is busy, or was so within the idle time, may thus live between the hard floor and the floor, and
 * leaves when idle. Never pinned, never loading, never busy, never the desktop.
 */
export function floorRule(view: GuardView): readonly Decision[] {
  return usableDevices(view.world).flatMap((device) => onDevice(view, device));
}

function onDevice(view: GuardView, device: GuardDevice): readonly Decision[] {
  const { freeBytes, floorBytes } = device;
  if (freeBytes === null || floorBytes === null) return [];
  if (!isBreachReal(device, view.memory, view.world)) return [];
  const coming = comingOn(view, device.id);
  // What an unload of unknown size gives is seen first, before anything else goes.
  if (coming.unknown) return [];

  const short = floorBytes - freeBytes - coming.bytes;
  const ordinary = justEnough(leaversOn(view, device, { smalls: false, quiet: false }), short);
  const decided = ordinary.map((model) => decide(view, device, 'floor', model, coming.bytes));
  if (device.hardFloorBytes === null || ordinary.some((model) => model.bytes === null)) return decided;

  const given = ordinary.reduce((sum, model) => sum + (model.bytes ?? 0), 0);
  const hardShort = device.hardFloorBytes - freeBytes - coming.bytes - given;
  if (hardShort <= 0) return decided;
  const residents = leaversOn(view, device, { smalls: true, quiet: false }).filter(
    (model) => !ordinary.includes(model),
  );
  return [
    ...decided,
    ...justEnough(residents, hardShort).map((model) =>
      decide(view, device, 'hard_floor', model, coming.bytes),
    ),
  ];
}

function decide(
  view: GuardView,
  device: GuardDevice,
  cause: 'floor' | 'hard_floor',
  model: Parameters<typeof unload>[0],
  comingBytes: number,
): Decision {
  const idleMs = view.world.nowMs - idleSinceMs(model);
  const line =
    cause === 'floor'
      ? `under the floor of ${formatBytes(device.floorBytes)}`
      : `under the hard floor of ${formatBytes(device.hardFloorBytes)}`;
  const role = model.batchOnly
    ? 'it is for batch work only'
    : `it has been idle for ${formatDuration(idleMs)}`;
  const why = `${formatBytes(device.freeBytes)} is free, ${line}, and ${role}`;
  return unload(model, cause, why, {
    freeBytes: device.freeBytes,
    floorBytes: device.floorBytes,
    hardFloorBytes: device.hardFloorBytes,
    comingBytes,
    idleMs,
  });
}
