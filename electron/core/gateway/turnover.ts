import type { TurnClass } from '../gate/sidecar.ts';
import type { CommandContext } from '../loop/load-command.ts';
import { holdsMemory, type ModelView } from '../loop/model-view.ts';
import { roomPlan } from '../loop/room.ts';

/**
 * Models take turns in a memory that does not hold them all. One that has been loaded for a turn stays
 * while its session is likely to go on, so that models are not swapped to and fro; after that, whoever has
 * waited long for memory has the turns of those in its way stand back, so that nobody starves.
 *
 *   waits ──`agedMs`──► the others stand back ──they end──► loaded
 *     ▲                    └──`standBackMs`──┐
 *     └──────────────────────────────────────┘
 */
export interface TurnoverPace {
  /** A model stays this long, as long as … */
  readonly residencyMs: number;
  /** … its last turn is no longer ago than this: a session thinks, or runs a tool, and goes on. */
  readonly lingerMs: number;
  readonly agedMs: Readonly<Record<TurnClass, number>>;
  /** Then the others go on for a while: what is in the way may be something else. */
  readonly standBackMs: number;
}

export const TURNOVER_PACE: TurnoverPace = {
  residencyMs: 30_000,
  lingerMs: 5_000,
  agedMs: { interactive: 20_000, batch: 60_000 },
  standBackMs: 60_000,
};

/** Until when (monotonic ms) a model is left where it is; null: it may go now. */
export function staysUntilMs(
  { loadedAtMs, usedAtMs }: { readonly loadedAtMs: number; readonly usedAtMs: number | null },
  nowMs: number,
  pace = TURNOVER_PACE,
): number | null {
  const untilMs = Math.min(loadedAtMs + pace.residencyMs, (usedAtMs ?? loadedAtMs) + pace.lingerMs);
  return untilMs > nowMs ? untilMs : null;
}

export interface MemoryWaiter {
  readonly modelId: string;
  readonly deviceId: string | null;
  readonly class: TurnClass;
  readonly sinceMs: number;
}

/** Whether it has waited so long that others' turns stand back for it: batch does at once for an interactive one. */
export function isDue(
  { sinceMs, class: waiting }: MemoryWaiter,
  nowMs: number,
  { agedMs, standBackMs } = TURNOVER_PACE,
  turnClass: TurnClass = 'interactive',
): boolean {
  const phaseMs = (nowMs - sinceMs) % (agedMs[waiting] + standBackMs);
  return makesWay(turnClass, waiting) ? phaseMs < standBackMs : phaseMs >= agedMs[waiting];
}

function makesWay(turnClass: TurnClass, waiting: TurnClass): boolean {
  return turnClass === 'batch' && waiting === 'interactive';
}

/** As what a turn stands in line: batch that has waited its time makes way no more than a person's turn does. */
export function standsAs(turnClass: TurnClass, waitedMs: number, { agedMs } = TURNOVER_PACE): TurnClass {
  return turnClass === 'batch' && waitedMs >= agedMs.batch ? 'interactive' : turnClass;
}

export interface Holding {
  readonly modelId: string;
  readonly untilMs: number;
}

export class Turnover {
  readonly #context: CommandContext;
  readonly #pace: TurnoverPace;
  readonly #waiters = new Set<MemoryWaiter>();
  readonly #usedAtMs = new Map<string, Record<TurnClass, number>>();

  constructor(context: CommandContext, pace: TurnoverPace = TURNOVER_PACE) {
    this.#context = context;
    this.#pace = pace;
  }

  /** A turn of that model has ended. */
  used(modelId: string, turnClass: TurnClass): void {
    this.#usedAtMs.set(modelId, { ...this.#usesOf(modelId), [turnClass]: this.#context.clock.monotonicMs() });
  }

  /** When it last was by our turns of either class. */
  #usesOf(modelId: string): Record<TurnClass, number> {
    const never = Number.NEGATIVE_INFINITY;
    return this.#usedAtMs.get(modelId) ?? { interactive: never, batch: never };
  }

  /** It waits for memory until it is disposed. */
  wait(waiter: MemoryWaiter): Disposable {
    this.#waiters.add(waiter);
    return { [Symbol.dispose]: () => this.#waiters.delete(waiter) };
  }

  /** Who has waited so long for what this model holds that its new turns wait first; null: nobody. */
  before(view: ModelView, turnClass: TurnClass): MemoryWaiter | null {
    if (this.#waiters.size === 0 || view.status !== 'loaded' || !mayLeave(view)) return null;
    const nowMs = this.#context.clock.monotonicMs();
    // Loading may take longer than anybody's patience: what has come serves for a while all the same.
    const isYoung = nowMs - view.observed.sinceMs < this.#pace.residencyMs;
    for (const waiter of this.#waiters) {
      if (isYoung && !makesWay(turnClass, waiter.class)) continue;
      if (
        waiter.deviceId !== view.deviceId ||
        waiter.modelId === view.id ||
        !isDue(waiter, nowMs, this.#pace, turnClass)
      )
        continue;
      if (this.couldFit(waiter.modelId) === true) return waiter;
    }
    return null;
  }

  /** The model that has to leave for this one, and may not yet; null: there is none. */
  holding(view: ModelView, turnClass: TurnClass): Holding | null {
    const { loop, clock } = this.#context;
    const nowMs = clock.monotonicMs();
    const shortBytes = this.#shortBytes(view);
    if (view.deviceId === null || shortBytes === null || shortBytes <= 0) return null;
    const plan = roomPlan(loop, { deviceId: view.deviceId, denial: { shortBytes } });
    for (const victim of plan?.enough === true ? plan.models : []) {
      const uses = this.#usesOf(victim.id);
      const seenAtMs = victim.lastUsedAtMs ?? Number.NEGATIVE_INFINITY;
      // What its backend shows is that batch turn then: a person's comes first.
      const isBatchs = turnClass === 'interactive' && seenAtMs <= uses.batch + this.#pace.lingerMs;
      const usedAtMs = isBatchs ? uses.interactive : Math.max(seenAtMs, uses.interactive, uses.batch);
      // One that nobody has used yet was loaded by hand or at start: it has no session that goes on.
      if (!Number.isFinite(usedAtMs) || victim.batchOnly) continue;
      const untilMs = staysUntilMs({ loadedAtMs: victim.statusSinceMs, usedAtMs }, nowMs, this.#pace);
      if (untilMs !== null) return { modelId: victim.id, untilMs };
    }
    return null;
  }

  /** Whether it would get in if all went that may, once they are quiet; null: not known. */
  couldFit(modelId: string): boolean | null {
    const views = this.#context.loop.models.views();
    const view = views.find((one) => one.id === modelId);
    // What is promised to a load in flight is given back with it.
    const shortBytes = view === undefined ? null : this.#shortBytes(view, false);
    if (view === undefined || shortBytes === null) return null;
    const { inFlight } = this.#context;
    const leaving = views.filter(
      (one) =>
        one.id !== modelId &&
        one.deviceId === view.deviceId &&
        // Booked before its backend has begun to load it.
        (holdsMemory(one.status) || inFlight.has(one.id)) &&
        mayLeave(one),
    );
    return (
      leaving.reduce((sum, one) => sum + (one.measuredBytes ?? one.predictedBytes ?? 0), 0) >= shortBytes
    );
  }

  /** Whether those that are quiet now could make room for it. */
  canMakeRoom(view: ModelView): boolean {
    const shortBytes = this.#shortBytes(view);
    if (view.deviceId === null || shortBytes === null) return false;
    return roomPlan(this.#context.loop, { deviceId: view.deviceId, denial: { shortBytes } })?.enough === true;
  }

  /** How much is missing for it now, or once loads in flight are over; null: not known. */
  #shortBytes(view: ModelView, now = true): number | null {
    const { ledger, clock } = this.#context;
    if (view.deviceId === null || view.predictedBytes === null) return null;
    const { capBytes, bookedBytes, freeBytes, floorBytes, outstandingBytes } = ledger.book(
      view.deviceId,
      clock.monotonicMs(),
    ) ?? { capBytes: null, bookedBytes: 0, freeBytes: null, floorBytes: null, outstandingBytes: 0 };
    if (capBytes === null || freeBytes === null || floorBytes === null) return null;
    const overCap = bookedBytes + view.predictedBytes - capBytes;
    const promisedBytes = now ? outstandingBytes : 0;
    return Math.max(overCap, floorBytes + view.predictedBytes + promisedBytes - freeBytes);
  }
}

/** Not pinned, no resident, and the guards may touch it: another load may move it (room.ts). */
function mayLeave(view: ModelView): boolean {
  return !view.pinned && view.guarded === 'on' && (!view.small || view.batchOnly);
}
