/** The list of events with its filter and search, and the same as text for a bug report. Pure. */
import { type EventKind, type LandlordEvent, type Severity, severityOf } from '../../shared/events.ts';
import type { LandlordState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { bytesText } from './figures.ts';
import { numberPairs } from './numbers.ts';

export type EventGroup = 'guards' | 'memory' | 'models' | 'turns' | 'system';

export interface LogRow {
  readonly id: number;
  readonly at: string;
  readonly atMs: number;
  readonly kind: string;
  readonly severity: Severity;
  readonly reason: string;
  readonly model: string | null;
  readonly figures: readonly { readonly name: string; readonly text: string }[];
}

const GROUPS: Readonly<Partial<Record<EventKind, EventGroup>>> = {
  evicted: 'guards',
  killed: 'guards',
  would_evict: 'guards',
  eviction_failed: 'guards',
  freed_nothing: 'guards',
  made_room: 'guards',
  restored: 'guards',
  drained: 'guards',
  slept: 'guards',
  woke: 'guards',
  guards_changed: 'guards',
  signal_refused: 'guards',
  denied: 'guards',
  floor_threatened: 'memory',
  floor_restored: 'memory',
  driver_eviction: 'memory',
  driver_eviction_over: 'memory',
  reserved: 'memory',
  reservation_over: 'memory',
  orphan_found: 'memory',
  tenant_asked: 'memory',
  parked: 'models',
  unparked: 'models',
  parking_failed: 'models',
  loading: 'models',
  loaded: 'models',
  unloaded: 'models',
  load_failed: 'models',
  model_crashed: 'models',
  context_changed: 'models',
  off_card: 'models',
  slowed: 'models',
  pinned: 'models',
  unpinned: 'models',
  deflected: 'turns',
  fail_open: 'turns',
  lane_stuck: 'turns',
  lane_bypassed: 'turns',
};

export function groupOf(kind: EventKind): EventGroup {
  return GROUPS[kind] ?? 'system';
}

/** Those that match, newest first. `groups` empty: all. Every word of the search must be somewhere. */
export function matching(
  events: readonly LandlordEvent[],
  groups: ReadonlySet<EventGroup>,
  search: string,
): readonly LandlordEvent[] {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return events
    .filter((event) => groups.size === 0 || groups.has(groupOf(event.kind)))
    .filter((event) => {
      if (words.length === 0) return true;
      const text = searched(event);
      return words.every((word) => text.includes(word));
    })
    .toReversed();
}

function searched({ kind, reason, model, backend, session }: LandlordEvent): string {
  const name = strings.events.kind[kind] ?? '';
  return [kind, name, reason, model, backend, session].join(' ').toLocaleLowerCase();
}

export function logRow(event: LandlordEvent): LogRow {
  return {
    id: event.id,
    at: event.at,
    atMs: Date.parse(event.at),
    kind: strings.events.kind[event.kind] ?? event.kind,
    severity: severityOf(event.kind),
    reason: event.reason,
    model: event.model ?? null,
    figures: numberPairs(event.numbers),
  };
}

/** What a person pastes into a bug report: what runs on what, then each event with its figures, oldest first. */
export function reportText(events: readonly LandlordEvent[], state: LandlordState | null): string {
  const head =
    state === null
      ? []
      : [
          `VRAM Landlord ${state.version}, ${state.at}`,
          ...state.devices.map(
            (device) =>
              `${device.name} (${device.id}, ${device.source}): ${bytesText(device.totalBytes)} in all, ` +
              `${bytesText(device.freeBytes)} free, floor ${bytesText(device.floorBytes)}, ` +
              `cap ${bytesText(device.capBytes)}, booked ${bytesText(device.bookedBytes)}, ${device.health}`,
          ),
          ...state.backends.map(
            ({ name, kind, status, version, guards }) =>
              `${name}: ${kind} ${version ?? 'of unknown version'}, ${status}, guards ${guards}`,
          ),
          '',
        ];
  return [...head, ...events.map(eventLine)].join('\n');
}

function eventLine({ at, kind, model, backend, session, reason, numbers }: LandlordEvent): string {
  const about = [model ?? backend, session === undefined ? undefined : `session ${session}`]
    .filter((one) => one !== undefined)
    .join(', ');
  const figures = Object.entries(numbers).map(([key, value]) => `${key}=${value ?? 'unknown'}`);
  const tail = figures.length === 0 ? '' : ` [${figures.join(' ')}]`;
  return `${at} ${kind}${about === '' ? '' : ` (${about})`}: ${reason}${tail}`;
}
