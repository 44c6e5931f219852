import { isFruitless } from './memory.ts';
import { byLeastRecentUse, type GuardView, isCandidate, isIdle, isQuiet, modelsOn } from './view.ts';
import type { GuardDevice, GuardModel } from './world.ts';

/**
 * Who may leave a device for want of room, in the order of rule 9: batch-only instances (as soon as
 * they are quiet: giving way is what they are for), idle big models, idle ones that are neither small
 * nor pinned, and last the small residents, where `smalls` allows it. Within each, least recently used
 * first. `quiet` takes those between requests too, as a person's own order may.
 */
export function leaversOn(
  view: GuardView,
  device: GuardDevice,
  allow: { readonly smalls: boolean; readonly quiet: boolean },
): readonly GuardModel[] {
  return modelsOn(view, device.id)
    .filter((model) => isCandidate(view, model) && isQuiet(model))
    .filter((model) => allow.quiet || model.batchOnly || isIdle(view, model))
    .filter((model) => allow.smalls || !isResident(model))
    .filter((model) => !isFruitless(view.memory, model, device.freeBytes, view.world.nowMs))
    .sort((one, other) => tier(one) - tier(other) || byLeastRecentUse(one, other));
}

/** On the allow-list of residents; a batch-only instance gives way even if it is listed there. */
export function isResident(model: GuardModel): boolean {
  return model.small && !model.batchOnly;
}

function tier(model: GuardModel): number {
  if (model.batchOnly) return 0;
  if (isResident(model)) return 3;
  return model.big ? 1 : 2;
}

/**
 * As many from the front as give `wantedBytes`, and no more. One of unknown size ends the list: what
 * it gives is seen first.
 */
export function justEnough(models: readonly GuardModel[], wantedBytes: number): readonly GuardModel[] {
  const chosen: GuardModel[] = [];
  let missing = wantedBytes;
  for (const model of models) {
    if (missing <= 0) break;
    chosen.push(model);
    if (model.bytes === null) break;
    missing -= model.bytes;
  }
  return chosen;
}

/**
 * Models that would have to go for `wantedBytes` more on a device (rule 4), in the order they would:
 * idle or between requests, never pinned, residents only where `smalls` allows it. `enough` is false where even all of them do not do.
 */
export function planRoom(
  view: GuardView,
  device: GuardDevice,
  wantedBytes: number,
  allow: { readonly smalls: boolean },
): { readonly models: readonly GuardModel[]; readonly bytes: number; readonly enough: boolean } {
  const models = justEnough(leaversOn(view, device, { smalls: allow.smalls, quiet: true }), wantedBytes);
  const bytes = models.reduce((sum, model) => sum + (model.bytes ?? 0), 0);
  return { models, bytes, enough: bytes >= wantedBytes };
}

/** Latest use first; one that is loading is the newest of all. */
export function byMostRecentUse(one: GuardModel, other: GuardModel): number {
  const loading = Number(other.status === 'loading') - Number(one.status === 'loading');
  return loading || Number(other.busy !== false) - Number(one.busy !== false) || byLeastRecentUse(other, one);
}
