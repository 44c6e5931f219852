import { formatBytes, formatDuration } from '../../../shared/format.ts';
import { type GuardView, holdsMemory, isPending } from './view.ts';
import { kill, unload } from './wording.ts';
import type { Decision, GuardModel } from './world.ts';

/** The router's own stop-timeout unless a preset says otherwise: a server that still has not let go is stuck. */
export const STOP_TIMEOUT_MS = 10_000;

/**
 * A person's order that everything leaves. The one rule that acts on a stale device too: a hung driver
 * gives no readings, and getting the models off it is the way out. A model in mid-request leaves after
 * it (rule 7); one whose state can't be told (a frozen API) is asked at once. What has not gone well
 * past the server's own stop-timeout is killed, if a person has said so, it is proven and it serves nothing we know of.
 */
export function drainRule(view: GuardView): readonly Decision[] {
  const { drain } = view.world;
  if (drain === null) return [];
  return view.world.models
    .filter((model) => view.mayTouch(model) && !(drain.sparePinned && model.pinned))
    .flatMap((model) => one(view, model));
}

function one(view: GuardView, model: GuardModel): readonly Decision[] {
  const sleeping = model.status === 'sleeping' && model.unloadRequestedAtMs === null;
  if (model.busy === true || (!holdsMemory(model) && !sleeping) || view.leaving.has(model.id)) return [];
  if (!isPending(model)) {
    if (model.status === 'loading') return [];
    const why = `everything is being drained; it holds ${formatBytes(model.bytes)}`;
    return [unload(model, 'drain', why, {}, { requireIdle: model.busy === false })];
  }
  const waitedMs = model.unloadRequestedAtMs === null ? 0 : view.world.nowMs - model.unloadRequestedAtMs;
  if (view.world.drain?.mayKill === false || model.signalable !== true) return [];
  if (waitedMs < (model.stopTimeoutMs ?? STOP_TIMEOUT_MS) + view.world.policy.raceGraceMs) return [];
  const why = `it was asked to unload ${formatDuration(waitedMs)} ago, while draining, and is still there`;
  return [kill(model, 'drain', why, { waitedMs }, null)];
}
