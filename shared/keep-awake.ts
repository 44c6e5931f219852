/** Whether the machine may go to sleep by itself: not in the middle of a turn. Pure. */
import type { LandlordState } from './state.ts';
import { holderOf, isBusy, shortModel } from './tray-lines.ts';

/** Who is in a turn, in a few words: `qwen-27b for writer`; null: nobody that we know of. */
export function turnInProgress(state: Pick<LandlordState, 'models' | 'lanes'> | null): string | null {
  if (state === null) return null;
  const turns = state.models.filter(isBusy).map((model) => {
    const session = holderOf(model, state)?.session;
    return session == null ? shortModel(model.id) : `${shortModel(model.id)} for ${session}`;
  });
  for (const lane of state.lanes) {
    // A turn holds its lane between its requests, too.
    if (lane.held !== true || state.models.some((model) => model.backend === lane.backend && isBusy(model)))
      continue;
    turns.push(lane.holders[0]?.session ?? lane.backend);
  }
  return turns.length === 0 ? null : turns.join(', ');
}
