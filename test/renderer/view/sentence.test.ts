import { describe, expect, it } from 'vitest';
import { roomOf } from '../../../renderer/view/room.ts';
import { sentenceOf } from '../../../renderer/view/sentence.ts';
import type { DeviceState, LandlordState, ModelState } from '../../../shared/state.ts';
import { loadState } from '../../support/states.ts';

const fine = loadState('fine').state;

function device(change: Partial<DeviceState> = {}): DeviceState {
  const first = fine.devices[0];
  if (first === undefined) throw new Error('the fixture has a device');
  return { ...first, ...change };
}

function model(change: Partial<ModelState> = {}): ModelState {
  const first = fine.models[0];
  if (first === undefined) throw new Error('the fixture has a model');
  return { ...first, status: 'loaded', busy: false, pinned: false, guarded: 'on', ...change };
}

function textOf(change: Partial<DeviceState>, state: Partial<LandlordState> = {}): string {
  return sentenceOf(device(change), { ...fine, ...state }).text;
}

describe('sentence: what fits', () => {
  it.each<[string, Partial<DeviceState>, string]>([
    ['floor binds', { freeBytes: 16e9, bookedBytes: 0 }, 'Room for a 12 GB model. The desktop keeps 4 GB.'],
    [
      'loads in flight count',
      { freeBytes: 16e9, bookedBytes: 0, outstandingBytes: 7.9e9 },
      'Room for a 4.1 GB model. The desktop keeps 4 GB.',
    ],
    [
      'the cap binds',
      { freeBytes: 30e9, bookedBytes: 24e9, capBytes: 30e9 },
      'Room for a 6 GB model. The desktop keeps 4 GB.',
    ],
    [
      'the cap is used up',
      { freeBytes: 30e9, bookedBytes: 30e9, capBytes: 30e9 },
      'No room for another model: models have booked the 30 GB they may have.',
    ],
    [
      'nothing is left over the floor',
      { freeBytes: 4.05e9, bookedBytes: 0 },
      'No room for another model. The desktop keeps 4 GB.',
    ],
    [
      'a load in flight will go under the floor',
      { freeBytes: 14.6e9, outstandingBytes: 12.5e9 },
      'No room for another model. Once all is loaded, 2.1 GB is free for the desktop.',
    ],
    [
      'no monitor hangs on it',
      { freeBytes: 16e9, drivesDisplay: false },
      'Room for a 12 GB model. 4 GB stays free.',
    ],
    [
      'there is no GPU',
      { kind: 'system', freeBytes: 16e9, bookedBytes: 0, drivesDisplay: null },
      'No GPU here, so models use system memory. Room for a 12 GB model. 4 GB stays free.',
    ],
    [
      'memory is shared with the system',
      { kind: 'unified', unified: true, freeBytes: 16e9, bookedBytes: 0 },
      'Room for a 12 GB model in the memory shared with the system. The desktop keeps 4 GB.',
    ],
    [
      'the floor is unknown',
      { freeBytes: 16e9, floorBytes: null },
      'How much room there is can not be told.',
    ],
  ])('%s', (_when, change, text) => {
    expect(textOf(change)).toBe(text);
    expect(sentenceOf(device(change), fine).tone).toBe('calm');
  });

  it('takes an unknown cap for no cap, and unknown or old figures for no answer', () => {
    expect(roomOf(device({ freeBytes: 16e9, capBytes: null }))).toEqual({ bytes: 12e9, bound: 'floor' });
    expect(roomOf(device({ freeBytes: null }))).toBeNull();
    expect(roomOf(device({ freeBytes: 16e9, health: 'stale' }))).toBeNull();
    expect(roomOf(device({ freeBytes: 1e9 }))).toEqual({ bytes: 0, bound: 'floor' });
  });
});

describe('sentence: when memory is short', () => {
  const threatened = { health: 'threatened', freeBytes: 3.2e9 } as const;

  it('says by how much, and whether the guards will help', () => {
    const sentence = sentenceOf(device(threatened), { ...fine, models: [model()] });
    expect(sentence).toEqual({
      tone: 'warning',
      text: 'Only 3.2 GB free: 800 MB less than the desktop should have.',
      detail: 'Idle models leave if this lasts.',
    });
  });

  it.each<[string, Partial<ModelState>, LandlordState['policy']['guards'], RegExp]>([
    ['the guards are paused', {}, 'paused', /paused/],
    ['the guards only observe', {}, 'observe', /only observe/],
    ['this backend is only observed', { guarded: 'observe' }, 'on', /only observe/],
    ['all are busy', { busy: true }, 'on', /No model here is idle/],
    ['busy is unknown', { busy: null }, 'on', /No model here is idle/],
    ['all are pinned', { pinned: true }, 'on', /No model here is idle/],
    ['they are on another device', { deviceId: 'pci:0000:99:00.0' }, 'on', /No model here is idle/],
  ])('does not promise help when %s', (_when, change, guards, words) => {
    const state = { models: [model(change)], policy: { ...fine.policy, guards } };
    expect(sentenceOf(device(threatened), state).detail).toMatch(words);
  });

  it('tells a fall towards the floor from being under it', () => {
    expect(textOf({ health: 'threatened', freeBytes: 5e9 })).toBe(
      "5 GB free and falling fast towards the desktop's 4 GB.",
    );
  });

  it('puts the driver moving memory first', () => {
    const critical = { health: 'critical', freeBytes: 0.3e9 } as const;
    expect(textOf({ ...critical, evictionUnderWay: true })).toMatch(/^The driver is moving .* 300 MB free/);
    expect(textOf({ ...critical, evictionUnderWay: null })).toMatch(/^Very little memory: 300 MB free/);
    expect(sentenceOf(device(critical), fine).tone).toBe('critical');
  });
});

describe('sentence: when nothing is known', () => {
  it('says that old figures are old, whatever they are', () => {
    const sentence = sentenceOf(
      device({ health: 'stale', freeBytes: 20e9, notes: ['The driver hangs.'] }),
      fine,
    );
    expect(sentence.tone).toBe('stale');
    expect(sentence.text).not.toMatch(/\d [kMGT]?B/);
    expect(sentence.detail).toBe('The driver hangs.');
  });

  it('says so when a device can not be read, and never shows it as 0', () => {
    const sentence = sentenceOf(
      device({ freeBytes: null, usedBytes: null, notes: ['It sleeps to save power.'] }),
      fine,
    );
    expect(sentence.text).toMatch(/can not be read/);
    expect(sentence.detail).toBe('It sleeps to save power.');
    expect(`${sentence.text}${sentence.detail}`).not.toMatch(/\b0/);
  });
});
