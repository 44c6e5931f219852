import type { LandlordEvent } from '../../../shared/events.ts';
import type { Observation } from '../../../shared/questions.ts';

/** What would have been done within this time of a shortage belongs to it. */
const NEAR_MS = 60_000;

/**
 * What observing has seen: shortages of memory in which an idle model could have left. `events` are
 * of kinds `would_evict`, `floor_threatened`, `driver_eviction` and `guards_changed`, oldest first. Pure.
 */
export function observationOf(
  events: readonly LandlordEvent[],
  observes: boolean,
  recordedSinceMs: number | null,
): Omit<Observation, 'firstRun'> {
  if (!observes) return { sinceMs: null, stalls: 0, models: [] };
  const changed = events.findLast((event) => event.kind === 'guards_changed');
  const sinceMs = changed === undefined ? recordedSinceMs : Date.parse(changed.at);
  const during = events.filter((event) => Date.parse(event.at) >= (sinceMs ?? 0));
  const would = during.filter((event) => event.kind === 'would_evict');
  const stalls = during.filter(
    ({ kind, at }) =>
      (kind === 'floor_threatened' || kind === 'driver_eviction') &&
      would.some((one) => Math.abs(Date.parse(one.at) - Date.parse(at)) <= NEAR_MS),
  );
  return {
    sinceMs,
    stalls: stalls.length,
    models: [...new Set(would.flatMap(({ model }) => model ?? []))],
  };
}
