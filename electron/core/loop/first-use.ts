import type { BackendSnapshot } from '../backends/backend.ts';
import type { ControlLoop } from '../control-loop.ts';
import type { Fleet } from './fleet.ts';

/** A router lists its models within a second of its start; a server that reads a big file first takes longer. */
const START_LIMIT_MS = 60_000;

/**
 * Starts the server of ours that a wish is for, where it waits for its first use, and waits until it tells
 * its models; also for one that is on its way up. Resolves with true when it is worth to look again, and
 * false when there is nothing to be started: with several of them a name has to say which, as `backend/model`.
 */
export async function startForUse(
  { loop, fleet }: { readonly loop: Pick<ControlLoop, 'until'>; readonly fleet: Fleet },
  wanted: string | null,
  signal?: AbortSignal,
): Promise<boolean> {
  const coming = fleet
    .list()
    .filter(({ setting }) => setting.command !== null)
    .filter(({ snapshot }) => isAway(snapshot) && COMING.has(snapshot.own?.status ?? ''));
  const named = coming.find(({ setting }) => wanted?.startsWith(`${setting.name}/`) === true);
  const chosen = named ?? (coming.length === 1 ? coming[0] : undefined);
  if (chosen === undefined) return false;
  const { name } = chosen.setting;
  fleet.get(name)?.wake?.();
  const isUp = (): boolean => {
    const snapshot = fleet.get(name)?.snapshot();
    return snapshot !== undefined && !isAway(snapshot) && snapshot.models.length > 0;
  };
  return await loop.until(isUp, START_LIMIT_MS, signal);
}

/** A server of one model is listed also while it rests, and while it comes back. */
function isAway({ status, isSingle, models }: BackendSnapshot): boolean {
  if (status !== 'up') return true;
  return (
    isSingle === true && models.every((model) => model.status !== 'loaded' && model.status !== 'sleeping')
  );
}

const COMING: ReadonlySet<string> = new Set(['idle', 'starting', 'running']);
