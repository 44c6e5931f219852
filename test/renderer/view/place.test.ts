import { describe, expect, it } from 'vitest';
import { eventsCard } from '../../../renderer/view/events.ts';
import { placeOf, rowAt } from '../../../renderer/view/place.ts';
import type { LandlordEvent } from '../../../shared/events.ts';

describe('where an address points', () => {
  it.each([
    ['#event-12', { kind: 'event', id: 12 }],
    ['#log', { kind: 'log' }],
    ['', null],
    ['#settings', { kind: 'page', page: 'settings', atMs: null }],
    ['#history-1760000000000', { kind: 'page', page: 'history', atMs: 1_760_000_000_000 }],
    ['#now', null],
    ['#event-', null],
    ['#event-12x', null],
    ['#event-9999999999999999', null],
  ])('%s', (hash, place) => {
    expect(placeOf(hash)).toEqual(place);
  });

  it('finds an event also within a run of the same', () => {
    const event = (id: number, reason: string): LandlordEvent => ({
      id,
      at: '2026-10-12T10:41:00.000Z',
      kind: 'denied',
      reason,
      numbers: {},
    });
    const { rows } = eventsCard(
      [event(3, 'a'), event(4, 'b'), event(5, 'b'), event(6, 'b'), event(9, 'c')],
      null,
    );
    expect(rows.map((row) => [row.firstId, row.id])).toEqual([
      [9, 9],
      [4, 6],
      [3, 3],
    ]);
    expect([9, 6, 5, 4, 3, 7].map((id) => rowAt(rows, id))).toEqual([0, 1, 1, 1, 2, -1]);
  });
});
