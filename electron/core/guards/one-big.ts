import { formatBytes } from '../../../shared/format.ts';
import { byMostRecentUse, justEnough, leaversOn } from './candidates.ts';
import { isResidencyProtected } from './memory.ts';
import {
  byLeastRecentUse,
  comingOn,
  type GuardView,
  isBelowFloor,
  isCandidate,
  isQuiet,
  isStaying,
  modelsOn,
  usableDevices,
} from './view.ts';
import { names, unload } from './wording.ts';
import type { Decision, GuardDevice, GuardMemory, GuardModel, GuardWorld } from './world.ts';

/**
 * Rule 8. At most `maxBig` big models on a device; the most recently used stay. A busy one is waited
 * for. With `fit`, as many as the cap holds: beyond it idle ones leave, least recently used first (the
 * floor has its own rule).
 */
export function oneBigRule(view: GuardView): readonly Decision[] {
  return usableDevices(view.world).flatMap((device) =>
    view.world.policy.maxBig === 'fit' ? overCap(view, device) : overCount(view, device),
  );
}

/**
 * Big models beyond the count, least recently used first. Pinned ones and those that load take their
 * places first: they stay in any case.
 */
export function excessBigs(view: GuardView, deviceId: string): readonly GuardModel[] {
  const { maxBig } = view.world.policy;
  if (maxBig === 'fit') return [];
  const bigs = modelsOn(view, deviceId).filter((model) => model.big && isStaying(view, model));
  const fixed = bigs.filter((model) => model.pinned || model.status === 'loading');
  const rest = bigs.filter((model) => !fixed.includes(model)).sort(byMostRecentUse);
  return rest.slice(Math.max(0, maxBig - fixed.length)).reverse();
}

/**
 * Whether it is, after all, another's turn to leave. What is known of one model comes some milliseconds before
 * what is known of the next, so that while one is asked whether it is idle, another may turn out to be the one.
 */
export function isOvertaken(world: GuardWorld, memory: GuardMemory, modelId: string): boolean {
  const deviceId = world.models.find((model) => model.id === modelId)?.deviceId ?? null;
  if (world.policy.maxBig === 'fit' || deviceId === null) return false;
  const view: GuardView = { world, memory, leaving: new Set(), mayTouch: () => true };
  return !excessBigs(view, deviceId).some((model) => model.id === modelId);
}

function overCount(view: GuardView, device: GuardDevice): readonly Decision[] {
  const { maxBig } = view.world.policy;
  const bigs = modelsOn(view, device.id).filter((model) => model.big && isStaying(view, model));
  return excessBigs(view, device.id)
    .filter((model) => isCandidate(view, model) && isQuiet(model) && !isProtected(view, device, model))
    .map((model) => {
      const others = bigs.filter((other) => other !== model);
      const why = `at most ${maxBig} big ${maxBig === 1 ? 'model stays' : 'models stay'} loaded, and ${names(others)} was used later`;
      return unload(model, 'max_big', why, {
        bigModels: bigs.length,
        maxBig: maxBig === 'fit' ? null : maxBig,
        freeBytes: device.freeBytes,
      });
    });
}

function overCap(view: GuardView, device: GuardDevice): readonly Decision[] {
  if (device.capBytes === null) return [];
  const coming = comingOn(view, device.id);
  const over = device.bookedBytes - device.capBytes - coming.bytes;
  if (over <= 0 || coming.unknown) return [];
  const idle = leaversOn(view, device, { smalls: false, quiet: false })
    .filter((model) => model.big && !isProtected(view, device, model))
    .sort(byLeastRecentUse);
  return justEnough(idle, over).map((model) => {
    const booked = `${formatBytes(device.bookedBytes)} is booked and models may have ${formatBytes(device.capBytes)} here`;
    return unload(model, 'max_big', `${booked}, and it is the idle big model longest unused`, {
      bookedBytes: device.bookedBytes,
      capBytes: device.capBytes,
      freeBytes: device.freeBytes,
    });
  });
}

function isProtected(view: GuardView, device: GuardDevice, model: GuardModel): boolean {
  return !isBelowFloor(device) && isResidencyProtected(view.memory, model, view.world);
}
