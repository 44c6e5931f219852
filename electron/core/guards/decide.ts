import { batchOnlyRule } from './batch-only.ts';
import { drainRule } from './drain.ts';
import { floorRule } from './floor.ts';
import { observe } from './hysteresis.ts';
import { makeRoomRule } from './make-room.ts';
import { isRepeat, remember } from './memory.ts';
import { oneBigRule } from './one-big.ts';
import { raceRule } from './race.ts';
import { sleepRule } from './sleep.ts';
import { ttlRule } from './ttl.ts';
import { verdict } from './verdict.ts';
import type { GuardView } from './view.ts';
import type { Decision, GuardMemory, GuardResult, GuardWorld } from './world.ts';

type Rule = (view: GuardView) => readonly Decision[];

/** What a person has ordered: done for observed models too, since it surprises nobody. */
const ORDERS: readonly Rule[] = [drainRule, sleepRule, makeRoomRule];
/** What the guards do by themselves, the most urgent first. */
const GUARDS: readonly Rule[] = [raceRule, oneBigRule, batchOnlyRule, floorRule, ttlRule];

/**
 * One step of the guards: pure, and the same world and memory always give the same answer.
 *
 * Rules run in turn, and each counts what the ones before it have decided to unload. The guards run
 * twice: over the models they may act on, and over all, as if everything were guarded; from the second
 * run the decisions about observed models are kept, as what would be done. An observed model's bytes
 * are thus never counted as coming where something real has to be freed.
 */
export function decide(world: GuardWorld, memory: GuardMemory): GuardResult {
  const seen: GuardMemory = { ...memory, ...observe(memory, world) };
  const start: GuardView = { world, memory: seen, leaving: new Set(), mayTouch: () => true };
  const orders = run(start, ORDERS).map((decision) => ({ ...decision, guarded: 'on' as const }));
  const ordered = leavingAfter(start, orders);
  const acts = run({ ...ordered, mayTouch: (model) => model.guarded === 'on' }, GUARDS);
  const watched = world.models.some((model) => model.guarded === 'observe');
  const would = watched
    ? run(ordered, GUARDS).filter((decision) => decision.guarded === 'observe' && decision.type === 'unload')
    : [];

  const models = new Map(world.models.map((model) => [model.id, model]));
  const decisions = [...orders, ...acts, ...would].filter(
    (decision) => !isRepeat(seen, decision, models.get(decision.modelId), world.nowMs),
  );
  return {
    decisions,
    verdicts: world.devices.map((device) => verdict(device, seen, world)),
    memory: { ...seen, ...remember(seen, decisions, world) },
  };
}

function run(start: GuardView, rules: readonly Rule[]): readonly Decision[] {
  let view = start;
  const all: Decision[] = [];
  for (const rule of rules) {
    const decisions = rule(view).filter((decision) => !view.leaving.has(decision.modelId));
    all.push(...decisions);
    view = leavingAfter(view, decisions);
  }
  return all;
}

function leavingAfter(view: GuardView, decisions: readonly Decision[]): GuardView {
  return { ...view, leaving: new Set([...view.leaving, ...decisions.map((decision) => decision.modelId)]) };
}
