import { describe, expect, it } from 'vitest';
import { observationOf } from '../../../electron/core/questions/observation.ts';
import type { EventKind, LandlordEvent } from '../../../shared/events.ts';

const at = (minutes: number): string => new Date(Date.UTC(2026, 2, 4, 9, minutes)).toISOString();
let id = 0;
const nextId = (): number => {
  id += 1;
  return id;
};
const event = (kind: EventKind, minutes: number, model?: string): LandlordEvent => ({
  id: nextId(),
  at: at(minutes),
  kind,
  reason: 'Told.',
  numbers: {},
  ...(model === undefined ? {} : { model }),
});

describe('what observing has seen', () => {
  it('counts a shortage only where a model could have left for it', () => {
    const events = [
      event('floor_threatened', 1),
      event('would_evict', 1, 'router/a'),
      event('floor_threatened', 30),
      event('would_evict', 50, 'router/b'),
    ];
    expect(observationOf(events, true, Date.parse(at(0)))).toEqual({
      sinceMs: Date.parse(at(0)),
      stalls: 1,
      models: ['router/a', 'router/b'],
    });
  });

  it('counts from the last change of the guards', () => {
    const events = [
      event('floor_threatened', 1),
      event('would_evict', 1, 'router/a'),
      event('guards_changed', 5),
    ];
    expect(observationOf(events, true, null)).toEqual({ sinceMs: Date.parse(at(5)), stalls: 0, models: [] });
  });

  it('says nothing where the guards act', () => {
    expect(observationOf([event('would_evict', 1, 'a/b')], false, 1)).toEqual({
      sinceMs: null,
      stalls: 0,
      models: [],
    });
  });
});
