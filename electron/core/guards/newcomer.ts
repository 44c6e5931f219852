import { fallenSince } from './hysteresis.ts';
import { comingOn, type GuardView, holdsMemory, isPending, isStaying, modelsOn } from './view.ts';
import type { GuardDevice, GuardModel } from './world.ts';

/** A model that is loading, and what it finds on its device. */
export interface Newcomer {
  readonly model: GuardModel;
  /** Bytes it has still to take; null: its footprint is unknown. */
  readonly remainingBytes: number | null;
  /** Free bytes it may count on: free, plus what is on its way out, less what other loads will take. */
  readonly availableBytes: number;
  /** What is on its way out, as part of `availableBytes`. */
  readonly comingBytes: number;
  /** Something of unknown size is on its way out. */
  readonly comingUnknown: boolean;
}

/** Those loading on a device, oldest load first: an older load's bytes are taken before a younger one's. */
export function newcomersOn(view: GuardView, device: GuardDevice): readonly Newcomer[] {
  if (device.freeBytes === null) return [];
  const loading = modelsOn(view, device.id)
    .filter((model) => model.status === 'loading' && !isPending(model) && isStaying(view, model))
    .sort((one, other) => one.statusSinceMs - other.statusSinceMs || (one.id < other.id ? -1 : 1));
  const coming = comingOn(view, device.id);
  let available = device.freeBytes + coming.bytes - bookedByOthers(device, loading);
  const result: Newcomer[] = [];
  for (const model of loading) {
    const remainingBytes = remaining(view, device, model);
    result.push({
      model,
      remainingBytes,
      availableBytes: available,
      comingBytes: coming.bytes,
      comingUnknown: coming.unknown,
    });
    available -= remainingBytes ?? 0;
  }
  return result;
}

/** Loads in flight that are no model's here: agents, reserved jobs. */
function bookedByOthers(device: GuardDevice, loading: readonly GuardModel[]): number {
  const models = loading.reduce(
    (sum, model) => sum + Math.max(0, (model.predictedBytes ?? 0) - (model.seenBytes ?? 0)),
    0,
  );
  return Math.max(0, device.outstandingBytes - models);
}

function remaining(view: GuardView, device: GuardDevice, model: GuardModel): number | null {
  if (model.predictedBytes === null) return null;
  return Math.max(
    0,
    model.predictedBytes - (model.seenBytes ?? probablySeen(view, device, model.statusSinceMs)),
  );
}

/**
 * What a load that can't be measured by itself has taken so far, by free memory since it began: the
 * sum of its falls, or what it was, plus what has left meanwhile, less what it is. The larger counts:
 * a loser's bytes that come back hide what the newcomer takes in the same moment, and thinking it
 * still hungry would cut off one more.
 */
function probablySeen(view: GuardView, device: GuardDevice, sinceMs: number): number {
  const points = view.memory.recentFree[device.id] ?? [];
  const start = points.findLast((point) => point.atMs <= sinceMs) ?? points[0];
  if (start === undefined || device.freeBytes === null) return 0;
  const left = modelsOn(view, device.id)
    .filter((model) => !holdsMemory(model))
    .map((model) => view.memory.decided[model.id])
    .filter((last) => last !== undefined && last.atMs >= sinceMs)
    .reduce((sum, last) => sum + (last?.bytes ?? 0), 0);
  return Math.max(fallenSince(points, sinceMs), start.freeBytes + left - device.freeBytes);
}
