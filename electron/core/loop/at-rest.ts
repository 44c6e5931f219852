/**
 * Whether what a model holds has come to rest. Servers say `loaded` when they can answer, some as soon
 * as they begin; the driver's list of processes is read every two seconds and may be from amid the load.
 * A figure counts as the whole once two lists of after the load, a second apart or more, agree on it.
 */
export interface Steady {
  readonly bytes: number;
  /** Monotonic ms of the first and the last list that showed it. */
  readonly fromMs: number;
  readonly untilMs: number;
}

export const REST_MS = 1_000;
const STEADY_BYTES = 32 * 1024 * 1024;

/** What one more look says: `bytes` by the list read at `readAtMs`; null: it shows none, or is from before the model was as it is. */
export function steadier(
  before: Steady | null,
  bytes: number | null,
  readAtMs: number | null,
  statusSinceMs: number,
): Steady | null {
  if (bytes === null || readAtMs === null || readAtMs < statusSinceMs) return null;
  const isSame =
    before !== null && before.fromMs >= statusSinceMs && Math.abs(bytes - before.bytes) <= STEADY_BYTES;
  if (!isSame) return { bytes, fromMs: readAtMs, untilMs: readAtMs };
  return readAtMs === before.untilMs ? before : { ...before, untilMs: readAtMs };
}

export function isSteady(steady: Steady | null): boolean {
  return steady !== null && steady.untilMs - steady.fromMs >= REST_MS;
}
