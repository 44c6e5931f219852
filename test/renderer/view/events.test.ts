import { describe, expect, it } from 'vitest';
import { strings } from '../../../renderer/strings.ts';
import { eventsCard } from '../../../renderer/view/events.ts';
import { numberPairs } from '../../../renderer/view/numbers.ts';
import { EVENT_KINDS, type LandlordEvent } from '../../../shared/events.ts';
import { loadState } from '../../support/states.ts';

const { state, events } = loadState('after-eviction');

function event(id: number, change: Partial<LandlordEvent> = {}): LandlordEvent {
  return {
    id,
    at: '2025-10-14T10:00:00.000Z',
    kind: 'evicted',
    reason: 'Unloaded it.',
    numbers: {},
    ...change,
  };
}

describe('events', () => {
  it('shows the newest first, with the reason as it was given', () => {
    const { rows } = eventsCard(events, state);
    expect(rows[0]?.reason).toMatch(/^Unloaded vision-8b: .* 6\.2 GB came back in 1\.1 s\.$/);
    expect(rows.map((row) => row.id)).toEqual(events.map((entry) => entry.id).toReversed());
  });

  it('offers to load again what a guard took, once, and only while it is away', () => {
    expect(eventsCard(events, state).rows[0]?.loadAgain).toEqual({
      id: 'router/vision-8b',
      name: 'vision-8b',
    });
    const twice = [
      event(1, { model: 'router/vision-8b' }),
      event(2, { model: 'router/vision-8b', reason: 'Again.' }),
    ];
    expect(eventsCard(twice, state).rows.map((row) => row.loadAgain !== null)).toEqual([true, false]);
    const loaded = {
      ...state,
      models: state.models.map((model) => ({ ...model, status: 'loaded' as const })),
    };
    expect(eventsCard(events, loaded).rows.every((row) => row.loadAgain === null)).toBe(true);
    const would = [event(1, { kind: 'would_evict', model: 'router/vision-8b' })];
    expect(eventsCard(would, state).rows[0]?.loadAgain).toBeNull();
  });

  it('tells the same thing in a row once, with how often', () => {
    const same = [event(1), event(2), event(3), event(4, { reason: 'Another.' })];
    expect(eventsCard(same, null).rows.map(({ reason, times }) => [reason, times])).toEqual([
      ['Another.', 1],
      ['Unloaded it.', 3],
    ]);
  });

  it('has plain words for every kind of event', () => {
    for (const kind of EVENT_KINDS) {
      expect(strings.events.kind[kind], kind).toMatch(/^[a-z][a-z ]+$/);
    }
  });
});

describe('numbers behind a refusal', () => {
  it('come in a fixed order with plain names, and unknown ones as unknown', () => {
    const pairs = numberPairs({
      floorBytes: 4e9,
      queuedRequests: 2,
      freeBytes: null,
      requestedBytes: 18.6e9,
      waitMs: 1500,
    });
    expect(pairs.map(({ name, text }) => `${name} ${text}`)).toEqual([
      'asked for 18.6 GB',
      'free unknown',
      'floor 4 GB',
      'queued requests 2',
      'wait 1.5 s',
    ]);
  });
});
