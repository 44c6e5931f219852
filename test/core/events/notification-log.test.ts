import { describe, expect, it } from 'vitest';
import { type Notification, notify } from '../../../electron/core/events/notification-log.ts';
import type { EventKind, LandlordEvent } from '../../../shared/events.ts';

const event = (id: number, kind: EventKind, atMs: number, model?: string): LandlordEvent => ({
  id,
  at: new Date(atMs).toISOString(),
  kind,
  reason: `reason ${id}`,
  ...(model === undefined ? {} : { model }),
  numbers: {},
});
const fold = (events: readonly LandlordEvent[]): readonly Notification[] =>
  events.reduce<readonly Notification[]>(notify, []);

describe('notifications', () => {
  it('are made of what a person should know, not of mere information', () => {
    expect(fold([event(1, 'loaded', 0, 'r/a'), event(2, 'config_loaded', 0)])).toEqual([]);
    expect(fold([event(3, 'evicted', 0, 'r/a')])).toEqual([
      {
        id: 3,
        kind: 'evicted',
        severity: 'notice',
        model: 'r/a',
        text: 'reason 3',
        count: 1,
        firstAt: '1970-01-01T00:00:00.000Z',
        lastAt: '1970-01-01T00:00:00.000Z',
        lastEventId: 3,
      },
    ]);
  });

  it('run together within ten seconds of the last of the same kind and model, and only then', () => {
    const log = fold([
      event(1, 'evicted', 0, 'r/a'),
      event(2, 'evicted', 1000, 'r/b'),
      event(3, 'killed', 2000, 'r/a'),
      event(4, 'evicted', 9000, 'r/a'),
      event(5, 'evicted', 19_000, 'r/a'),
      event(6, 'evicted', 29_001, 'r/a'),
      event(7, 'evicted', 28_000, 'r/a'),
    ]);
    expect(log.map((entry) => [entry.id, entry.kind, entry.model, entry.count, entry.lastEventId])).toEqual([
      [2, 'evicted', 'r/b', 1, 2],
      [3, 'killed', 'r/a', 1, 3],
      [1, 'evicted', 'r/a', 3, 5],
      [6, 'evicted', 'r/a', 1, 6],
      [7, 'evicted', 'r/a', 1, 7],
    ]);
  });

  it('stay bounded, the newest of them', () => {
    const log = fold(Array.from({ length: 150 }, (_, index) => event(index + 1, 'evicted', 0, `r/${index}`)));
    expect(log).toHaveLength(100);
    expect(log.at(-1)?.id).toBe(150);
  });
});
