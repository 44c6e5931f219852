import { describe, expect, it } from 'vitest';
import { groupOf, matching, reportText } from '../../../renderer/view/event-log.ts';
import type { LandlordEvent } from '../../../shared/events.ts';
import { sampleState } from '../../support/fake-runtime.ts';

const event = (id: number, change: Partial<LandlordEvent>): LandlordEvent => ({
  id,
  at: `2026-03-04T09:00:0${id}.000Z`,
  kind: 'loaded',
  reason: 'Told.',
  numbers: {},
  ...change,
});

const EVENTS = [
  event(1, { kind: 'loaded', model: 'router/qwen-27b', reason: 'qwen-27b is loaded.' }),
  event(2, {
    kind: 'evicted',
    model: 'router/qwen-27b',
    reason: 'Unloading it.',
    numbers: { freedBytes: 18e9 },
  }),
  event(3, {
    kind: 'deflected',
    session: 'writer',
    reason: 'The lane was busy.',
    numbers: { waitedMs: null },
  }),
];
const ids = (found: readonly LandlordEvent[]): number[] => found.map((one) => one.id);

describe('the log: filter and search', () => {
  it('shows the newest first, and all where no group is chosen', () => {
    expect(ids(matching(EVENTS, new Set(), ''))).toEqual([3, 2, 1]);
    expect(ids(matching(EVENTS, new Set(['guards', 'turns']), ''))).toEqual([3, 2]);
  });

  it('finds every word somewhere: in the reason, the kind as written, the model, the session', () => {
    expect(ids(matching(EVENTS, new Set(), 'QWEN unloaded'))).toEqual([2]);
    expect(ids(matching(EVENTS, new Set(), 'writer lane'))).toEqual([3]);
    expect(ids(matching(EVENTS, new Set(), 'nothing of it'))).toEqual([]);
  });

  it('has a group for what the guards did, for memory, models and turns; the rest is the system’s', () => {
    expect(groupOf('killed')).toBe('guards');
    expect(groupOf('driver_eviction')).toBe('memory');
    expect(groupOf('model_crashed')).toBe('models');
    expect(groupOf('lane_stuck')).toBe('turns');
    expect(groupOf('config_rejected')).toBe('system');
  });
});

describe('the log as text for a bug report', () => {
  it('begins with what runs on what, and gives each event a line with its figures', () => {
    const lines = reportText(EVENTS, sampleState()).split('\n');
    expect(lines[0]).toMatch(/^VRAM Landlord /);
    expect(lines[1]).toContain('floor');
    expect(lines.slice(-3)).toEqual([
      '2026-03-04T09:00:01.000Z loaded (router/qwen-27b): qwen-27b is loaded.',
      '2026-03-04T09:00:02.000Z evicted (router/qwen-27b): Unloading it. [freedBytes=18000000000]',
      '2026-03-04T09:00:03.000Z deflected (session writer): The lane was busy. [waitedMs=unknown]',
    ]);
  });
});
