import { describe, expect, it } from 'vitest';
import { laneUse } from '../../../electron/core/loop/lane-use.ts';
import type { LaneHolderState, LaneState } from '../../../shared/state.ts';

function lane(holders: readonly Partial<LaneHolderState>[]): LaneState {
  const nobody = {
    pid: 1,
    command: null,
    session: null,
    model: null,
    class: null,
    turn: null,
    acquiredAt: null,
  };
  return {
    backend: 'router',
    configured: true,
    path: '/x',
    width: 2,
    held: true,
    holders: holders.map((holder) => ({ ...nobody, ...holder })),
    waiting: 0,
  };
}

describe('whose turn a model serves, by the lanes', () => {
  it('is what the holder says of itself; an interactive one outranks the batch beside it', () => {
    const lanes = [
      lane([
        { model: 'qwen', class: 'batch' },
        { model: 'qwen', class: 'interactive' },
      ]),
    ];
    expect(laneUse(lanes, 'router/qwen')).toEqual({ class: 'interactive', requests: 0 });
  });

  it('is unknown of another model, and where the holder says neither', () => {
    expect(laneUse([lane([{ model: 'qwen', class: 'batch' }])], 'router/other')).toBeNull();
    expect(laneUse([lane([{ model: 'qwen' }, { class: 'batch' }])], 'router/qwen')).toBeNull();
  });
});
