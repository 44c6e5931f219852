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

/** What the desktop usually holds. */
export interface DesktopLevels {
  /** One tenth of the time it holds no more than this: nobody works at it. */
  readonly idleBytes: number;
  /** All but one twentieth of the time it holds no more than this: browser, calls and players. */
  readonly busyBytes: number;
}

/** An hour of readings by six a minute, or six hours of the coarser ones. */
const LEAST_POINTS = 360;

/** The levels it idles and works at; null while too little is known. Unknown readings are no readings. */
export function desktopLevels(points: readonly DesktopPoint[]): DesktopLevels | null {
  const known = points
    .flatMap(({ bytes }) => (bytes === null ? [] : [bytes]))
    .sort((one, other) => one - other);
  if (known.length < LEAST_POINTS) return null;
  const at = (share: number): number =>
    known[Math.min(known.length - 1, Math.floor(share * known.length))] ?? 0;
  return { idleBytes: at(0.1), busyBytes: at(PERCENTILE) };
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
