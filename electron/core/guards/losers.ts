import { isResident } from './candidates.ts';
import { isFruitless } from './memory.ts';
import { byLeastRecentUse, type GuardView, isCandidate, isIdle, isQuiet, modelsOn } from './view.ts';
import type { GuardDevice, GuardModel } from './world.ts';

/** A model that could give way to one that is loading. */
export interface Loser {
  readonly model: GuardModel;
  readonly quiet: boolean;
  /**
   * It may go to keep the floor; one that is not may go only where the newcomer would otherwise end
   * under the hard floor.
   */
  readonly soft: boolean;
  /** The race policy keeps it: then the newcomer gives way. */
  readonly kept: boolean;
}

/**
 * Who may lose a race to `newcomer`, smallest harm first: quiet before busy, batch before interactive,
 * least recently used first. Any unpinned model may lose, but the residents on the allow-list come
 * after all others, quiet or not: they are there to stay (the seed's always-on 9B stays while a vision
 * model in mid-page goes).
 */
export function losersOn(view: GuardView, device: GuardDevice, newcomer: GuardModel): readonly Loser[] {
  return modelsOn(view, device.id)
    .filter((model) => model !== newcomer && isCandidate(view, model))
    .filter((model) => !isFruitless(view.memory, model, device.freeBytes, view.world.nowMs))
    .map((model) => ({
      model,
      quiet: isQuiet(model),
      soft: isSoft(view, model, newcomer),
      kept: isKept(view, model, newcomer),
    }))
    .sort((one, other) => harm(one) - harm(other) || byLeastRecentUse(one.model, other.model));
}

function isSoft(view: GuardView, model: GuardModel, newcomer: GuardModel): boolean {
  if (!isQuiet(model)) return false;
  if (model.batchOnly) return true;
  if (isResident(model)) return false;
  return (newcomer.big && model.big) || isIdle(view, model);
}

/** Rule 7: `class` keeps a busy one that serves an interactive turn from a batch or unknown newcomer, `newcomer` keeps any busy one. */
export function isKept(view: GuardView, model: GuardModel, newcomer: GuardModel): boolean {
  if (isQuiet(model)) return false;
  switch (view.world.policy.race) {
    case 'resident':
      return false;
    case 'newcomer':
      return true;
    case 'class':
      return model.turnClass === 'interactive' && newcomer.turnClass !== 'interactive';
  }
}

function harm({ model, quiet }: Loser): number {
  const residents = isResident(model) ? 100 : 0;
  if (quiet) return residents + (model.batchOnly ? 0 : model.big ? 1 : 2);
  if (model.batchOnly || model.turnClass === 'batch') return residents + 10;
  return residents + (model.turnClass === 'interactive' ? 12 : 11);
}

/**
 * The least harmful of `losers` (which come smallest harm first) that give `wantedBytes`, with none
 * that the others make needless; null where even all do not do. One of unknown size is taken to do.
 */
export function leastHarm(losers: readonly Loser[], wantedBytes: number): readonly Loser[] | null {
  const chosen: Loser[] = [];
  let missing = wantedBytes;
  for (const loser of losers) {
    if (missing <= 0) break;
    chosen.push(loser);
    missing -= loser.model.bytes ?? Number.POSITIVE_INFINITY;
  }
  if (missing > 0) return null;
  const known = (list: readonly Loser[]) => list.reduce((sum, loser) => sum + (loser.model.bytes ?? 0), 0);
  const open = chosen.some((loser) => loser.model.bytes === null);
  return [...chosen].reverse().reduce<readonly Loser[]>((kept, loser) => {
    if (open && loser.model.bytes === null) return kept;
    const without = kept.filter((other) => other !== loser);
    const stillOpen = without.some((other) => other.model.bytes === null);
    return !stillOpen && known(without) >= wantedBytes ? without : kept;
  }, chosen);
}
