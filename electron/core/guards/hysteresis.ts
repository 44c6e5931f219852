import { isBelowFloor, isUsable } from './view.ts';
import type { GuardDevice, GuardMemory, GuardWorld } from './world.ts';

/** How much of the past the rate of fall and the growth of a load are judged from. */
const KEEP_MS = 60_000;
const KEEP_POINTS = 256;
export const RATE_WINDOW_MS = 5_000;
/** What has not fallen over this last part of it has stopped falling. */
const RATE_NOW_MS = 1_000;
const RATE_MIN_SPAN_MS = 400;
/** A slower fall is the desktop's breathing. */
const RATE_MIN_BYTES_PER_S = 10_000_000;

export type FreePoint = GuardMemory['recentFree'][string][number];

/** Memory of breaches and of free bytes, brought up to this world. A stale device has to prove its breach anew. */
export function observe(
  memory: GuardMemory,
  world: GuardWorld,
): Pick<GuardMemory, 'breachSinceMs' | 'recentFree'> {
  const breachSinceMs: Record<string, number> = {};
  const recentFree: Record<string, readonly FreePoint[]> = {};
  for (const device of world.devices) {
    const since = memory.breachSinceMs[device.id];
    const resumed = world.resumedAtMs ?? Number.NEGATIVE_INFINITY;
    const points = (memory.recentFree[device.id] ?? []).filter(
      (point) => world.nowMs - point.atMs <= KEEP_MS && point.atMs > resumed,
    );
    if (!isUsable(device, world)) {
      recentFree[device.id] = points;
      continue;
    }
    if (isBelowFloor(device))
      breachSinceMs[device.id] = since !== undefined && since > resumed ? since : world.nowMs;
    recentFree[device.id] = withPoint(points, device);
  }
  return { breachSinceMs, recentFree };
}

function withPoint(points: readonly FreePoint[], device: GuardDevice): readonly FreePoint[] {
  const { sampledAtMs, freeBytes } = device;
  if (sampledAtMs === null || freeBytes === null) return points;
  const last = points.at(-1);
  if (last !== undefined && last.atMs >= sampledAtMs) return points;
  return [...points, { atMs: sampledAtMs, freeBytes }].slice(-KEEP_POINTS);
}

/**
 * Rule 13: a breach of the floor must have lasted `breachMs`, since a window resize spikes by a
 * gigabyte; below half the floor, or while the driver moves memory out of a full card, it counts at once.
 */
export function isBreachReal(device: GuardDevice, memory: GuardMemory, world: GuardWorld): boolean {
  if (!isBelowFloor(device) || device.freeBytes === null || device.floorBytes === null) return false;
  if (device.evictionUnderWay === true || device.freeBytes < device.floorBytes / 2) return true;
  const since = memory.breachSinceMs[device.id];
  return since !== undefined && world.nowMs - since >= world.policy.breachMs;
}

/** How fast free memory falls, bytes per second; null: it does not, or there is too little to tell. */
export function fallingBytesPerS(points: readonly FreePoint[]): number | null {
  const last = points.at(-1);
  if (last === undefined) return null;
  const first = points.find((point) => last.atMs - point.atMs <= RATE_WINDOW_MS);
  if (first === undefined || last.atMs - first.atMs < RATE_MIN_SPAN_MS) return null;
  const now = points.findLast((point) => last.atMs - point.atMs >= RATE_NOW_MS);
  if (now !== undefined && now.freeBytes <= last.freeBytes) return null;
  const rate = Math.round(((first.freeBytes - last.freeBytes) * 1000) / (last.atMs - first.atMs));
  return rate >= RATE_MIN_BYTES_PER_S ? rate : null;
}

/**
 * What a load that can't be measured by itself has probably taken: what free memory has fallen by
 * since it began. Only ever used to expect less of it, never to blame it (rule 14).
 */
export function fallenSince(points: readonly FreePoint[], sinceMs: number): number {
  let fallen = 0;
  let before: FreePoint | undefined;
  for (const point of points) {
    if (point.atMs >= sinceMs && before !== undefined)
      fallen += Math.max(0, before.freeBytes - point.freeBytes);
    before = point;
  }
  return fallen;
}
