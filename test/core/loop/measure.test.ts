import { describe, expect, it } from 'vitest';
import { type LoadMeasurement, type MeasureStep, measureStep } from '../../../electron/core/loop/measure.ts';

const GB = 1_000_000_000;
const START: LoadMeasurement = {
  modelId: 'router/m',
  deviceId: 'sim:0',
  freeBeforeBytes: 20 * GB,
  loadedAtMs: 1_000,
  lastFreeBytes: null,
  lastSampleAtMs: null,
  steadySamples: 0,
};

function run(start: LoadMeasurement, readings: readonly (readonly [number, number | null])[]): MeasureStep {
  let step: MeasureStep = { type: 'go on', measurement: start };
  for (const [sampledAtMs, freeBytes] of readings) {
    if (step.type === 'settled') return step;
    step = measureStep(step.measurement, { sampledAtMs, freeBytes, totalBytes: 34 * GB });
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
});
