import type { GuardDevice, GuardMemory, GuardModel, GuardWorld } from './world.ts';

/**
 * What a rule sees: the world, what is remembered, what earlier rules of the same call have already
 * decided to unload, and which models this pass may choose from.
 */
export interface GuardView {
  readonly world: GuardWorld;
  readonly memory: GuardMemory;
  readonly leaving: ReadonlySet<string>;
  readonly mayTouch: (model: GuardModel) => boolean;
}

/**
 * How long an open unload is believed to give its bytes back. Three of the router's own stop-timeouts
 * (10 s): past that it hangs, and waiting for it would leave the floor broken ("Stopping…" was seen to
 * hold memory for 16 minutes).
 */
const PENDING_TRUST_MS = 30_000;

/**
 * Rule 6: a device may be acted upon only on a fresh, known reading taken after the last resume.
 * This holds for the loading race too, also with `maxBig: 1`: the event says that a model loads, but
 * only the reading says that it matters.
 */
export function isUsable(device: GuardDevice, world: GuardWorld): boolean {
  if (!device.fresh || device.freeBytes === null || device.sampledAtMs === null) return false;
  return world.resumedAtMs === null || device.sampledAtMs > world.resumedAtMs;
}

export function usableDevices(world: GuardWorld): readonly GuardDevice[] {
  return world.devices.filter((device) => isUsable(device, world));
}

/** On its way out: we or its backend have asked it to go. */
export function isPending(model: GuardModel): boolean {
  return model.status === 'stopping' || (model.unloadRequestedAtMs !== null && holdsMemory(model));
}

export function holdsMemory(model: GuardModel): boolean {
  return model.status === 'loaded' || model.status === 'loading' || model.status === 'stopping';
}

/** Loaded or loading, and neither on its way out nor chosen to go. */
export function isStaying(view: GuardView, model: GuardModel): boolean {
  return (
    (model.status === 'loaded' || model.status === 'loading') &&
    !isPending(model) &&
    !view.leaving.has(model.id)
  );
}

/** Could be chosen at all: loaded, staying, not pinned, in this pass, and its server can let it go. Never one that is loading. */
export function isCandidate(view: GuardView, model: GuardModel): boolean {
  const mayGo = !model.pinned && model.isFixed !== true && view.mayTouch(model);
  return model.status === 'loaded' && isStaying(view, model) && mayGo;
}

export function modelsOn(view: GuardView, deviceId: string): readonly GuardModel[] {
  return view.world.models.filter((model) => model.deviceId === deviceId);
}

export interface Coming {
  readonly bytes: number;
  /** Some of what is leaving has no known size. */
  readonly unknown: boolean;
}

/** Bytes that open and just-decided unloads, and agents' contexts on their way out, will give back on a device. */
export function comingOn(view: GuardView, deviceId: string): Coming {
  let bytes = view.world.devices.find((device) => device.id === deviceId)?.givingBytes ?? 0;
  let unknown = false;
  for (const model of modelsOn(view, deviceId)) {
    if (!view.leaving.has(model.id) && !isTrusted(model, view.world.nowMs)) continue;
    const partial =
      model.status === 'loading' || (isPending(model) && view.memory.decided[model.id]?.wasLoading === true);
    const held = partial ? model.seenBytes : model.bytes;
    if (held === null) unknown = true;
    else bytes += held;
  }
  return { bytes, unknown };
}

/** An open unload that is young enough to be believed. */
export function isTrusted(model: GuardModel, nowMs: number): boolean {
  if (!isPending(model)) return false;
  const since = model.unloadRequestedAtMs ?? model.statusSinceMs;
  return nowMs - since < PENDING_TRUST_MS;
}

/** Not serving anything, as far as can be told; unknown counts as busy. */
export function isQuiet(model: GuardModel): boolean {
  return model.busy === false;
}

/**
 * Since when it has been idle (monotonic ms): the end of its last request, or since it is loaded
 * where that came after.
 */
export function idleSinceMs(model: GuardModel): number {
  return Math.max(model.lastUsedAtMs ?? model.statusSinceMs, model.statusSinceMs);
}

/** Idle in the sense of the rules: quiet, and for as long as the policy says. */
export function isIdle(view: GuardView, model: GuardModel): boolean {
  return isQuiet(model) && view.world.nowMs - idleSinceMs(model) >= view.world.policy.idleMs;
}

/**
 * Least recently used first. Of those last seen used in the same look, the one loaded first; the id settles the
 * rest, so that the same world always gives the same answer.
 */
export function byLeastRecentUse(one: GuardModel, other: GuardModel): number {
  return (
    idleSinceMs(one) - idleSinceMs(other) ||
    one.statusSinceMs - other.statusSinceMs ||
    (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)
  );
}

export function isBelowFloor(device: GuardDevice): boolean {
  return device.freeBytes !== null && device.floorBytes !== null && device.freeBytes < device.floorBytes;
}
