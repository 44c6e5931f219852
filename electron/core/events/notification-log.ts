import { type EventKind, type LandlordEvent, type Severity, severityOf } from '../../../shared/events.ts';

/** What a person is told outside the window: one record for a run of like events. */
export interface Notification {
  /** The id of its first event. */
  readonly id: number;
  readonly kind: EventKind;
  readonly severity: Severity;
  /** `backend/model`; null where the event names none. */
  readonly model: string | null;
  /** The newest event's reason. */
  readonly text: string;
  readonly count: number;
  /** ISO 8601. */
  readonly firstAt: string;
  readonly lastAt: string;
  /** The newest event, where a click leads. */
  readonly lastEventId: number;
}

/** Events of one kind about one model within this time are one record. */
const COALESCE_MS = 10_000;
const KEPT_NOTIFICATIONS = 100;

/** Oldest first, the newest hundred. Events that are mere information leave the log as it is. */
export function notify(log: readonly Notification[], event: LandlordEvent): readonly Notification[] {
  const severity = severityOf(event.kind);
  if (severity === 'info') return log;
  const model = event.model ?? null;
  const index = log.findLastIndex((entry) => entry.kind === event.kind && entry.model === model);
  const earlier = log[index];
  if (earlier !== undefined && isWithin(earlier.lastAt, event.at)) {
    const grown: Notification = {
      ...earlier,
      text: event.reason,
      count: earlier.count + 1,
      lastAt: event.at,
      lastEventId: event.id,
    };
    return [...log.slice(0, index), ...log.slice(index + 1), grown];
  }
  const fresh: Notification = {
    id: event.id,
    kind: event.kind,
    severity,
    model,
    text: event.reason,
    count: 1,
    firstAt: event.at,
    lastAt: event.at,
    lastEventId: event.id,
  };
  return [...log, fresh].slice(-KEPT_NOTIFICATIONS);
}

/** A clock that was set back makes no run of it. */
function isWithin(earlier: string, later: string): boolean {
  const apartMs = Date.parse(later) - Date.parse(earlier);
  return apartMs >= 0 && apartMs <= COALESCE_MS;
}
