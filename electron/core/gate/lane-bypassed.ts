import type { LaneFinding } from './lane-stuck.ts';

/** One look at a backend and its lane together. null: unknown, and then it proves nothing. */
export interface BypassReading {
  readonly atMs: number;
  /** Whether the backend generates. */
  readonly backendBusy: boolean | null;
  /** Whether any slot of its lane is held. */
  readonly laneHeld: boolean | null;
}

/** A local process that has a connection to the backend. */
export interface LocalClient {
  readonly pid: number;
  readonly command: string | null;
}

/** A backend just done and a lane just freed are seen at two moments; this long they can't differ by that. */
export const BYPASS_MS = 3000;
const LEAST_READINGS = 3;

/**
 * A backend that generates while nobody holds its lane is used outside the lane. `readings` oldest
 * first. null: not so, not for long enough, or not known.
 */
export function laneBypassed(
  backend: string,
  readings: readonly BypassReading[],
  clients: readonly LocalClient[],
): LaneFinding | null {
  const run: BypassReading[] = [];
  for (const reading of readings.toReversed()) {
    if (reading.backendBusy !== true || reading.laneHeld !== false) break;
    run.push(reading);
  }
  const [last, first] = [run[0], run.at(-1)];
  if (last === undefined || first === undefined || run.length < LEAST_READINGS) return null;
  const forMs = last.atMs - first.atMs;
  if (forMs < BYPASS_MS) return null;
  const who =
    clients.length === 0
      ? 'by a program that could not be found'
      : `by ${clients
          .map((client) => `pid ${client.pid}${client.command === null ? '' : ` (${client.command})`}`)
          .join(', ')}`;
  return {
    key: `bypassed ${backend} ${first.atMs}`,
    reason: `${backend} is at work while its lane is free: it is used outside the lane ${who}.`,
    session: null,
    numbers: { forMs, clients: clients.length, pid: clients[0]?.pid ?? null },
  };
}
