import type { Decision, GuardMemory, GuardModel, GuardWorld } from './world.ts';

/** An action that was refused or found its model busy is tried again after this. */
const RETRY_MS = 10_000;
/** An action takes this long to show in the world, at most. */
const SETTLE_MS = 2_000;
/** In observe mode the same is said again only after this. */
const REPEAT_MS = 600_000;
/** In observe mode another cause is news only after this, so that free memory at a line makes no stutter. */
const NEW_CAUSE_MS = 60_000;
/** An eviction that freed nothing is tried again after this … */
const NOTHING_MS = 600_000;
/** … or once free memory is lower by this much: below it is a sampler's noise. */
const NOTHING_DROP_BYTES = 64 * 1024 * 1024;

export function emptyMemory(): GuardMemory {
  return { breachSinceMs: {}, recentFree: {}, decided: {}, freedNothing: {} };
}

/** To be noted by whoever measured that an unload gave nothing back (rule 13). */
export function noteFreedNothing(
  memory: GuardMemory,
  modelId: string,
  atMs: number,
  freeBytes: number | null,
): GuardMemory {
  return { ...memory, freedNothing: { ...memory.freedNothing, [modelId]: { atMs, freeBytes } } };
}

/** Evicting it again for room is pointless until something has changed. */
export function isFruitless(
  memory: GuardMemory,
  model: GuardModel,
  freeBytes: number | null,
  nowMs: number,
): boolean {
  const nothing = memory.freedNothing[model.id];
  if (nothing === undefined || nowMs - nothing.atMs >= NOTHING_MS) return false;
  if (nothing.freeBytes === null || freeBytes === null) return true;
  return freeBytes > nothing.freeBytes - NOTHING_DROP_BYTES;
}

/** Rule 13: it was evicted, came back, and is within its minimum residency. */
export function isResidencyProtected(memory: GuardMemory, model: GuardModel, world: GuardWorld): boolean {
  const last = memory.decided[model.id];
  return (
    last !== undefined &&
    last.atMs < model.statusSinceMs &&
    world.nowMs - model.statusSinceMs < world.policy.minResidencyMs
  );
}

/** The same has been decided for this very load of the model a moment ago. */
export function isRepeat(
  memory: GuardMemory,
  decision: Decision,
  model: GuardModel | undefined,
  nowMs: number,
): boolean {
  const last = memory.decided[decision.modelId];
  if (last === undefined) return false;
  const reloaded = model !== undefined && model.status !== 'stopping' && last.atMs < model.statusSinceMs;
  if (reloaded) return false;
  const age = nowMs - last.atMs;
  if (last.type !== decision.type) return decision.type === 'unload' && age < RETRY_MS;
  if (last.cause === decision.cause)
    return age < (decision.guarded === 'observe' || decision.type === 'kill' ? REPEAT_MS : RETRY_MS);
  if (decision.cause === 'race') return false;
  return age < (decision.guarded === 'observe' ? NEW_CAUSE_MS : SETTLE_MS);
}

/** `decided` with the new ones in and what no longer matters out. */
export function remember(
  memory: GuardMemory,
  decisions: readonly Decision[],
  world: GuardWorld,
): Pick<GuardMemory, 'decided' | 'freedNothing'> {
  const { nowMs } = world;
  const models = new Map(world.models.map((model) => [model.id, model]));
  const keepMs = Math.max(REPEAT_MS, world.policy.minResidencyMs);
  const kept = Object.entries(memory.decided).filter(([, last]) => nowMs - last.atMs < keepMs);
  const fresh = decisions.map(
    (decision) => [decision.modelId, entry(decision, models, nowMs, memory)] as const,
  );
  const nothing = Object.entries(memory.freedNothing).filter(([, last]) => nowMs - last.atMs < NOTHING_MS);
  return {
    decided: { ...Object.fromEntries(kept), ...Object.fromEntries(fresh) },
    freedNothing: Object.fromEntries(nothing),
  };
}

function entry(
  decision: Decision,
  models: ReadonlyMap<string, GuardModel>,
  atMs: number,
  memory: GuardMemory,
): GuardMemory['decided'][string] {
  const model = models.get(decision.modelId);
  const { cause, type } = decision;
  // By the time of a kill the model only shows as stopping: what it was when asked still counts.
  const wasLoading =
    model?.status === 'loading' || (type === 'kill' && wasNewcomer(memory, decision.modelId));
  const bytes = (wasLoading ? model?.seenBytes : model?.bytes) ?? null;
  return { atMs, cause, type, bytes, wasLoading };
}

/** It was loading when it was last decided upon, so what it holds is only a part of its footprint. */
export function wasNewcomer(memory: GuardMemory, modelId: string): boolean {
  return memory.decided[modelId]?.wasLoading === true;
}
