import { decide } from '../../../electron/core/guards/decide.ts';
import { emptyMemory } from '../../../electron/core/guards/memory.ts';
import type { Decision, GuardMemory, GuardModel, GuardPolicy } from '../../../electron/core/guards/world.ts';
import { device, GB, POLICY, world } from './worlds.ts';

/** A card of 34.2 GB with a desktop on it and models that load, work, obey and die: enough to close the loop. */
export interface Simulation {
  readonly totalBytes: number;
  desktopBytes: number;
  models: GuardModel[];
  nowMs: number;
  memory: GuardMemory;
  policy: Partial<GuardPolicy>;
  readonly log: { readonly atMs: number; readonly decision: Decision; readonly freeBytes: number }[];
}

export function simulation(models: readonly GuardModel[], desktopBytes: number, nowMs: number): Simulation {
  return {
    totalBytes: 34.2 * GB,
    desktopBytes,
    models: [...models],
    nowMs,
    memory: emptyMemory(),
    policy: {},
    log: [],
  };
}

export function freeOf(sim: Simulation): number {
  const held = sim.models.reduce((sum, one) => sum + heldBy(one), 0);
  return Math.max(0, sim.totalBytes - sim.desktopBytes - held);
}

/** What a model takes of the card now. */
export function heldBy(one: GuardModel): number {
  if (one.status === 'loading') return one.seenBytes ?? 0;
  return one.status === 'loaded' || one.status === 'stopping' ? (one.bytes ?? 0) : 0;
}

export function change(sim: Simulation, id: string, more: Partial<GuardModel>): void {
  sim.models = sim.models.map((one) => (one.id === id ? { ...one, ...more } : one));
}

/** One tick: the guards look, and what they decide is done; a quiet model obeys at once, a busy one never. */
export function tick(sim: Simulation, stepMs: number): readonly Decision[] {
  sim.nowMs += stepMs;
  const card = device({
    totalBytes: sim.totalBytes,
    freeBytes: freeOf(sim),
    capBytes: Math.floor(0.9 * sim.totalBytes),
    sampledAtMs: sim.nowMs,
  });
  const result = decide(
    world(card, sim.models, { nowMs: sim.nowMs, policy: { ...POLICY, ...sim.policy } }),
    sim.memory,
  );
  sim.memory = result.memory;
  for (const decision of result.decisions) {
    sim.log.push({ atMs: sim.nowMs, decision, freeBytes: freeOf(sim) });
    const one = sim.models.find((other) => other.id === decision.modelId);
    if (one === undefined || decision.guarded === 'observe') continue;
    if (decision.type === 'kill' || one.busy === false || one.status === 'loading') gone(sim, one.id);
    else if (!decision.requireIdle) change(sim, one.id, { unloadRequestedAtMs: sim.nowMs });
  }
  return result.decisions;
}

function gone(sim: Simulation, id: string): void {
  change(sim, id, {
    status: 'unloaded',
    statusSinceMs: sim.nowMs,
    unloadRequestedAtMs: null,
    busy: false,
    seenBytes: null,
  });
}

/** Begins a load; `grow` then takes its bytes. */
export function begin(sim: Simulation, id: string, predictedBytes: number): void {
  change(sim, id, { status: 'loading', statusSinceMs: sim.nowMs, predictedBytes, seenBytes: 0, busy: null });
}

/** Takes more of a load's bytes; true once it is loaded. Returns null when the card has no room for them. */
export function grow(sim: Simulation, id: string, bytes: number): boolean | null {
  const one = sim.models.find((other) => other.id === id);
  if (one?.status !== 'loading' || one.predictedBytes === null) return false;
  const seenBytes = Math.min(one.predictedBytes, (one.seenBytes ?? 0) + bytes);
  if (seenBytes - (one.seenBytes ?? 0) > freeOf(sim)) return null;
  change(sim, id, { seenBytes, bytes: one.predictedBytes });
  if (seenBytes < one.predictedBytes) return false;
  change(sim, id, { status: 'loaded', statusSinceMs: sim.nowMs, busy: true, lastUsedAtMs: sim.nowMs });
  return true;
}
