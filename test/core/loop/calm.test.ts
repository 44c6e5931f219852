import { describe, expect, it } from 'vitest';
import type { DeviceSample, SampleSet } from '../../../electron/core/devices/sample.ts';
import { Calm } from '../../../electron/core/loop/calm.ts';
import type { ModelView } from '../../../electron/core/loop/model-view.ts';
import { deviceSample } from '../../support/device-sample.ts';
import { modelView } from '../../support/model-view.ts';

const MIB = 1024 * 1024;
const GB = 1_000_000_000;
const STEPPED_AT_MS = 100_000;
const FLOOR_BYTES = 4 * GB;

interface Change {
  readonly set?: Partial<SampleSet>;
  readonly sample?: Partial<DeviceSample>;
  readonly before?: Partial<DeviceSample>;
  readonly afterMs?: number;
  readonly view?: ModelView;
  readonly health?: 'ok' | 'threatened' | 'critical' | 'stale';
}

const SUSPENDED = { power: 'suspended', freeBytes: null, usedBytes: null } as const;
const RESTING = modelView({ status: 'loaded', observed: { busy: false } });

/** Half a second after a step, over a card with 10 GB free and a floor of 4. */
function mayWait({
  set,
  sample,
  before,
  afterMs = 500,
  view = RESTING,
  health = 'ok',
}: Change = {}): boolean {
  const calm = new Calm();
  const nowMs = STEPPED_AT_MS + afterMs;
  calm.stepped([deviceSample(before)], STEPPED_AT_MS);
  const devices = [deviceSample({ takenAtMs: nowMs, ...sample })];
  return calm.mayWait(
    { sequence: 2, takenAtMs: nowMs, devices, processes: null, troubles: [], ...set },
    [view],
    [{ deviceId: 'sim:0', health, shortBytes: 0, fallingBytesPerS: null }],
    () => FLOOR_BYTES,
    nowMs,
  );
}

describe('a reading waits for the next one', () => {
  it.each<[string, Change]>([
    ['says what the last one said', {}],
    ['shows a card that works', { sample: { busyPercent: 90 } }],
    [
      'shows a desktop that breathes',
      { sample: { freeBytes: 10 * GB - 5 * MIB, usedBytes: 24 * GB + 5 * MIB } },
    ],
    [
      'comes while a server does not tell whether its model works',
      { view: modelView({ status: 'loaded', observed: { busy: null } }) },
    ],
    ['comes while a model sleeps', { view: modelView({ status: 'sleeping' }) }],
    [
      'is of a card that sleeps, and is not touched',
      { before: SUSPENDED, sample: SUSPENDED, health: 'stale' },
    ],
  ])('that %s', (_, change) => {
    expect(mayWait(change)).toBe(true);
  });
});

describe('a reading is acted on at once', () => {
  const now = STEPPED_AT_MS + 500;
  it.each<[string, Change]>([
    ['shows that somebody took memory', { sample: { freeBytes: 10 * GB - 20 * MIB } }],
    ['shows that somebody gave memory back', { sample: { freeBytes: 10 * GB + 20 * MIB } }],
    ['shows memory moved out to system RAM', { sample: { gttUsedBytes: 20 * MIB } }],
    [
      'is near the floor, though nothing moved',
      { before: { freeBytes: FLOOR_BYTES + 100 * MIB }, sample: { freeBytes: FLOOR_BYTES + 100 * MIB } },
    ],
    [
      'is bounded by what the system has left',
      { before: { hostAvailableBytes: FLOOR_BYTES }, sample: { hostAvailableBytes: FLOOR_BYTES } },
    ],
    ['can’t be read any more', { sample: { freeBytes: null, usedBytes: null } }],
    ['failed', { sample: { error: 'it is gone' } }],
    ['is of a card that was put to sleep', { sample: { power: 'suspended' } }],
    ['says that the driver moves memory out', { sample: { evictionUnderWay: true } }],
    ['is of another card', { sample: { id: 'sim:1' } }],
    ['is of one card less', { set: { devices: [] } }],
    ['names the processes', { set: { processes: [] } }],
    ['comes with trouble', { set: { troubles: [{ code: 'x', message: 'x', deviceId: null }] } }],
    ['comes a second after the last step', { afterMs: 1_000 }],
    ['comes while the floor is threatened', { health: 'threatened' }],
    ['comes while the device is critical', { health: 'critical' }],
    ['comes after one that was too old', { health: 'stale' }],
    ['comes while a model loads', { view: modelView({ status: 'loading' }) }],
    ['comes while a model leaves', { view: modelView({ status: 'stopping' }) }],
    ['comes while a model works', { view: modelView({ status: 'loaded', observed: { busy: true } }) }],
    [
      'comes soon after a load',
      { view: modelView({ status: 'loaded', observed: { busy: false, sinceMs: now - 5_000 } }) },
    ],
    [
      'comes soon after a request',
      { view: modelView({ status: 'loaded', observed: { busy: false, lastBusyAtMs: now - 5_000 } }) },
    ],
  ])('that %s', (_, change) => {
    expect(mayWait(change)).toBe(false);
  });
});
