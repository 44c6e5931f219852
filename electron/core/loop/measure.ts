import type { FreeReading } from '../actuators/operation.ts';

/**
 * Measuring a model by the difference its load makes to the device, for drivers that do not tell
 * per process. Only believed when nothing else moved meanwhile and the device has come to rest:
 * a desktop that moved is not blamed on the model.
 *
 *   loading (free before known) ─► resting (n steady readings) ─► settled bytes
 *        │                                                             └─► first used ─► resting ─► grown bytes
 *        └── anything else loads or leaves on the device ─► given up
 *
 * A first prompt may take some 500 MB more that no load shows (llama.cpp issue 23894).
 */
export interface LoadMeasurement {
  readonly modelId: string;
  readonly deviceId: string;
  readonly freeBeforeBytes: number;
  /** What the desktop and other programs held then, as far as the driver tells; null: it does not. */
  readonly othersBeforeBytes: number | null;
  /** Settled once before: what it was then. null: its load is being measured. */
  readonly settledBytes: number | null;
  /** Monotonic ms at which it was loaded; null: still loading. */
  readonly loadedAtMs: number | null;
  readonly lastFreeBytes: number | null;
  readonly lastSampleAtMs: number | null;
  readonly steadySamples: number;
  /** Monotonic ms of the first of them; null: there is none. */
  readonly steadyFromMs: number | null;
}

const STEADY_BYTES = 32 * 1024 * 1024;
const STEADY_SAMPLES = 4;

export type MeasureStep =
  | { readonly type: 'go on'; readonly measurement: LoadMeasurement }
  | { readonly type: 'settled'; readonly bytes: number }
  /** Something else moved. */
  | { readonly type: 'given up' };

/** The measurement that follows: the same load, from its first use on. */
export function afterFirstUse(measurement: LoadMeasurement, settledBytes: number): LoadMeasurement {
  return {
    ...measurement,
    settledBytes,
    loadedAtMs: null,
    lastFreeBytes: null,
    lastSampleAtMs: null,
    steadySamples: 0,
    steadyFromMs: null,
  };
}

/** A desktop that moved meanwhile is not blamed on the model, nor counted in its favour. */
function moreByOthers(measurement: LoadMeasurement, othersBytes: number | null): number {
  const { othersBeforeBytes } = measurement;
  return othersBeforeBytes === null || othersBytes === null ? 0 : othersBytes - othersBeforeBytes;
}

/** The list of processes is read more seldom than what is free: one from before the rest would blame the model for what moved since. */
function othersAreToCome(
  measurement: LoadMeasurement,
  othersBytes: number | null,
  othersAtMs: number | null,
  steadyFromMs: number,
): boolean {
  if (measurement.othersBeforeBytes === null) return false;
  return othersBytes === null || othersAtMs === null || othersAtMs < steadyFromMs;
}

/** More than this after a first use is no buffer of the model's own, but something else that moved. */
const MOST_GROWN_BYTES = 2 * 1024 * 1024 * 1024;

/** Takes one more reading into account; `othersBytes`: what others hold by the list of `othersAtMs`, null where the driver does not tell. */
export function measureStep(
  measurement: LoadMeasurement,
  reading: FreeReading,
  othersBytes: number | null,
  othersAtMs: number | null,
): MeasureStep {
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
  const steadyFromMs = (steadySamples > 0 ? measurement.steadyFromMs : null) ?? sampledAtMs;
  const isWaiting = othersAreToCome(measurement, othersBytes, othersAtMs, steadyFromMs);
  if (steadySamples >= STEADY_SAMPLES - 1 && !isWaiting) {
    const bytes = measurement.freeBeforeBytes - freeBytes - moreByOthers(measurement, othersBytes);
    const { settledBytes } = measurement;
    if (settledBytes !== null)
      return bytes - settledBytes <= MOST_GROWN_BYTES
        ? { type: 'settled', bytes: Math.max(settledBytes, bytes) }
        : { type: 'given up' };
    if (bytes > 0) return { type: 'settled', bytes };
  }
  return {
    type: 'go on',
    measurement: {
      ...measurement,
      lastFreeBytes: freeBytes,
      lastSampleAtMs: sampledAtMs,
      steadySamples,
      steadyFromMs,
    },
  };
}
