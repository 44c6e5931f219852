import { formatBytes, formatList } from '../../../shared/format.ts';
import type { Outcome } from '../actuators/operation.ts';
import type { ControlLoop } from '../control-loop.ts';
import { planRoom } from '../guards/candidates.ts';
import type { Booking, Denial } from '../ledger/booking.ts';
import type { ModelView } from './model-view.ts';

/** Who asks for room on which device, and what stands in the way. */
export interface RoomWish {
  readonly deviceId: string;
  /** As a person knows it: `router/qwen-27b`, a job's name. */
  readonly name: string;
  /** The model it is for; null: a job. */
  readonly modelId: string | null;
  readonly denial: Denial;
  /** An agent's own, which has counted and asked the others already. */
  readonly byAgent?: true;
}

const ROOM_LIMIT_MS = 60_000;

/**
 * Who would leave for it: batch-only and idle models that the guards may touch, big ones first. The
 * residents on the allow-list stay: only the hard floor moves them (rule 9), never another load.
 */
export function roomPlan(
  loop: ControlLoop,
  wish: Pick<RoomWish, 'deviceId'> &
    Partial<Pick<RoomWish, 'name' | 'modelId' | 'byAgent'>> & { readonly denial: Pick<Denial, 'shortBytes'> },
): ReturnType<typeof planRoom> | null {
  const { world } = loop;
  const device = world?.devices.find((one) => one.id === wish.deviceId);
  if (world === null || device === undefined || !device.fresh || wish.denial.shortBytes === null) return null;
  return planRoom(
    { world, memory: loop.memory, leaving: new Set(), mayTouch: (model) => model.guarded === 'on' },
    device,
    Math.max(0, wish.denial.shortBytes - agentsIdle(loop, wish)),
    { smalls: false },
  );
}

/** What agents would give before any model of the plan has to leave. */
export function agentsIdle(loop: ControlLoop, wish: Pick<RoomWish, 'deviceId' | 'byAgent'>): number {
  return wish.byAgent === true ? 0 : (loop.agents?.idleBytes(wish.deviceId) ?? 0);
}

/** Unloads idle models until `denial` would no longer hold; false when they can't give enough, or turn out busy. */
export async function makeRoomFor(loop: ControlLoop, wish: RoomWish): Promise<boolean> {
  const { shortBytes } = wish.denial;
  const why = `${wish.name} was asked for`;
  // Who holds memory without working gives it back before any model has to leave: what agents have comes
  // back in no time. They are not asked where all that may go would not do.
  const asksAgents = shortBytes !== null && roomPlan(loop, wish)?.enough === true;
  const byAgents = asksAgents
    ? ((await loop.agents?.give(wish.deviceId, Math.min(shortBytes, agentsIdle(loop, wish)), why)) ?? 0)
    : 0;
  if (shortBytes !== null && byAgents >= shortBytes) return true;
  const given = byAgents + (await loop.guestsGive(wish.deviceId, why));
  if (shortBytes !== null && given >= shortBytes) return true;
  const rest = shortBytes === null ? wish.denial : { ...wish.denial, shortBytes: shortBytes - byAgents };
  const plan = roomPlan(loop, { ...wish, denial: rest });
  if (plan === null || !plan.enough || plan.models.length === 0) return false;
  const { requestedBytes, freeBytes, floorBytes } = wish.denial;
  const left = plan.models.map((model) => {
    const leaving = leaves(loop, model.id);
    loop.executor.unload({
      modelId: model.id,
      cause: 'make_room',
      requireIdle: true,
      reason: `Unloading ${model.id}: ${wish.name} was asked for and needs ${formatBytes(requestedBytes)}, ${formatBytes(freeBytes)} is free and ${formatBytes(floorBytes)} of it is kept for the desktop.`,
      numbers: { requestedBytes, freeBytes, floorBytes },
      forModelId: wish.modelId,
    });
    return leaving;
  });
  return (await Promise.all(left)).every(Boolean);
}

/** So many are named, the rest counted: a sentence with twenty names in it is not read. */
const NAMED = 6;

/**
 * What stands in the way of room, in words: who would have to go, and why each stays. `jobs`: the
 * bookings on that device that are no models'; each stays until it ends.
 */
export function whoStays(
  loop: ControlLoop,
  wish: RoomWish,
  jobs: readonly Pick<Booking, 'kind' | 'name' | 'predictedBytes'>[],
): string {
  const plan = roomPlan(loop, wish);
  if (plan?.enough === true && plan.models.length > 0)
    return ` ${formatList(plan.models.map((model) => model.id))} would have to go first.`;
  const there = loop.models
    .views()
    .filter((view) => view.deviceId === wish.deviceId && view.status === 'loaded');
  // A request that has been admitted counts before its backend shows it.
  const seen = new Map(loop.world?.models.map((model) => [model.id, model.busy]));
  const busyOf = ({ id, observed }: ModelView): boolean | null => seen.get(id) ?? observed.busy;
  const groups = [
    [there.filter((view) => view.pinned), 'pinned'],
    [there.filter((view) => view.observed.isFixed === true), 'not to be unloaded by its server'],
    [there.filter((view) => !view.pinned && busyOf(view) === true), 'in use'],
    [there.filter((view) => !view.pinned && busyOf(view) === null), 'not known to be idle'],
    [there.filter((view) => !view.pinned && busyOf(view) === false && view.small), 'resident'],
    [
      there.filter(
        (view) => !view.pinned && busyOf(view) === false && !view.small && view.guarded === 'observe',
      ),
      'only watched',
    ],
  ] as const;
  const models = groups
    .filter(([views]) => views.length > 0)
    .map(
      ([views, why]) =>
        ` ${formatList(
          views.map((view) => view.id),
          NAMED,
        )} ${views.length === 1 ? 'is' : 'are'} ${why}.`,
    );
  const booked = jobs
    .filter((job) => job.kind === 'reserved')
    .map((job) => ` ${job.name} has booked ${formatBytes(job.predictedBytes)} until it ends.`);
  return [...models, ...booked].join('');
}

/** True when the model's present unload ends with its memory back. */
async function leaves(loop: ControlLoop, modelId: string): Promise<boolean> {
  return (await outcomeOf(loop, modelId, ROOM_LIMIT_MS))?.type === 'left';
}

/** The outcome that ends a model's present unload; null when none came within the limit. */
export function outcomeOf(loop: ControlLoop, modelId: string, limitMs: number): Promise<Outcome | null> {
  return new Promise((resolve) => {
    const done = (outcome: Outcome | null): void => {
      clearTimeout(timer);
      undo();
      resolve(outcome);
    };
    const timer = setTimeout(() => done(null), limitMs);
    const undo = loop.onOutcome((outcome) => {
      const { type, operation } = outcome;
      if (operation.modelId !== modelId || type === 'stuck' || type === 'signal_refused') return;
      done(outcome);
    });
  });
}
