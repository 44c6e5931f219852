/**
 * What the event log, `landlord events` and the event stream carry. Every eviction, kill, denial,
 * deflection and fail-open leaves one, with a human reason and the numbers behind it (rule 21).
 */

export const EVENT_KINDS = [
  'started',
  'stopped',
  'evicted',
  'killed',
  'would_evict',
  'eviction_failed',
  'freed_nothing',
  'denied',
  'deflected',
  'fail_open',
  'floor_threatened',
  'floor_restored',
  'driver_eviction',
  'driver_eviction_over',
  'slept',
  'woke',
  'drained',
  'made_room',
  'restored',
  'loading',
  'loaded',
  'unloaded',
  'load_failed',
  'model_crashed',
  'context_changed',
  'pinned',
  'unpinned',
  'reserved',
  'reservation_over',
  'guards_changed',
  'lane_stuck',
  'lane_bypassed',
  'backend_up',
  'backend_down',
  'backend_found',
  'config_loaded',
  'config_rejected',
  'orphan_found',
  'tenant_asked',
  'parked',
  'unparked',
  'parking_failed',
  'driver_trouble',
  'off_card',
  'slowed',
  'device_found',
  'device_lost',
  'sampler_restarted',
  'resumed',
  'storage_failed',
  'signal_refused',
] as const;

export type EventKind = (typeof EVENT_KINDS)[number];

export interface LandlordEvent {
  /** Ascending, from the store; unique for the life of a database. */
  readonly id: number;
  /** ISO 8601. */
  readonly at: string;
  readonly kind: EventKind;
  /** One sentence for a person, with the figures that matter. */
  readonly reason: string;
  /** `backend/model`. */
  readonly model?: string;
  readonly backend?: string;
  readonly session?: string;
  readonly deviceId?: string;
  /** Byte counts end in `Bytes`, durations in `Ms`; an unknown one is null. */
  readonly numbers: Readonly<Record<string, number | null>>;
}

export type NewEvent = Omit<LandlordEvent, 'id' | 'at'>;

/** Events that also become one syslog/journal line and a notification record (rule 21, §5.5). */
export const ACTION_KINDS: ReadonlySet<EventKind> = new Set([
  'evicted',
  'killed',
  'drained',
  'eviction_failed',
  'freed_nothing',
  'signal_refused',
]);

export type Severity = 'info' | 'notice' | 'warning' | 'critical';

export function severityOf(kind: EventKind): Severity {
  switch (kind) {
    case 'driver_eviction':
    case 'killed':
    case 'driver_trouble':
    case 'storage_failed':
      return 'critical';
    case 'floor_threatened':
    case 'eviction_failed':
    case 'freed_nothing':
    case 'backend_down':
    case 'config_rejected':
    case 'lane_stuck':
    case 'device_lost':
    case 'model_crashed':
    case 'load_failed':
    case 'signal_refused':
      return 'warning';
    case 'evicted':
    case 'denied':
    case 'deflected':
    case 'drained':
    case 'orphan_found':
    case 'fail_open':
    case 'lane_bypassed':
    case 'would_evict':
    case 'parking_failed':
    case 'off_card':
    case 'slowed':
      return 'notice';
    default:
      return 'info';
  }
}
