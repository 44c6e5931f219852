import type { FreeReading } from '../actuators/operation.ts';

/**
 * Measuring a model by the difference its load makes to the device, for drivers that do not tell
 * per process. Only believed when nothing else moved meanwhile and the device has come to rest:
 * a desktop that moved is not blamed on the model.
 *
 *   loading (free before known) ─► resting (n steady readings) ─► settled bytes
 *        └── anything else loads or leaves on the device ─► given up
 */
export interface LoadMeasurement {
  readonly modelId: string;
  readonly deviceId: string;
  readonly freeBeforeBytes: number;
  /** Monotonic ms at which it was loaded; null: still loading. */
  readonly loadedAtMs: number | null;
  readonly lastFreeBytes: number | null;
  readonly lastSampleAtMs: number | null;
  readonly steadySamples: number;
}

const STEADY_BYTES = 32 * 1024 * 1024;
const STEADY_SAMPLES = 4;

export type MeasureStep =
  | { readonly type: 'go on'; readonly measurement: LoadMeasurement }
  | { readonly type: 'settled'; readonly bytes: number };

/** Takes one more reading into account. */
export function measureStep(measurement: LoadMeasurement, reading: FreeReading): MeasureStep {
  const { freeBytes, sampledAtMs } = reading;
  if (measurement.loadedAtMs === null || freeBytes === null || sampledAtMs === null)
    return { type: 'go on', measurement };
  if (sampledAtMs <= measurement.loadedAtMs || sampledAtMs === measurement.lastSampleAtMs)
    return { type: 'go on', measurement };
  const moved =
    measurement.lastFreeBytes === null
      ? Number.POSITIVE_INFINITY
      : Math.abs(freeBytes - measurement.lastFreeBytes);
  const steadySamples = moved <= STEADY_BYTES ? measurement.steadySamples + 1 : 0;
  if (steadySamples >= STEADY_SAMPLES - 1) {
    const bytes = measurement.freeBeforeBytes - freeBytes;
    if (bytes > 0) return { type: 'settled', bytes };
  }
  return {
    type: 'go on',
    measurement: { ...measurement, lastFreeBytes: freeBytes, lastSampleAtMs: sampledAtMs, steadySamples },
  };
}
