import { isResident } from './candidates.ts';
import { emptyMemory } from './memory.ts';
import { excessBigs } from './one-big.ts';
import {
  comingOn,
  type GuardView,
  idleSinceMs,
  isBelowFloor,
  isCandidate,
  isQuiet,
  isStaying,
  isUsable,
  modelsOn,
} from './view.ts';
import type { GuardDevice, GuardModel, GuardWorld } from './world.ts';

/**
 * When an idle rule would unload a model if nothing changed: monotonic ms, not before now; null: it
 * stays until it is needed elsewhere, or it is busy, pinned or only observed, or nothing is known.
 */
export function leavesAt(model: GuardModel, world: GuardWorld): number | null {
  const view: GuardView = {
    world,
    memory: emptyMemory(),
    leaving: new Set(),
    mayTouch: (other) => other.guarded === 'on',
  };
  const device = world.devices.find((one) => one.id === model.deviceId);
  if (device === undefined || !isUsable(device, world) || !isQuiet(model)) return null;
  const asked = world.asleep && model.big;
  if (!isCandidate(asked ? { ...view, mayTouch: () => true } : view, model)) return null;

  const times: number[] = [];
  if (asked || stepsAside(view, model) || excessBigs(view, device.id).includes(model))
    times.push(world.nowMs);
  if (model.ttlMs !== null) times.push(idleSinceMs(model) + model.ttlMs);
  const floorAt = floorLeaveAt(view, device, model);
  if (floorAt !== null) times.push(floorAt);
  return times.length === 0 ? null : Math.max(world.nowMs, Math.min(...times));
}

function stepsAside(view: GuardView, model: GuardModel): boolean {
  if (!model.batchOnly || model.deviceId === null) return false;
  return modelsOn(view, model.deviceId).some(
    (other) => other !== model && other.big && !other.batchOnly && isStaying(view, other),
  );
}

/** Under the floor, the quiet ones leave as they become idle, until enough has gone. */
function floorLeaveAt(view: GuardView, device: GuardDevice, model: GuardModel): number | null {
  if (!isBelowFloor(device) || device.freeBytes === null || device.floorBytes === null) return null;
  const due = (one: GuardModel) =>
    one.batchOnly
      ? view.world.nowMs
      : Math.max(view.world.nowMs, idleSinceMs(one) + view.world.policy.idleMs);
  const queue = modelsOn(view, device.id)
    .filter((one) => isCandidate(view, one) && isQuiet(one) && !isResident(one))
    .sort((one, other) => due(one) - due(other) || Number(other.batchOnly) - Number(one.batchOnly));
  let short = device.floorBytes - device.freeBytes - comingOn(view, device.id).bytes;
  for (const one of queue) {
    if (short <= 0) return null;
    if (one === model) return due(one);
    short -= one.bytes ?? 0;
  }
  return null;
}
