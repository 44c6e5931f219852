/**
 * `vram-landlord/gate`: one turn at a time on a local model, across every process of this machine.
 * It needs no runtime, no configuration and no daemon; the kernel's file locks are all there is.
 *
 *   1. turn construction    acquireTurn, or withTurn; busy ──► the fallback chain
 *   2. fallback traversal   walkFallbacks passes over local backends in use
 *   3. turn release         `using`, `finally { turn.release() }`, or the end of withTurn
 */

import type { Result } from '../../../shared/errors.ts';
import { acquireTurn as acquire, type WaitOptions } from './acquire.ts';
import { createGate, type Gate, type TurnOptions } from './gate.ts';
import { inspectLane, type LaneInspection } from './inspect.ts';
import { createTeller } from './news.ts';
import type { GrantedTurn, Turn } from './turn.ts';
import { type ChainEntry, type Walk, type WalkOptions, walkFallbacks as walk } from './walk-fallbacks.ts';
import { withTurn as run } from './with-turn.ts';

export type { WaitOptions } from './acquire.ts';
export type { TurnOptions } from './gate.ts';
export type { LaneInspection, SlotInspection } from './inspect.ts';
export type { FlawReason, GateReport, OnReport, OpenReason } from './reports.ts';
export type { TurnClass } from './sidecar.ts';
export type {
  BusyTurn,
  CancelledTurn,
  GrantedTurn,
  HeldTurn,
  NestedTurn,
  OpenTurn,
  SkippedTurn,
  Turn,
} from './turn.ts';
export { isGranted, TURN_VARIABLE } from './turn.ts';
export type { ChainEntry, Deflection, Walk, WalkOptions } from './walk-fallbacks.ts';

let shared: Gate | null = null;

function gate(): Gate {
  shared ??= createGate({ teller: createTeller() });
  return shared;
}

/** Takes the lane of a backend if it is free now and nobody comes before. A lone `using` is enough to release it. */
export function tryTurn(backendUrl: string | null | undefined, options: TurnOptions = {}): Turn {
  return gate().tryTurn(backendUrl, options);
}

/** The same, waiting up to `waitMs` for it: interactive before batch, then by arrival. */
export function acquireTurn(backendUrl: string | null | undefined, options: WaitOptions = {}): Promise<Turn> {
  return acquire(gate(), backendUrl, options);
}

/** Runs `fn` in the lane. Errors: `local_backend_busy`, `cancelled`. */
export function withTurn<T>(
  backendUrl: string | null | undefined,
  options: WaitOptions,
  fn: (turn: GrantedTurn) => T | Promise<T>,
): Promise<Result<T>> {
  return run(gate(), backendUrl, options, fn);
}

/** The first entry of a fallback chain that may be used now. */
export function walkFallbacks<E extends ChainEntry>(
  chain: readonly E[],
  options: WalkOptions<E> = {},
): Promise<Walk<E>> {
  return walk(gate(), chain, options);
}

/** How the lanes of a backend stand, without taking them; none where the gate is skipped or out of order. */
export function inspectTurnLanes(backendUrl: string, model: string | null = null): readonly LaneInspection[] {
  const plan = gate().plan(backendUrl, model);
  return plan.kind === 'lanes' ? plan.lanes.map((lane) => inspectLane(lane)) : [];
}
