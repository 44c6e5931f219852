import { LEAST_FLOOR_BYTES } from '../../../shared/settings.ts';

export interface DesktopPoint {
  /** Epoch ms. */
  readonly atMs: number;
  /** What the desktop held; null: unknown then. */
  readonly bytes: number | null;
}

/** Growth is looked at over spans of this length: a browser's tabs and a video fill one. */
const SPAN_MS = 600_000;
/** A span with fewer known readings tells nothing. */
const SPAN_POINTS = 6;
/** Some hours of use, so that one quiet morning does not set the floor. */
const LEAST_SPANS = 18;
const PERCENTILE = 0.95;

/**
 * The floor that the desktop's own use suggests: the 95th percentile of what it grew by within ten
 * minutes, from the lowest to what came after it. At least 512 MiB; null while there are less than
 * three hours of readings. `points` oldest first.
 */
export function suggestedFloor(points: readonly DesktopPoint[]): number | null {
  const spans = new Map<number, number[]>();
  for (const { atMs, bytes } of points) {
    if (bytes === null) continue;
    const span = Math.floor(atMs / SPAN_MS);
    const known = spans.get(span);
    if (known === undefined) spans.set(span, [bytes]);
    else known.push(bytes);
  }
  const growths = [...spans.values()]
    .filter((known) => known.length >= SPAN_POINTS)
    .map(growthOf)
    .sort((one, other) => one - other);
  if (growths.length < LEAST_SPANS) return null;
  const at = Math.min(growths.length - 1, Math.ceil(PERCENTILE * growths.length) - 1);
  return Math.max(LEAST_FLOOR_BYTES, growths[at] ?? 0);
}

/** The most it rose above what it had been before within the span. */
function growthOf(bytes: readonly number[]): number {
  let lowest = Number.POSITIVE_INFINITY;
  let most = 0;
  for (const one of bytes) {
    lowest = Math.min(lowest, one);
    most = Math.max(most, one - lowest);
  }
  return most;
}
