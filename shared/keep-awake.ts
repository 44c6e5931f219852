/** Whether the machine may go to sleep by itself: not in the middle of a turn. Pure. */
import type { LandlordState } from './state.ts';
import { isBusy, otherGenerating, shortModel, userOf } from './tray-agents.ts';

/** Who is in a turn, in a few words: `qwen-27b for writer`; null: nobody that we know of. */
export function turnInProgress(
  state: Pick<LandlordState, 'models' | 'lanes' | 'agents'> | null,
): string | null {
  if (state === null) return null;
  const turns = state.models.filter(isBusy).map((model) => {
    const name = userOf(model, state)?.name;
    return name == null ? shortModel(model.id) : `${shortModel(model.id)} for ${name}`;
  });
  for (const lane of state.lanes) {
    // A turn holds its lane between its requests, too.
    if (lane.held !== true || state.models.some((model) => model.backend === lane.backend && isBusy(model)))
      continue;
    turns.push(lane.holders[0]?.session ?? lane.backend);
  }
  // The embedded engine's agents: their models need not be anybody's backend.
  for (const agent of otherGenerating(state)) {
    if (state.models.some((model) => model.id === agent.model && isBusy(model))) continue;
    turns.push(agent.model === null ? agent.agent : `${shortModel(agent.model)} for ${agent.agent}`);
  }
  return turns.length === 0 ? null : turns.join(', ');
}
