import { describe, expect, it } from 'vitest';
import { chartOf, marksNear, readingAt } from '../../../renderer/view/chart.ts';
import type { History } from '../../../shared/questions.ts';

const NOW = Date.UTC(2026, 2, 4, 9);
const tones = (id: string): string => (id === 'router/a' ? 'm0' : 'm1');

function history(change: Partial<History> = {}): History {
  return {
    fromMs: NOW - 30_000,
    toMs: NOW,
    stepMs: 10_000,
    devices: [
      {
        deviceId: 'sim:0',
        atMs: [NOW - 20_000, NOW - 10_000, NOW],
        totalBytes: [24e9, null, 24e9],
        usedBytes: [10e9, null, 13e9],
        freeBytes: [14e9, null, 11e9],
        gttUsedBytes: [null, null, null],
        tenants: [
          { id: 'desktop@sim:0', bytes: [2e9, null, 2e9] },
          { id: 'router/a', bytes: [8e9, null, 8e9] },
          { id: 'foreign:blender@sim:0', bytes: [0, null, 1e9] },
        ],
      },
    ],
    events: [],
    floors: [
      {
        deviceId: 'sim:0',
        suggestedBytes: null,
        presentBytes: 3e9,
        recordedHours: 1,
        floorKey: 'floor',
        alsoFor: [],
      },
    ],
    ...change,
  };
}

describe('a history as bands', () => {
  it('stacks who held what, names each, and shows what nobody answers for', () => {
    const chart = chartOf(history(), 'sim:0', 'all', tones);
    expect(chart?.bands.map(({ name, tone, edge }) => [name, tone, edge])).toEqual([
      ['Desktop', 'desktop', [2e9, null, 2e9]],
      ['a', 'm0', [10e9, null, 10e9]],
      ['blender', 'foreign', [10e9, null, 11e9]],
      ['Not attributed', 'other', [10e9, null, 13e9]],
    ]);
    expect(chart?.bands.map((band) => band.peakBytes)).toEqual([2e9, 8e9, 1e9, 2e9]);
  });

  it('draws nothing over a gap, and the floor as a limit of what is in use', () => {
    const chart = chartOf(history(), 'sim:0', 'all', tones);
    expect(chart?.bands.every((band) => band.edge[1] === null)).toBe(true);
    expect(chart?.limitBytes).toBe(21e9);
    expect(chartOf(history(), 'sim:0', 'desktop', tones)?.limitBytes).toBeNull();
  });

  it('shows the desktop alone where that is asked for', () => {
    const chart = chartOf(history(), 'sim:0', 'desktop', tones);
    expect(chart?.bands.map((band) => band.name)).toEqual(['Desktop']);
  });

  it('marks what matters, of this device, and finds it by the reading', () => {
    const event = { reason: 'Told.', numbers: {} };
    const at = (ms: number): string => new Date(NOW - ms).toISOString();
    const chart = chartOf(
      history({
        events: [
          { id: 1, at: at(19_000), kind: 'evicted', model: 'router/a', deviceId: 'sim:0', ...event },
          { id: 2, at: at(15_000), kind: 'started', ...event },
          { id: 3, at: at(14_000), kind: 'floor_threatened', deviceId: 'sim:1', ...event },
        ],
      }),
      'sim:0',
      'all',
      tones,
    );
    if (chart === null) throw new Error('there is a chart');
    expect(chart.marks.map((mark) => mark.id)).toEqual([1]);
    expect(readingAt(chart, NOW - 18_000)).toBe(0);
    expect(marksNear(chart, 0, 10_000).map((mark) => mark.id)).toEqual([1]);
    expect(marksNear(chart, 2, 10_000)).toEqual([]);
  });

  it('is none where nothing is recorded', () => {
    expect(chartOf(history({ devices: [] }), 'sim:0', 'all', tones)).toBeNull();
  });
});
