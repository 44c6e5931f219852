import { AsyncLocalStorage } from 'node:async_hooks';
import { messageOf } from '../../../shared/errors.ts';
import { type GateWorld, realWorld } from './gate-world.ts';
import { inspectSlot } from './inspect.ts';
import { readLockTable } from './kernel-locks.ts';
import { type LaneFiles, slotFiles } from './lane-files.ts';
import type { FileLocker } from './locker.ts';
import { heldInLine, slotClaimed, turnHolds } from './nested.ts';
import { deflectionNews, failOpenNews } from './news.ts';
import { createPlanner, type Plan, type Planner } from './plan.ts';
import { newcomerName } from './queue.ts';
import {
  type FlawReason,
  type GateReport,
  type OnReport,
  type OpenReason,
  oncePerReason,
  warnOnStderr,
} from './reports.ts';
import { readSidecar, sidecarOf, type TurnClass, writeSidecar } from './sidecar.ts';
import { type TakenSlot, takeLanes } from './take-lanes.ts';
import { releaseSlot, takeSlot } from './take-slot.ts';
import {
  type BusyTurn,
  busyMessage,
  type HeldTurn,
  NEXT_IN_QUEUE,
  type NestedTurn,
  type OpenTurn,
  type SkippedTurn,
  TURN_VARIABLE,
  type Turn,
  type TurnAbout,
} from './turn.ts';

export interface TurnOptions {
  readonly session?: string | null;
  readonly model?: string | null;
  /** Default `interactive`, which comes before `batch` among those who wait. */
  readonly class?: TurnClass;
  /** Told once of each kind of trouble; default: one warning of the process. */
  readonly onReport?: OnReport;
  /**
   * False writes no sidecar: faster, and nobody can tell who holds the lane. `soon`: in the next round of
   * the event loop, so that the turn's own request goes out first. Default true.
   */
  readonly sidecar?: boolean | 'soon';
  /** False: a running landlord does not hear of this turn, whatever happens to it. Default true. */
  readonly reports?: boolean;
  /** Its name in sidecar and LANDLORD_TURN; made up when left out. */
  readonly turn?: string;
}

export interface TryContext {
  readonly plan: Extract<Plan, { readonly kind: 'lanes' }>;
  readonly locker: FileLocker;
  readonly about: TurnAbout;
  readonly options: TurnOptions;
  readonly onReport: OnReport;
  /** Passes on the first of a kind. */
  readonly report: (report: GateReport) => void;
}

export type Prepared =
  | { readonly kind: 'settled'; readonly turn: Turn }
  | { readonly kind: 'ready'; readonly context: TryContext };

/** One attempt, never waiting; `acquire.ts` adds the waiting. */
export interface Gate extends Planner {
  readonly world: GateWorld;
  prepare(backendUrl: string | null | undefined, options: TurnOptions): Prepared;
  /** `place`: a ticket's name; null: whoever waits. */
  attempt(context: TryContext, place: string | null, waitedMs: number): HeldTurn | OpenTurn | Missed;
  busy(context: TryContext, missed: Missed, waitedMs: number): BusyTurn | NestedTurn;
  /** Has a turn that ends as busy told to the runtime; returns it. */
  deflect<T extends Turn>(context: TryContext, turn: T): T;
  /** Takes the lane if it is free now, and nobody waits who comes first. */
  tryTurn(backendUrl: string | null | undefined, options?: TurnOptions): Turn;
  /** Runs `fn` so that a turn for the same lane inside it passes. */
  within<T>(turn: Turn, fn: () => T): T;
}

export interface Missed {
  readonly kind: 'missed';
  readonly lane: LaneFiles;
  readonly queued: boolean;
}

/** Descriptors of locks this process holds by itself: its sessions exclude one another. */
const ownDescriptors = new Set<number>();

export function createGate(overrides: Partial<GateWorld> = {}): Gate {
  const world: GateWorld = { ...realWorld, ...overrides };
  const planner = createPlanner(world);
  const tellOnce = oncePerReason();
  const inside = new AsyncLocalStorage<ActiveTurn>();

  const open = (reason: OpenReason, about: Omit<GateReport, 'reason'>, onReport: OnReport): OpenTurn => {
    tellOnce({ reason, ...about }, onReport);
    return { kind: 'open', reason, message: about.message, [Symbol.dispose]: () => undefined };
  };

  const prepare = (backendUrl: string | null | undefined, options: TurnOptions): Prepared => {
    const listener = options.onReport ?? warnOnStderr;
    const onReport: OnReport = (report) => {
      if (options.reports !== false) world.teller.tell(failOpenNews(report, options));
      listener(report);
    };
    const settled = (turn: Turn): Prepared => ({ kind: 'settled', turn });
    try {
      const plan = planner.plan(backendUrl, options.model ?? null);
      if (plan.kind === 'skip') return settled(skipped(plan.why));
      if (plan.kind === 'open') {
        const { reason, path, message } = plan;
        return settled(open(reason, { lane: null, path, message, errno: null }, onReport));
      }
      const outer = inside.getStore();
      if (outer !== undefined && !outer.released && plan.lanes.every((lane) => outer.holds(lane))) {
        return settled(nested(outer.turn));
      }
      const locker = world.locker();
      if (!locker.ok) {
        const message = `${locker.error.message} The turn goes on without its lane.`;
        const lane = plan.lanes[0]?.name ?? null;
        return settled(open('no_locker', { lane, path: null, message, errno: null }, onReport));
      }
      const context: TryContext = {
        plan,
        locker: locker.value,
        about: {
          session: options.session ?? null,
          model: options.model ?? null,
          class: options.class ?? 'interactive',
        },
        options,
        onReport,
        report: (report) => tellOnce(report, onReport),
      };
      const inherited = world.env()[TURN_VARIABLE];
      const claimed = inherited === undefined ? null : passOn(context, inherited);
      return claimed === null ? { kind: 'ready', context } : settled(claimed);
    } catch (thrown) {
      return settled(open('internal', internal(thrown), onReport));
    }
  };

  /** The turn this process was started in still holds the lane: its sidecar says so and the kernel bears it out. */
  const passOn = (context: TryContext, turn: string): Turn | null => {
    const { plan, locker } = context;
    const [first] = plan.lanes;
    if (first === undefined) return null;
    const holds = turnHolds(first, turn);
    if (holds !== null) return holds ? nested(turn) : null;
    // Not shown here: then the lock itself says whether anybody has it.
    const index = slotClaimed(first, turn);
    if (index === null) return null;
    const take = takeSlot(slotFiles(first, index).lock, plan.modes, locker);
    if (take.kind === 'taken') releaseSlot(take.slot, locker);
    return take.kind === 'busy' ? nested(turn) : null;
  };

  const attempt = (
    context: TryContext,
    place: string | null,
    waitedMs: number,
  ): HeldTurn | OpenTurn | Missed => {
    const { plan, locker, report, onReport, options } = context;
    try {
      const take = takeLanes({ lanes: plan.lanes, modes: plan.modes, locker, place, report });
      if (take.kind === 'busy') return { kind: 'missed', lane: take.lane, queued: take.queued };
      if (take.kind === 'unusable') return open(take.reason, take.report, onReport);
      const id = options.turn ?? `${Math.floor(world.epochMs()).toString(36)}-${world.chance()}`;
      const turn = new ActiveTurn(id, take.slots, locker, waitedMs);
      if (options.sidecar === 'soon') {
        setImmediate(() => {
          if (!turn.released) writeSidecars(context, take.slots, id);
        });
      } else if (options.sidecar !== false) writeSidecars(context, take.slots, id);
      return turn;
    } catch (thrown) {
      return open('internal', internal(thrown), onReport);
    }
  };

  const writeSidecars = (context: TryContext, slots: readonly TakenSlot[], turn: string): void => {
    const sidecar = sidecarOf({ ...context.about, turn }, world.epochMs());
    for (const { lane, index } of slots) {
      const path = slotFiles(lane, index).sidecar;
      try {
        writeSidecar(path, sidecar, context.plan.modes.lock);
      } catch (thrown) {
        const message = `${path} can't be written (${messageOf(thrown)}), so nobody can tell who holds this lane; it is held all the same.`;
        report(context, 'sidecar_not_written', lane, path, message);
      }
    }
  };

  const busy = (context: TryContext, missed: Missed, waitedMs: number): BusyTurn | NestedTurn => {
    const { lane } = missed;
    const base = {
      kind: 'busy' as const,
      code: 'local_backend_busy' as const,
      lane: lane.name,
      waitedMs,
      [Symbol.dispose]: () => undefined,
    };
    try {
      const own = heldInLine(lane, process.pid, ownDescriptors);
      const session = context.about.session;
      // Inherited with its descriptor, or held by an ancestor for this very session. An ancestor that holds
      // it for another session, or says nothing, is another turn: one program may run many sessions.
      if (own !== null && (own.pid === process.pid || (session !== null && own.session === session))) {
        return nested(own.turn);
      }
      if (missed.queued) return { ...base, message: NEXT_IN_QUEUE, holder: null, heldForMs: null };
      const slot = slotFiles(lane, 0);
      const { holder } = inspectSlot(slot, readLockTable());
      if (readSidecar(slot.sidecar).kind === 'garbage') {
        const message = `${slot.sidecar} is not a sidecar, so it can't be told who holds this lane; the next turn writes a new one.`;
        report(context, 'sidecar_garbage', lane, slot.sidecar, message);
      }
      const since = holder?.acquiredAt == null ? null : Date.parse(holder.acquiredAt);
      const heldForMs = since === null ? null : Math.max(0, world.epochMs() - since);
      return { ...base, message: busyMessage(holder, heldForMs, session), holder, heldForMs };
    } catch {
      return { ...base, message: busyMessage(null, null, null), holder: null, heldForMs: null };
    }
  };

  const tryTurn = (backendUrl: string | null | undefined, options: TurnOptions = {}): Turn => {
    const prepared = prepare(backendUrl, options);
    if (prepared.kind === 'settled') return prepared.turn;
    const { context } = prepared;
    const got = attempt(context, newcomerName(context.about.class), 0);
    return got.kind === 'missed' ? deflect(context, busy(context, got, 0)) : got;
  };

  const deflect = <T extends Turn>(context: TryContext, turn: T): T => {
    if (turn.kind === 'busy' && context.options.reports !== false)
      world.teller.tell(deflectionNews(turn, context.about));
    return turn;
  };

  const within = <T>(turn: Turn, fn: () => T): T =>
    turn instanceof ActiveTurn ? inside.run(turn, fn) : fn();

  return { ...planner, world, prepare, attempt, busy, deflect, tryTurn, within };
}

function report(
  context: TryContext,
  reason: FlawReason,
  lane: LaneFiles,
  path: string,
  message: string,
): void {
  context.report({ reason, lane: lane.name, path, message, errno: null });
}

function internal(thrown: unknown): Omit<GateReport, 'reason'> {
  const message = `The gate failed (${messageOf(thrown)}). The turn goes on without its lane.`;
  return { lane: null, path: null, message, errno: null };
}

function skipped(why: SkippedTurn['why']): SkippedTurn {
  return { kind: 'skipped', why, [Symbol.dispose]: () => undefined };
}

function nested(turn: string | null): NestedTurn {
  const env: Readonly<Record<string, string>> = turn === null ? {} : { [TURN_VARIABLE]: turn };
  return { kind: 'nested', turn, env, [Symbol.dispose]: () => undefined };
}

class ActiveTurn implements HeldTurn {
  readonly kind = 'held';
  readonly turn: string;
  readonly waitedMs: number;
  readonly #slots: readonly TakenSlot[];
  readonly #locker: FileLocker;
  #released = false;

  constructor(turn: string, slots: readonly TakenSlot[], locker: FileLocker, waitedMs: number) {
    this.turn = turn;
    this.waitedMs = waitedMs;
    this.#slots = slots;
    this.#locker = locker;
    for (const { lock } of slots) ownDescriptors.add(lock.fd);
  }

  get locks(): readonly string[] {
    return this.#slots.map(({ lock }) => lock.path);
  }

  get descriptors(): readonly number[] {
    return this.#slots.map(({ lock }) => lock.fd);
  }

  get env(): Readonly<Record<string, string>> {
    return { [TURN_VARIABLE]: this.turn };
  }

  get released(): boolean {
    return this.#released;
  }

  holds(lane: LaneFiles): boolean {
    return this.#slots.some((slot) => slot.lane.name === lane.name && slot.lane.root === lane.root);
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    for (const { lock } of this.#slots.toReversed()) {
      ownDescriptors.delete(lock.fd);
      releaseSlot(lock, this.#locker);
    }
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
