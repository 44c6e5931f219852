import { decide } from '../../../electron/core/guards/decide.ts';
import { fallenSince, fallingBytesPerS } from '../../../electron/core/guards/hysteresis.ts';
import { emptyMemory, noteFreedNothing } from '../../../electron/core/guards/memory.ts';
import type {
  Decision,
  GuardDevice,
  GuardMemory,
  GuardModel,
  GuardPolicy,
  GuardWorld,
} from '../../../electron/core/guards/world.ts';
import { heldBy } from './simulation.ts';
import { CARD, device, GB, model, world } from './worlds.ts';

/**
 * A world small enough to be searched whole: one card, three models, a desktop, time in steps. The
 * models load, work, obey and end as real ones do; what the people and programs around them do is one
 * action a step, and every order of actions is tried.
 */
export const STEP_MS = 2_500;
export const TOTAL_BYTES = 12 * GB;
const FLOOR_BYTES = 3 * GB;
const HARD_FLOOR_BYTES = 1.5 * GB;
/** What the desktop holds: little, some, and enough to break the floor beside two models. */
const DESKTOP_BYTES = [1 * GB, 3 * GB, 6 * GB];
/** A model has all its memory after so many steps of loading. */
const LOAD_STEPS = 3;
/** Nothing that the guards weigh is older than this. */
const OLD_STEPS = 6;

export interface Role {
  readonly bytes: number;
  readonly big: boolean;
  readonly small?: boolean;
  readonly pinned?: boolean;
  readonly batchOnly?: boolean;
  readonly turnClass?: 'interactive' | 'batch';
  readonly signalable?: boolean;
  /** false: its process goes and its memory does not come back, once. */
  readonly frees?: boolean;
}

export interface SmallWorld {
  readonly nowMs: number;
  readonly desktop: number;
  readonly models: readonly GuardModel[];
  readonly fresh: boolean;
  readonly resumedAtMs: number | null;
  readonly asleep: boolean;
  /** Since when readings that count have shown less than the floor; null: the last one did not. */
  readonly shortSinceMs: number | null;
  readonly memory: GuardMemory;
  /** On the card, and nobody's (rule 14): what a model left behind. */
  readonly lostBytes: number;
  /** A request reaches it between the guards' look and their question; null: none does. */
  readonly surprised: number | null;
}

export interface Rules {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly policy: Partial<GuardPolicy>;
}

/** The spans of the product's rules, shortened alike: some steps each. */
const POLICY: Partial<GuardPolicy> = {
  idleMs: 2 * STEP_MS,
  breachMs: 2 * STEP_MS,
  minResidencyMs: 4 * STEP_MS,
  raceGraceMs: 2 * STEP_MS,
};

export function begin({ roles }: Rules): SmallWorld {
  return {
    nowMs: 10_000_000,
    desktop: 0,
    models: roles.map((role, index) =>
      model(`m${index}`, {
        ...role,
        status: 'unloaded',
        statusSinceMs: 10_000_000,
        lastUsedAtMs: null,
        turnClass: role.turnClass ?? null,
        signalable: role.signalable ?? true,
      }),
    ),
    fresh: true,
    resumedAtMs: null,
    asleep: false,
    shortSinceMs: null,
    memory: emptyMemory(),
    lostBytes: 0,
    surprised: null,
  };
}

/** What somebody does in one step; null: it can't be done now. */
export type Action = (from: SmallWorld) => SmallWorld | null;

export function actionsOf({ roles }: Rules): readonly { readonly name: string; readonly act: Action }[] {
  const each = roles.flatMap((_, index) => [
    { name: `load m${index}`, act: change(index, (one) => one.status === 'unloaded', loadOf(index)) },
    {
      name: `request to m${index}`,
      act: change(
        index,
        (one) => one.status === 'loaded' && one.busy === false,
        () => ({ busy: true }),
      ),
    },
    {
      name: `answer of m${index}`,
      act: change(
        index,
        (one) => one.status === 'loaded' && one.busy !== false,
        (_one, nowMs) => ({ busy: false, lastUsedAtMs: nowMs }),
      ),
    },
  ]);
  return [
    { name: 'nothing', act: (from) => from },
    ...DESKTOP_BYTES.map((_, desktop) => ({
      name: `desktop at ${desktop}`,
      act: (from: SmallWorld) => (from.desktop === desktop ? null : { ...from, desktop }),
    })),
    { name: 'samples lost or back', act: (from) => ({ ...from, fresh: !from.fresh }) },
    {
      name: 'busy of m0 unknown',
      act: change(
        0,
        (one) => one.status === 'loaded' && one.busy !== null,
        () => ({ busy: null }),
      ),
    },
    {
      name: 'resume',
      act: (from) => (from.resumedAtMs === null ? { ...from, resumedAtMs: from.nowMs } : null),
    },
    { name: 'request as m0 is asked', act: (from) => ({ ...from, surprised: 0 }) },
    { name: 'sleep or wake', act: (from) => ({ ...from, asleep: !from.asleep }) },
    ...each,
  ];
}

function change(
  index: number,
  can: (one: GuardModel) => boolean,
  how: (one: GuardModel, nowMs: number) => Partial<GuardModel>,
): Action {
  return (from) => {
    const one = from.models[index];
    if (one === undefined || !can(one)) return null;
    return { ...from, models: from.models.with(index, { ...one, ...how(one, from.nowMs) }) };
  };
}

/** Some servers say of one that loads that it serves nobody, others say nothing. */
function loadOf(index: number): (one: GuardModel, nowMs: number) => Partial<GuardModel> {
  const busy = index === 0 ? null : false;
  return ({ bytes }, nowMs) => ({
    status: 'loading',
    statusSinceMs: nowMs,
    busy,
    predictedBytes: bytes,
    seenBytes: 0,
  });
}

export interface Step {
  readonly seen: GuardWorld;
  readonly before: GuardMemory;
  readonly shortSinceMs: number | null;
  readonly decisions: readonly Decision[];
  readonly next: SmallWorld;
}

/** The guards look at the world as it is; what they decide is done; then a step of time goes by. */
export function step(from: SmallWorld, rules: Rules): Step {
  const seen = look(from, rules);
  const { decisions, memory } = decide(seen, from.memory);
  const models = from.models.map((each, index) => {
    const one = index === from.surprised && each.status === 'loaded' ? { ...each, busy: true } : each;
    const decision = decisions.find(({ modelId }) => modelId === one.id);
    return decision === undefined ? one : obey(one, decision, from.nowMs);
  });
  const shortSinceMs = shortSince(from, seen);
  const next = later({ ...from, models, memory, shortSinceMs, surprised: null }, rules);
  return { seen, before: from.memory, shortSinceMs, decisions, next };
}

/** Kept here as well, so that the guards' own memory of a breach is not taken for the truth. */
function shortSince(from: SmallWorld, { devices: [card] }: GuardWorld): number | null {
  const resumed = from.resumedAtMs ?? Number.NEGATIVE_INFINITY;
  if (card === undefined || !from.fresh || from.nowMs <= resumed) return null;
  if ((card.freeBytes ?? 0) >= FLOOR_BYTES) return null;
  const since = from.shortSinceMs;
  return since === null || since <= resumed ? from.nowMs : since;
}

export function look(from: SmallWorld, { policy }: Rules): GuardWorld {
  const freeBytes = freeOf(from);
  const card: GuardDevice = device({
    totalBytes: TOTAL_BYTES,
    floorBytes: FLOOR_BYTES,
    hardFloorBytes: HARD_FLOOR_BYTES,
    capBytes: 0.9 * TOTAL_BYTES,
    freeBytes: Math.max(0, freeBytes),
    fresh: from.fresh,
    evictionUnderWay: freeBytes < 0,
    sampledAtMs: from.nowMs,
  });
  return world(card, from.models, {
    nowMs: from.nowMs,
    resumedAtMs: from.resumedAtMs,
    asleep: from.asleep,
    policy: { ...POLICY, ...policy },
  });
}

/** Under 0 where more is asked for than there is: the driver then moves it out. */
function freeOf(from: SmallWorld): number {
  const held = from.models.reduce((sum, one) => sum + heldBy(one), 0);
  return TOTAL_BYTES - (DESKTOP_BYTES[from.desktop] ?? 0) - held - from.lostBytes;
}

function obey(one: GuardModel, decision: Decision, nowMs: number): GuardModel {
  if (decision.type === 'kill') return ended(one, nowMs);
  // Asked just before: one that is at work is left alone, save by the loser's rule.
  if (decision.requireIdle && one.busy !== false) return one;
  return { ...one, unloadRequestedAtMs: one.unloadRequestedAtMs ?? nowMs };
}

function ended(one: GuardModel, nowMs: number): GuardModel {
  return {
    ...one,
    status: 'unloaded',
    statusSinceMs: nowMs,
    busy: false,
    unloadRequestedAtMs: null,
    seenBytes: null,
    predictedBytes: null,
  };
}

/** Loads go on, the quiet ones that were asked to go do so, and what does not fit at all fails. */
function later(from: SmallWorld, rules: Rules): SmallWorld {
  const nowMs = from.nowMs + STEP_MS;
  const models = from.models.map((one) => {
    if (one.unloadRequestedAtMs !== null && one.busy !== true && one.status !== 'loading')
      return ended(one, nowMs);
    if (one.status !== 'loading') return one;
    const steps = Math.round((nowMs - one.statusSinceMs) / STEP_MS);
    if (steps < LOAD_STEPS) return { ...one, seenBytes: ((one.bytes ?? 0) * steps) / LOAD_STEPS };
    return {
      ...one,
      status: 'loaded' as const,
      statusSinceMs: nowMs,
      busy: false,
      lastUsedAtMs: nowMs,
      predictedBytes: null,
      seenBytes: null,
    };
  });
  const next = withLoss({ ...from, nowMs, models }, from, rules);
  if (freeOf(next) >= -2 * GB) return next;
  const newcomer = models.findIndex((one) => one.status === 'loading');
  const failed = models[newcomer];
  return failed === undefined ? next : { ...next, models: models.with(newcomer, ended(failed, nowMs)) };
}

/** One that was asked to go, and went, and whose memory has not come back: told to the guards, as the executor does. */
function withLoss(next: SmallWorld, from: SmallWorld, { roles }: Rules): SmallWorld {
  const index = from.models.findIndex(
    (one, at) =>
      roles[at]?.frees === false &&
      one.unloadRequestedAtMs !== null &&
      next.models[at]?.status === 'unloaded',
  );
  const one = from.models[index];
  if (one === undefined || from.lostBytes > 0) return next;
  const lost = { ...next, lostBytes: heldBy(one) };
  const freeBytes = Math.max(0, freeOf(lost));
  return { ...lost, memory: noteFreedNothing(lost.memory, one.id, next.nowMs, freeBytes) };
}

/** The same text for worlds that the guards can't tell apart, however they came about. */
export function keyOf(from: SmallWorld): string {
  const age = (atMs: number | null | undefined, most = OLD_STEPS): number | null =>
    atMs === null || atMs === undefined ? null : Math.min(most, Math.round((from.nowMs - atMs) / STEP_MS));
  const points = from.memory.recentFree[CARD] ?? [];
  return JSON.stringify([
    from.desktop,
    from.fresh,
    from.asleep,
    from.resumedAtMs === null ? 0 : 1,
    from.models.map((one) => [
      one.status,
      age(one.statusSinceMs),
      one.busy,
      age(one.lastUsedAtMs),
      age(one.unloadRequestedAtMs),
      one.seenBytes,
      one.status === 'loading' ? fallenSince(points, one.statusSinceMs) : 0,
    ]),
    age(from.memory.breachSinceMs[CARD], 3),
    age(from.shortSinceMs, 3),
    fallingBytesPerS(points),
    from.lostBytes,
    Object.entries(from.memory.freedNothing).map(([id, { freeBytes }]) => [id, freeBytes]),
    Object.entries(from.memory.decided)
      .map(([id, { atMs, ...rest }]) => [id, age(atMs), rest])
      .sort(),
  ]);
}
