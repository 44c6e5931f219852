import { describe, expect, it } from 'vitest';
import { inOrder, type WaitingTurn } from '../../../../electron/core/engine/desk/turn-queue.ts';

const NOW = 100_000;
const turn = (agent: string, more: Partial<WaitingTurn> = {}): WaitingTurn => ({
  agent,
  class: 'interactive',
  arrivedAtMs: NOW - 100,
  lastTurnAtMs: null,
  ...more,
});
const names = (...turns: WaitingTurn[]) => inOrder(turns, NOW).map(({ agent }) => agent);

describe('whose turn it is', () => {
  it('takes interactive ones before batch, first come first', () => {
    const batch = turn('batch', { class: 'batch', arrivedAtMs: NOW - 500 });
    expect(names(batch, turn('late', { arrivedAtMs: NOW - 10 }), turn('early'))).toEqual([
      'early',
      'late',
      'batch',
    ]);
  });

  it('lets whoever had a turn wait behind those who have waited longer', () => {
    const served = turn('served', { arrivedAtMs: NOW - 900, lastTurnAtMs: NOW - 1 });
    expect(names(served, turn('waiting'))).toEqual(['waiting', 'served']);
  });

  it('serves batch in the end, however many interactive ones there are', () => {
    const aged = turn('aged', { class: 'batch', arrivedAtMs: NOW - 10_000 });
    expect(names(turn('a'), aged, turn('b'))[0]).toBe('aged');
    const young = turn('young', { class: 'batch', arrivedAtMs: NOW - 9_999 });
    expect(names(turn('a'), young).at(-1)).toBe('young');
    const justServed = { ...aged, lastTurnAtMs: NOW - 5 };
    expect(names(turn('a'), justServed).at(-1)).toBe('aged');
  });
});
