import { describe, expect, it } from 'vitest';
import type { DeviceState, LandlordState } from '../../shared/state.ts';
import {
  activityLines,
  ageText,
  deviceLine,
  heldBytes,
  plainBytes,
  shownDevices,
  steppedBytes,
} from '../../shared/tray-lines.ts';
import { sampleModel, sampleState } from '../support/fake-runtime.ts';

const GB = 1_000_000_000;
const NOW = Date.parse('2026-03-04T09:00:41.000Z');

function device(change: Partial<DeviceState>): DeviceState {
  const [first] = sampleState().devices;
  if (first === undefined) throw new Error('the sample has a device');
  return { ...first, freeBytes: 6.1 * GB, floorBytes: 4 * GB, ...change };
}

describe('tray lines: figures', () => {
  it('come in steps of half a gigabyte, never more than there is', () => {
    expect([6.1, 6.49, 6.5, 0.5, 0.49, 0].map((amount) => steppedBytes(amount * GB))).toEqual([
      '6 GB',
      '6 GB',
      '6.5 GB',
      '500 MB',
      'under 0.5 GB',
      'under 0.5 GB',
    ]);
    expect(steppedBytes(null)).toBe('unknown');
    expect(plainBytes(6.1 * GB)).toBe('6.1 GB');
  });

  it('of what a model holds go to the nearest step, and of a small one to 100 MB', () => {
    expect([16.9, 16.8, 7.4, 1.1, 0.96, 0.68, 0.01].map((amount) => heldBytes(amount * GB))).toEqual([
      '17 GB',
      '17 GB',
      '7.5 GB',
      '1 GB',
      '1 GB',
      '700 MB',
      '100 MB',
    ]);
  });

  it('give an age in steps in the menu, to the second in the tooltip', () => {
    expect(ageText(41_900, 'exact')).toBe('41 s');
    expect(ageText(41_900, 'steps')).toBe('40 s');
    expect(ageText(60_000, 'steps')).toBe('1 min');
    expect(ageText(7_300_000, 'exact')).toBe('2 h');
    expect(ageText(-5, 'steps')).toBe('0 s');
  });
});

describe('tray lines: a device', () => {
  it('says what is free and where the floor is', () => {
    expect(deviceLine(device({}), false, 'exact')).toBe('6.1 GB free, floor 4 GB');
    expect(deviceLine(device({}), false, 'steps')).toBe('6 GB free, floor 4 GB');
    expect(deviceLine(device({}), true, 'steps')).toBe('Radeon Test 24: 6 GB free, floor 4 GB');
  });

  it('says what is wrong in words', () => {
    expect(deviceLine(device({ health: 'threatened', freeBytes: 3.4 * GB }), false, 'exact')).toBe(
      '3.4 GB free, under the floor of 4 GB',
    );
    expect(deviceLine(device({ health: 'threatened' }), false, 'exact')).toBe(
      '6.1 GB free and falling, floor 4 GB',
    );
    expect(deviceLine(device({ health: 'critical', freeBytes: 1.2 * GB }), false, 'exact')).toBe(
      'short of memory: 1.2 GB free, floor 4 GB',
    );
    expect(deviceLine(device({ health: 'critical', evictionUnderWay: true }), false, 'exact')).toContain(
      'the driver is moving memory out',
    );
  });

  it('gives no figure that is old or unknown', () => {
    for (const change of [{ health: 'stale' }, { freeBytes: null }] as const) {
      expect(deviceLine(device(change), false, 'exact')).toBe(
        'Radeon Test 24: no reading to trust, so the guards wait',
      );
    }
  });

  it('leaves system memory out where there is a card', () => {
    const system = device({ id: 'system', kind: 'system' });
    expect(shownDevices({ devices: [system, device({})] }).map((one) => one.kind)).toEqual(['amdgpu']);
    expect(shownDevices({ devices: [system] })).toHaveLength(1);
  });
});

function busyState(change: Partial<LandlordState['lanes'][number]['holders'][number]>): LandlordState {
  return {
    ...sampleState(),
    models: [sampleModel({ id: 'router/27B', status: 'loaded', busy: true })],
    lanes: [
      {
        backend: 'router',
        configured: true,
        path: '/l',
        width: 1,
        held: true,
        holders: [
          {
            pid: 7,
            command: null,
            session: 'writer',
            model: null,
            class: null,
            turn: null,
            acquiredAt: '2026-03-04T09:00:00.000Z',
            ...change,
          },
        ],
        waiting: 0,
      },
    ],
  };
}

describe('tray lines: what is going on', () => {
  it('names the session of a busy model and how long it has been at it', () => {
    expect(activityLines(busyState({}), NOW, 'exact')).toEqual(['27B: busy, writer, 41 s']);
    expect(activityLines(busyState({ model: '27B' }), NOW, 'steps')).toEqual(['27B: busy, writer, 40 s']);
  });

  it('guesses no session: another model’s turn is not this one’s', () => {
    expect(activityLines(busyState({ model: 'other' }), NOW, 'exact')).toEqual(['27B: busy']);
  });

  it('says nothing of idle models, and of unknown ones not that they are busy', () => {
    const models = [
      sampleModel({ id: 'r/idle', status: 'loaded', busy: false }),
      sampleModel({ id: 'r/unknown', status: 'loaded', busy: null }),
      sampleModel({ id: 'r/new', status: 'loading', loadProgress: 0.47 }),
      sampleModel({ id: 'r/old', status: 'stopping' }),
    ];
    expect(activityLines({ models, lanes: [], agents: [] }, NOW, 'exact')).toEqual([
      'new: loading, 47 %',
      'old: leaving',
    ]);
    expect(activityLines({ models, lanes: [], agents: [] }, NOW, 'steps')[0]).toBe('new: loading, 40 %');
  });
});
