import { formatBytes } from '../../../shared/format.ts';
import { isResidencyProtected } from './memory.ts';
import {
  type GuardView,
  isBelowFloor,
  isCandidate,
  isQuiet,
  isStaying,
  modelsOn,
  usableDevices,
} from './view.ts';
import { shortName, unload } from './wording.ts';
import type { Decision } from './world.ts';

/** A batch-only instance steps aside while another big model is loading or loaded on its device; a busy one after its request. */
export function batchOnlyRule(view: GuardView): readonly Decision[] {
  return usableDevices(view.world).flatMap((device) => {
    const models = modelsOn(view, device.id);
    return models
      .filter((model) => model.batchOnly && isCandidate(view, model) && isQuiet(model))
      .filter((model) => isBelowFloor(device) || !isResidencyProtected(view.memory, model, view.world))
      .flatMap((model) => {
        const big = models.find(
          (other) => other !== model && other.big && !other.batchOnly && isStaying(view, other),
        );
        if (big === undefined) return [];
        const state = big.status === 'loading' ? 'is loading' : 'is loaded';
        const why = `it is for batch work only and steps aside while ${shortName(big.id)} ${state}; ${formatBytes(device.freeBytes)} is free`;
        const numbers = { freeBytes: device.freeBytes, floorBytes: device.floorBytes };
        return [unload(model, 'batch_only', why, numbers, { forModelId: big.id })];
      });
  });
}
