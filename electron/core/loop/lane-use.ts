import type { LaneState } from '../../../shared/state.ts';
import type { ModelUse } from './world.ts';

/**
 * Whose turn a model serves by the lanes' own word: programs that take a lane without us say in its
 * sidecar for which model and class. null: no lane says so.
 */
export function laneUse(lanes: readonly LaneState[], modelId: string): ModelUse | null {
  const holders = lanes.flatMap((lane) =>
    lane.holders.filter(({ model }) => model !== null && `${lane.backend}/${model}` === modelId),
  );
  const classes = holders.flatMap((holder) => holder.class ?? []);
  if (classes.length === 0) return null;
  return { class: classes.includes('interactive') ? 'interactive' : 'batch', requests: 0 };
}
