/** The list of what happened, newest first, with what can be undone. Pure. */
import { type LandlordEvent, type Severity, severityOf } from '../../shared/events.ts';
import type { LandlordState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { shortName } from './figures.ts';

export interface EventRow {
  /** Of the newest of its run. */
  readonly id: number;
  /** Of the oldest of its run; the same where it is one event. */
  readonly firstId: number;
  readonly at: string;
  readonly kind: string;
  readonly reason: string;
  readonly severity: Severity;
  /** The same thing in a row is told once, with how often. */
  readonly times: number;
  /** Model to offer to load again; null: nothing to undo, or it is back already. */
  readonly loadAgain: { readonly id: string; readonly name: string } | null;
}

export interface EventsCard {
  readonly rows: readonly EventRow[];
  readonly restorable: readonly string[];
}

/** `events` oldest first, as the runtime gives them. */
export function eventsCard(events: readonly LandlordEvent[], state: LandlordState | null): EventsCard {
  const rows: EventRow[] = [];
  const offered = new Set<string>();
  for (const event of events.toReversed()) {
    const kind = strings.events.kind[event.kind] ?? event.kind;
    const last = rows.at(-1);
    if (last !== undefined && last.kind === kind && last.reason === event.reason) {
      rows[rows.length - 1] = { ...last, firstId: event.id, times: last.times + 1 };
      continue;
    }
    rows.push({
      id: event.id,
      firstId: event.id,
      at: event.at,
      kind,
      reason: event.reason,
      severity: severityOf(event.kind),
      times: 1,
      loadAgain: undoOf(event, state, offered),
    });
  }
  return { rows, restorable: (state?.restorable ?? []).map(shortName) };
}

/** Only the newest eviction of a model offers it, and only while it is away. */
function undoOf(
  event: LandlordEvent,
  state: LandlordState | null,
  offered: Set<string>,
): EventRow['loadAgain'] {
  const { model: id, kind } = event;
  if (id === undefined || (kind !== 'evicted' && kind !== 'killed' && kind !== 'made_room')) return null;
  if (offered.has(id)) return null;
  offered.add(id);
  const model = state?.models.find((entry) => entry.id === id);
  return model?.status === 'unloaded' || model?.status === 'failed' ? { id, name: shortName(id) } : null;
}
