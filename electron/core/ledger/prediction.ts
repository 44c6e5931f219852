import { byName } from '../../../shared/settings.ts';
import { isByteCount } from './bytes.ts';
import { weightFiles } from './weight-files.ts';

/** The one thing asked of the disk. */
export interface FileSizes {
  /** Bytes of a regular file, links followed; null: not there, not readable. */
  sizeOf(path: string): Promise<number | null>;
}

export interface Prediction {
  readonly bytes: number;
  readonly source: 'measured before' | 'your figure' | 'weights only';
}

export interface PredictionRequest {
  /** `backend/model`. */
  readonly id: string;
  readonly args: readonly string[] | null;
  readonly modelPath: string | null;
}

/** A measured footprint; plain data, so that it can be kept over a restart. */
export interface MeasuredFootprint {
  readonly id: string;
  /** `argsKey` of the flags it ran with. */
  readonly key: string;
  readonly bytes: number;
}

/** The newest figures are kept, this many in all. */
const KEEP = 500;

/**
 * Where a predicted footprint comes from: measured before with these flags, else the operator's figure,
 * else the size of its weight files alone (no KV cache, no compute buffers: too little, and said so),
 * else null. A model that is not running shows no flags: then its newest measurement counts.
 */
export async function predict(
  request: PredictionRequest,
  measured: readonly MeasuredFootprint[],
  footprints: Readonly<Record<string, number>>,
  files: FileSizes,
): Promise<Prediction | null> {
  const before = measuredBefore(request, measured);
  if (before !== null) return { bytes: before, source: 'measured before' };
  const figure = byName(footprints, request.id);
  if (figure !== undefined && isByteCount(figure)) return { bytes: figure, source: 'your figure' };
  const weights = await weightBytes(request, files);
  return weights === null ? null : { bytes: weights, source: 'weights only' };
}

/** `measured` with this one in, newest last. */
export function learn(
  measured: readonly MeasuredFootprint[],
  request: PredictionRequest,
  bytes: number,
): readonly MeasuredFootprint[] {
  if (!isByteCount(bytes) || bytes === 0) return measured;
  const key = argsKey(request.args);
  const others = measured.filter((one) => one.id !== request.id || one.key !== key);
  return [...others, { id: request.id, key, bytes }].slice(-KEEP);
}

function measuredBefore(request: PredictionRequest, measured: readonly MeasuredFootprint[]): number | null {
  const mine = measured.filter((one) => one.id === request.id);
  const found =
    request.args === null ? mine.at(-1) : mine.findLast((one) => one.key === argsKey(request.args));
  return found?.bytes ?? null;
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
    if (PASSING.has(arg)) index++;
    else if (index > 0 || arg.startsWith('-')) kept.push(arg);
  }
  return JSON.stringify(kept);
}

/** null where any of them can't be read: a part of the weights is no estimate. */
async function weightBytes(request: PredictionRequest, files: FileSizes): Promise<number | null> {
  const paths = weightFiles(request.args, request.modelPath);
  if (paths.length === 0) return null;
  const sizes = await Promise.all(paths.map((path) => files.sizeOf(path)));
  return sizes.reduce<number | null>(
    (sum, size) => (sum === null || size === null || !isByteCount(size) ? null : sum + size),
    0,
  );
}
