import { formatDuration } from '../../../shared/format.ts';
import { isResidencyProtected } from './memory.ts';
import { type GuardView, idleSinceMs, isBelowFloor, isCandidate, isQuiet, usableDevices } from './view.ts';
import { unload } from './wording.ts';
import type { Decision } from './world.ts';

/** A model with a `ttl` of its own leaves after that long idle, room or no room. */
export function ttlRule(view: GuardView): readonly Decision[] {
  return usableDevices(view.world).flatMap((device) =>
    view.world.models
      .filter((model) => model.deviceId === device.id && isCandidate(view, model) && isQuiet(model))
      .filter((model) => isBelowFloor(device) || !isResidencyProtected(view.memory, model, view.world))
      .flatMap((model) => {
        const idleMs = view.world.nowMs - idleSinceMs(model);
        if (model.ttlMs === null || idleMs < model.ttlMs) return [];
        const why = `it has been idle for ${formatDuration(idleMs)} and its ttl is ${formatDuration(model.ttlMs)}`;
        return [unload(model, 'ttl', why, { idleMs, ttlMs: model.ttlMs, freeBytes: device.freeBytes })];
      }),
  );
}
