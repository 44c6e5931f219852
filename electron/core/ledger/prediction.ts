import { byName } from '../../../shared/settings.ts';
import { isByteCount } from './bytes.ts';
import type { DeviceKind } from './footprint/device-kind.ts';
import { fittedLimitBytes } from './footprint/flags.ts';
import type { FootprintSource } from './footprint/footprint-source.ts';
import { type LoadRequest, requestFlags } from './footprint/load-request.ts';
import { weightFiles } from './weight-files.ts';

/** The one thing asked of the disk. */
export interface FileSizes {
  /** Bytes of a regular file, links followed; null: not there, not readable. */
  sizeOf(path: string): Promise<number | null>;
}

export interface Prediction {
  readonly bytes: number;
  readonly source: 'measured before' | 'your figure' | 'estimate' | 'weights only';
}

export interface PredictionRequest {
  /** `backend/model`. */
  readonly id: string;
  readonly args: readonly string[] | null;
  /** Flags for files that `args` names otherwise: by their repository. Left out: there are none. */
  readonly fileArgs?: readonly string[];
  readonly modelPath: string | null;
  /** null: not known; then what was measured on any device counts. */
  readonly deviceId?: string | null;
  /** Where it will run; null: not known, and counted as a CUDA card. */
  readonly deviceKind?: DeviceKind | null;
  /** Of that device; null: not known. */
  readonly deviceTotalBytes?: number | null;
  /** Of llama.cpp; null: not known. */
  readonly build?: number | null;
}

/** A measured footprint; plain data, so that it can be kept over a restart. */
export interface MeasuredFootprint {
  readonly id: string;
  /** `argsKey` of the flags it ran with. */
  readonly key: string;
  /** Left out or null: not known. */
  readonly deviceId?: string | null;
  readonly bytes: number;
}

/** The newest figures are kept, this many in all. */
const KEEP = 500;

/**
 * Where a predicted footprint comes from: measured before with these flags, else the operator's figure,
 * else an estimate from its file's header and its flags, else the size of its weight files alone (no KV
 * cache, no compute buffers: too little, and said so), else null. A model that is not running shows no
 * flags: then its newest measurement counts.
 */
export async function predict(
  request: PredictionRequest,
  measured: readonly MeasuredFootprint[],
  footprints: Readonly<Record<string, number>>,
  files: FileSizes,
  footprintSource: FootprintSource | null = null,
): Promise<Prediction | null> {
  const before = measuredBefore(request, measured);
  if (before !== null) return { bytes: before, source: 'measured before' };
  const figure = byName(footprints, request.id);
  if (figure !== undefined && isByteCount(figure)) return { bytes: figure, source: 'your figure' };
  const estimated = footprintSource === null ? null : await estimateBytes(request, footprintSource);
  if (estimated !== null) return { bytes: estimated, source: 'estimate' };
  const weights = await weightBytes(request, files);
  return weights === null ? null : { bytes: weights, source: 'weights only' };
}

/** What the estimate is asked of. */
export function loadOf(request: PredictionRequest): LoadRequest {
  return {
    modelPath: request.modelPath,
    args: [...(request.args ?? []), ...(request.fileArgs ?? [])],
    kind: request.deviceKind ?? 'cuda',
    build: request.build ?? null,
  };
}

/** A load that may lessen itself takes no more than leaves llama-server's own margin. null: not to be read. */
async function estimateBytes(request: PredictionRequest, source: FootprintSource): Promise<number | null> {
  const load = loadOf(request);
  const flags = requestFlags(load);
  if (flags.modelPath === null || flags.modelPath === '') return null;
  const footprint = await source.footprintOf(load);
  if (!footprint.ok || !isByteCount(footprint.value.totalBytes)) return null;
  const limit = fittedLimitBytes(flags, request.deviceTotalBytes ?? null);
  return Math.min(footprint.value.totalBytes, limit ?? Number.MAX_SAFE_INTEGER);
}

/** `measured` with this one in, newest last. */
export function learn(
  measured: readonly MeasuredFootprint[],
  request: PredictionRequest,
  bytes: number,
): readonly MeasuredFootprint[] {
  if (!isByteCount(bytes) || bytes === 0) return measured;
  const key = argsKey(request.args);
  const deviceId = request.deviceId ?? null;
  const others = measured.filter(
    (one) => one.id !== request.id || one.key !== key || !sameDevice(one, request),
  );
  return [...others, { id: request.id, key, deviceId, bytes }].slice(-KEEP);
}

/** Figures of before, with those that are newer in their place. */
export function withEarlier(
  before: readonly MeasuredFootprint[],
  newer: readonly MeasuredFootprint[],
): readonly MeasuredFootprint[] {
  const isReplaced = (one: MeasuredFootprint): boolean =>
    newer.some(
      (other) =>
        other.id === one.id && other.key === one.key && (other.deviceId ?? null) === (one.deviceId ?? null),
    );
  return [...before.filter((one) => !isReplaced(one)), ...newer].slice(-KEEP);
}

function measuredBefore(request: PredictionRequest, measured: readonly MeasuredFootprint[]): number | null {
  const mine = measured.filter((one) => one.id === request.id && sameDevice(one, request));
  const found =
    request.args === null ? mine.at(-1) : mine.findLast((one) => one.key === argsKey(request.args));
  return found?.bytes ?? null;
}

/** Another card's driver takes another share, so its figure is no measurement of this one. */
function sameDevice(one: MeasuredFootprint, request: PredictionRequest): boolean {
  const [there, here] = [one.deviceId ?? null, request.deviceId ?? null];
  return there === null || here === null || there === here;
}

/** Flags whose values differ from start to start, or say nothing about memory. */
const PASSING = new Set([
  '--port',
  '--host',
  '--alias',
  '-a',
  '--api-key',
  '--api-key-file',
  '--log-file',
  '--slot-save-path',
]);

/** The flags that make a footprint, as one string; the program's own path is no flag. */
export function argsKey(args: readonly string[] | null): string {
  if (args === null) return '';
  const kept: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? '';
    if (PASSING.has(arg.split('=', 1)[0] ?? '')) index += arg.includes('=') ? 0 : 1;
    else if (index > 0 || arg.startsWith('-')) kept.push(arg);
  }
  return JSON.stringify(kept);
}

/** null where any of them can't be read: a part of the weights is no estimate. */
async function weightBytes(request: PredictionRequest, files: FileSizes): Promise<number | null> {
  const paths = weightFiles(loadOf(request).args, request.modelPath);
  if (paths.length === 0) return null;
  const sizes = await Promise.all(paths.map((path) => files.sizeOf(path)));
  return sizes.reduce<number | null>(
    (sum, size) => (sum === null || size === null || !isByteCount(size) ? null : sum + size),
    0,
  );
}
