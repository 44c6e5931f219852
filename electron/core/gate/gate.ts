import { AsyncLocalStorage } from 'node:async_hooks';
import { messageOf } from '../../../shared/errors.ts';
import { ActiveTurn } from './active-turn.ts';
import { type GateWorld, realWorld } from './gate-world.ts';
import { inspectSlot } from './inspect.ts';
import { readLockTable } from './kernel-locks.ts';
import { type LaneFiles, slotFiles } from './lane-files.ts';
import { Later } from './later.ts';
import type { FileLocker } from './locker.ts';
import { ownHolder, unseenClaim } from './nested.ts';
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
import { readSidecar, sidecarOf, type TurnClass } from './sidecar.ts';
import { clearSidecarOf, writeSidecarOf } from './slot-sidecar.ts';
import { type TakenSlot, takeLanes } from './take-lanes.ts';
import { ownDescriptors, releaseSlot, takeSlot } from './take-slot.ts';
import {
  type BusyTurn,
  busyMessage,
  type HeldTurn,
  NEXT_IN_QUEUE,
  type NestedTurn,
  type OpenTurn,
  parseTurns,
  type SkippedTurn,
  TURN_VARIABLE,
  type Turn,
  type TurnAbout,
  turnName,
  turnsText,
} from './turn.ts';

export interface TurnOptions {
  readonly session?: string | null;
  readonly model?: string | null;
  /** Default `interactive`, which comes before `batch` among those who wait. */
  readonly class?: TurnClass;
  /** Told once of each kind of trouble; default: one warning of the process. */
  readonly onReport?: OnReport;
  /**
   * False writes no sidecar: faster, and nobody can tell who holds the lane, nor which of this program's
   * turns a child of it belongs to, save by TURN_VARIABLE. `soon`: once it has lasted
   * a moment (`SOON_MS`), since nobody can look at a shorter one in time. Default true.
   */
  readonly sidecar?: boolean | 'soon';
  /** False: a running landlord does not hear of this turn, whatever happens to it. Default true. */
  readonly reports?: boolean;
  /** Its name in sidecar and LANDLORD_TURN, where a comma in it is written `_`; made up when left out. */
  readonly turn?: string;
}

/** A sidecar costs six system calls, more than a short turn's own; a person or a poll looks later than this. */
const SOON_MS = 20;

const NOWHERE: readonly ActiveTurn[] = [];

export interface TryContext {
  readonly plan: Extract<Plan, { readonly kind: 'lanes' }>;
  readonly locker: FileLocker;
  /** Names of the turns this process was started in. */
  readonly outside: readonly string[];
  /** These, and those of this process that the running code is inside of; outermost first. */
  readonly around: readonly string[];
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
  /**
   * Leaves out the lanes that the agent asking holds already (rule 20); nested when it holds them all,
   * the same context when it holds none.
   */
  narrow(context: TryContext): TryContext | NestedTurn;
  busy(context: TryContext, missed: Missed, waitedMs: number): BusyTurn;
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

export function createGate(overrides: Partial<GateWorld> = {}): Gate {
  const world: GateWorld = { ...realWorld, ...overrides };
  const planner = createPlanner(world);
  const tellOnce = oncePerReason();
  const soon = new Later(SOON_MS);
  /** Part of the names of all turns: when the first of them was taken. */
  let began: string | null = null;
  /** The turns of this process that the running code is inside of, outermost first. */
  const inside = new AsyncLocalStorage<readonly ActiveTurn[]>();
  const turnsHere = (): readonly ActiveTurn[] => {
    const turns = inside.getStore();
    return turns === undefined ? NOWHERE : turns.filter((turn) => !turn.released);
  };

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
      const here = turnsHere();
      const named = world.env()[TURN_VARIABLE];
      const outside = parseTurns(named);
      const around = here.length === 0 ? outside : [...outside, ...here.map(({ turn }) => turn)];
      const lanes =
        here.length === 0 ? plan.lanes : plan.lanes.filter((lane) => !here.some((turn) => turn.holds(lane)));
      if (lanes.length === 0) {
        const holder = here.find((turn) => plan.lanes.some((lane) => turn.holds(lane)));
        return settled(nested(holder?.turn ?? null, around));
      }
      const locker = world.locker();
      if (!locker.ok) {
        const message = `${locker.error.message} The turn goes on without its lane.`;
        const lane = plan.lanes[0]?.name ?? null;
        return settled(open('no_locker', { lane, path: null, message, errno: null }, onReport));
      }
      const context: TryContext = {
        plan: lanes.length === plan.lanes.length ? plan : { ...plan, lanes },
        outside,
        around,
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
      if (plan.flaw !== null) context.report(plan.flaw);
      if (named === undefined) return { kind: 'ready', context };
      // Also where the lane has a slot left: one agent's turns inside its turn are one turn.
      const narrowed = narrow(context);
      return 'kind' in narrowed ? settled(narrowed) : { kind: 'ready', context: narrowed };
    } catch (thrown) {
      return settled(open('internal', internal(thrown), onReport));
    }
  };

  const narrow = (context: TryContext): TryContext | NestedTurn => {
    try {
      const { plan, about, outside, around } = context;
      const asker = { turns: outside, session: about.session };
      const names: (string | null)[] = [];
      const lanes = plan.lanes.filter((lane) => {
        const own = ownHolder(lane, asker, ownDescriptors);
        if (own === null && !heldUnseen(lane, asker.turns, context)) return true;
        names.push(own === null ? (asker.turns.at(-1) ?? null) : own.turn);
        return false;
      });
      if (lanes.length === plan.lanes.length) return context;
      if (lanes.length > 0) return { ...context, plan: { ...plan, lanes } };
      return nested(names.find((name) => name !== null) ?? null, around);
    } catch {
      return context;
    }
  };

  /** In a pid namespace: the sidecar names a turn we are inside of, and the lock itself says that somebody has it. */
  const heldUnseen = (lane: LaneFiles, turns: readonly string[], { plan, locker }: TryContext): boolean => {
    const slot = unseenClaim(lane, turns);
    if (slot === null) return false;
    const take = takeSlot(slot.lock, plan.modes, locker);
    if (take.kind === 'taken') releaseSlot(take.slot, locker);
    return take.kind === 'busy';
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
      const given = options.turn === undefined ? '' : turnName(options.turn);
      began ??= Math.floor(world.epochMs()).toString(36);
      const id = given || `${began}-${world.chance()}`;
      const turn = new ActiveTurn(id, context.around, take.slots, locker, waitedMs);
      tellHolder(context, turn, take.slots);
      return turn;
    } catch (thrown) {
      return open('internal', internal(thrown), onReport);
    }
  };

  /** Never throws: from here on the lane is held, and must be released. */
  const tellHolder = (context: TryContext, turn: ActiveTurn, slots: readonly TakenSlot[]): void => {
    const when = context.options.sidecar ?? true;
    const write = (): void => writeSidecars(context, slots, turn.turn);
    if (when === true) write();
    else {
      for (const slot of slots) clearSidecarOf(slot);
      if (when === 'soon') turn.unlessReleased(soon, write);
    }
  };

  const writeSidecars = (context: TryContext, slots: readonly TakenSlot[], turn: string): void => {
    const sidecar = sidecarOf({ ...context.about, turn }, world.epochMs());
    for (const slot of slots) {
      const { lane } = slot;
      const path = slot.files.sidecar;
      try {
        writeSidecarOf(slot, sidecar, context.plan.modes.lock);
      } catch (thrown) {
        const message = `${path} can't be written (${messageOf(thrown)}), so nobody can tell who holds this lane; it is held all the same.`;
        report(context, 'sidecar_not_written', lane, path, message);
      }
    }
  };

  const busy = (context: TryContext, missed: Missed, waitedMs: number): BusyTurn => {
    const { lane } = missed;
    const base = {
      kind: 'busy' as const,
      code: 'local_backend_busy' as const,
      lane: lane.name,
      waitedMs,
      [Symbol.dispose]: () => undefined,
    };
    try {
      const { session } = context.about;
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
    const place = newcomerName(context.about.class);
    const got = attempt(context, place, 0);
    if (got.kind !== 'missed') return got;
    const narrowed = narrow(context);
    if ('kind' in narrowed) return narrowed;
    const again = narrowed === context ? got : attempt(narrowed, place, 0);
    return again.kind === 'missed' ? deflect(context, busy(context, again, 0)) : again;
  };

  const deflect = <T extends Turn>(context: TryContext, turn: T): T => {
    if (turn.kind === 'busy' && context.options.reports !== false)
      world.teller.tell(deflectionNews(turn, context.about));
    return turn;
  };

  const within = <T>(turn: Turn, fn: () => T): T =>
    turn instanceof ActiveTurn ? inside.run([...turnsHere(), turn], fn) : fn();

  return { ...planner, world, prepare, attempt, narrow, busy, deflect, tryTurn, within };
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

function nested(turn: string | null, around: readonly string[]): NestedTurn {
  const turns = turn === null ? around : [...around.filter((name) => name !== turn), turn];
  const env: Readonly<Record<string, string>> =
    turns.length === 0 ? {} : { [TURN_VARIABLE]: turnsText(turns) };
  return { kind: 'nested', turn, env, [Symbol.dispose]: () => undefined };
}
