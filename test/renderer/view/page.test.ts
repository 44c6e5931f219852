import { describe, expect, it } from 'vitest';
import { pageOf } from '../../../renderer/view/page.ts';
import { share } from '../../../renderer/view/share.ts';
import type { LandlordState } from '../../../shared/state.ts';
import { loadState, stateNames, takenAt } from '../../support/states.ts';

describe('fixtures', () => {
  it.each(stateNames)('%s is a state, and moves in time as a whole', (name) => {
    const scenario = loadState(name);
    const movedTo = takenAt(scenario) + 86_400_000;
    const moved = loadState(name, movedTo);
    expect(takenAt(moved)).toBe(movedTo);
    expect(pageOf(moved.state, moved.events).devices).toEqual(
      pageOf(scenario.state, scenario.events).devices,
    );
  });

  it('show each of the situations the page must handle', () => {
    expect(stateNames).toEqual(
      expect.arrayContaining([
        'fine',
        'threatened',
        'critical',
        'after-eviction',
        'no-gpu',
        'stale',
        'two-devices',
        'many-models',
        'lane-held',
        'lane-trouble',
      ]),
    );
  });
});

describe('page: a snapshot that says nothing new renders nothing', () => {
  const { state, events } = loadState('two-devices');

  /** What a tick changes when nothing happens: the numbers of the reading, below what is shown. */
  function nextTick(before: LandlordState): LandlordState {
    const copy = structuredClone(before);
    return {
      ...copy,
      revision: copy.revision + 1,
      at: new Date(Date.parse(copy.at) + 500).toISOString(),
      devices: copy.devices.map((device) => ({
        ...device,
        sampledAt: new Date(Date.parse(copy.at) + 480).toISOString(),
        busyPercent: 37,
        usedBytes: (device.usedBytes ?? 0) + 300_000,
        freeBytes: (device.freeBytes ?? 0) - 300_000,
      })),
    };
  }

  it('the very same page comes out', () => {
    const first = pageOf(state, events);
    expect(share(first, pageOf(nextTick(state), structuredClone(events)))).toBe(first);
  });

  it('and when one model changes, only its row and what holds it are new', () => {
    const first = pageOf(state, events);
    const changed = structuredClone(state);
    const models = changed.models.map((model) =>
      model.id === 'router/writer-12b' ? { ...model, busy: false } : model,
    );
    const next = share(first, pageOf({ ...changed, models }, events));
    expect(next).not.toBe(first);
    expect(next.devices).toBe(first.devices);
    expect(next.events).toBe(first.events);
    const same = next.models.active.filter((row, index) => row === first.models.active[index]);
    expect(same.map((row) => row.name)).toEqual(['llama-70b-q2']);
  });
});

describe('share', () => {
  it('gives the next value, whatever the previous one was', () => {
    const values: readonly unknown[] = [
      null,
      0,
      'a',
      [],
      [1],
      [1, 2],
      {},
      { a: 1 },
      { a: 1, b: undefined },
      { b: 1 },
      { a: { b: [1, { c: 2 }] } },
      { a: { b: [1, { c: 3 }] } },
    ];
    for (const previous of values) {
      for (const next of values) {
        expect(share<unknown>(previous, structuredClone(next))).toStrictEqual(next);
      }
      expect(share<unknown>(previous, structuredClone(previous))).toBe(previous);
    }
  });
});
