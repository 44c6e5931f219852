import { describe, expect, it } from 'vitest';
import {
  afterFirstUse,
  type LoadMeasurement,
  type MeasureStep,
  measureStep,
} from '../../../electron/core/loop/measure.ts';

const GB = 1_000_000_000;
const START: LoadMeasurement = {
  modelId: 'router/m',
  deviceId: 'sim:0',
  freeBeforeBytes: 20 * GB,
  othersBeforeBytes: null,
  settledBytes: null,
  loadedAtMs: 1_000,
  lastFreeBytes: null,
  lastSampleAtMs: null,
  steadySamples: 0,
  steadyFromMs: null,
};

function run(
  start: LoadMeasurement,
  readings: readonly (readonly [number, number | null])[],
  othersBytes: number | null = null,
  othersAtMs: number | null = 1_600,
): MeasureStep {
  let step: MeasureStep = { type: 'go on', measurement: start };
  for (const [sampledAtMs, freeBytes] of readings) {
    if (step.type !== 'go on') return step;
    step = measureStep(
      step.measurement,
      { sampledAtMs, freeBytes, totalBytes: 34 * GB },
      othersBytes,
      othersAtMs,
    );
  }
  return step;
}

describe('a load measured by the difference it makes', () => {
  it('waits for the device to come to rest', () => {
    const moving = run(START, [
      [1_500, 12 * GB],
      [2_000, 10 * GB],
      [2_500, 10 * GB],
      [3_000, 10 * GB],
    ]);
    expect(moving.type).toBe('go on');
    const rested = run(START, [
      [1_500, 12 * GB],
      [2_000, 10 * GB],
      [2_500, 10 * GB],
      [3_000, 10 * GB],
      [3_500, 10 * GB],
    ]);
    expect(rested).toEqual({ type: 'settled', bytes: 10 * GB });
  });

  it('does not count readings from before the load was done, nor the same one twice', () => {
    const step = run(START, [
      [900, 10 * GB],
      [1_500, 10 * GB],
      [1_500, 10 * GB],
      [1_500, 10 * GB],
      [1_500, 10 * GB],
    ]);
    expect(step).toMatchObject({ type: 'go on', measurement: { steadySamples: 0 } });
  });

  it('believes no negative size, and no unknown reading (rule 5)', () => {
    const grown = run(START, [
      [1_500, 21 * GB],
      [2_000, 21 * GB],
      [2_500, 21 * GB],
      [3_000, 21 * GB],
      [3_500, 21 * GB],
    ]);
    expect(grown.type).toBe('go on');
    expect(run(START, [[1_500, null]])).toEqual({ type: 'go on', measurement: START });
  });

  it('does not begin while it still loads', () => {
    const loading = { ...START, loadedAtMs: null };
    expect(run(loading, [[1_500, 10 * GB]])).toEqual({ type: 'go on', measurement: loading });
  });

  it('leaves out what the desktop took or gave back meanwhile', () => {
    const steady = [1_500, 2_000, 2_500, 3_000].map((at) => [at, 9 * GB] as const);
    const before = { ...START, othersBeforeBytes: 2 * GB };
    expect(run(before, steady, 3 * GB)).toEqual({ type: 'settled', bytes: 10 * GB });
    expect(run(before, steady, 1.5 * GB)).toEqual({ type: 'settled', bytes: 11.5 * GB });
  });

  it('waits for what others hold since it has come to rest, where the driver told it before (rule 5)', () => {
    const steady = [1_500, 2_000, 2_500, 3_000].map((at) => [at, 9 * GB] as const);
    const before = { ...START, othersBeforeBytes: 2 * GB };
    expect(run(before, steady, null).type).toBe('go on');
    expect(run(before, steady, 2 * GB, 1_400).type).toBe('go on');
    expect(run(before, steady, 2 * GB, 1_500).type).toBe('settled');
    expect(run(START, steady, null, null).type).toBe('settled');
  });
});

describe('what a first prompt takes beyond a load', () => {
  const used = { ...afterFirstUse(START, 10 * GB), loadedAtMs: 60_000 };
  const steadyAt = (freeBytes: number) =>
    [60_500, 61_000, 61_500, 62_000].map((at) => [at, freeBytes] as const);

  it('is counted once it has come to rest', () => {
    expect(run(used, steadyAt(9.5 * GB))).toEqual({ type: 'settled', bytes: 10.5 * GB });
    expect(run(used, steadyAt(10 * GB))).toEqual({ type: 'settled', bytes: 10 * GB });
  });

  it('is never less than the load itself, and not gigabytes', () => {
    expect(run(used, steadyAt(10.6 * GB))).toEqual({ type: 'settled', bytes: 10 * GB });
    expect(run(used, steadyAt(6 * GB))).toEqual({ type: 'given up' });
  });

  it('is waited for as long as nobody uses it', () => {
    const waiting = afterFirstUse({ ...START, lastFreeBytes: 10 * GB, steadySamples: 3 }, 10 * GB);
    expect(run(waiting, steadyAt(9.5 * GB))).toEqual({ type: 'go on', measurement: waiting });
  });
});
