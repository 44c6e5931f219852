import { describe, expect, it } from 'vitest';
import type { StoredSample } from '../../../electron/core/events/event-store.ts';
import { historyColumns, REST, stepFor } from '../../../electron/core/questions/history.ts';

const NOW = Date.UTC(2026, 2, 4, 9);

function row(secondsAgo: number, tenants: StoredSample['tenants'], usedBytes = 1e9): StoredSample {
  return {
    atMs: NOW - secondsAgo * 1000,
    deviceId: 'sim:0',
    totalBytes: 24e9,
    usedBytes,
    freeBytes: 24e9 - usedBytes,
    gttUsedBytes: null,
    tenants,
  };
}

describe('history in columns', () => {
  it('stands for whole rows, and for no more points than asked for', () => {
    expect(stepFor(NOW - 600_000, NOW, 300)).toBe(10_000);
    expect(stepFor(NOW - 7 * 86_400_000, NOW, 600)).toBe(1_010_000);
    expect(stepFor(NOW, NOW, 300)).toBe(10_000);
  });

  it('puts a gap where nothing was recorded, so that no line is drawn over it', () => {
    const [device] = historyColumns(
      [row(300, { 'desktop@sim:0': 1e9 }), row(290, { 'desktop@sim:0': 1e9 }), row(20, {})],
      10_000,
      NOW,
    );
    expect(device?.atMs.map((at) => (NOW - at) / 1000)).toEqual([300, 290, 280, 20]);
    expect(device?.usedBytes).toEqual([1e9, 1e9, null, 1e9]);
    expect(device?.tenants).toEqual([{ id: 'desktop@sim:0', bytes: [1e9, 1e9, null, 0] }]);
  });

  it('tells who held nothing from whose figure is unknown', () => {
    const [device] = historyColumns(
      [row(20, { 'router/a': 2e9 }), row(10, { 'router/a': null }), row(0, {})],
      10_000,
      NOW,
    );
    expect(device?.tenants).toEqual([{ id: 'router/a', bytes: [2e9, null, 0] }]);
  });

  it('names the desktop and the largest, and sums the rest', () => {
    const many = Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [`router/m${index}`, index * 1e8]),
    );
    const [device] = historyColumns([row(0, { 'desktop@sim:0': 5e7, ...many })], 10_000, NOW);
    expect(device?.tenants.map((one) => one.id)).toEqual([
      'desktop@sim:0',
      ...[11, 10, 9, 8, 7, 6, 5, 4].map((index) => `router/m${index}`),
      REST,
    ]);
    expect(device?.tenants.at(-1)?.bytes).toEqual([6e8]);
  });

  it('lets the fullest of two rows in one step stand, since a floor is sized on peaks', () => {
    const [device] = historyColumns([row(9, {}, 3e9), row(5, {}, 2e9)], 10_000, NOW);
    expect(device?.usedBytes).toEqual([3e9]);
  });
});
