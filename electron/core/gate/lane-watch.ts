import type { LaneState } from '../../../shared/state.ts';
import { createGate, type Gate } from './gate.ts';
import { inspectLane, type LaneInspection } from './inspect.ts';
import { type LockTable, lockFileId, readLockTable } from './kernel-locks.ts';
import { type LaneFiles, slotFiles } from './lane-files.ts';
import { liveTickets } from './queue.ts';
import { readWidth } from './width.ts';

export interface WatchedBackend {
  readonly name: string;
  readonly url: string | null;
  /** As the config has it; absent or null: it says nothing of lanes. */
  readonly lanes?: number | null;
}

/** What a reading adds to the state: since when we have seen this holder, on the monotonic clock. */
export interface WatchedLane {
  readonly state: LaneState;
  /** Of the longest holder, in the reader's monotonic ms; null: not held, or unknown. */
  readonly heldSinceMs: number | null;
}

export interface LaneWatch {
  /** One lane a backend that has one, in their order. Takes nothing, wakes nothing. */
  read(backends: readonly WatchedBackend[], nowMs: number): readonly WatchedLane[];
}

/** A holder does not change without its lock's line in the table changing, save by a fork. */
const HOLDER_KEPT_MS = 2_000;
/** A lane that nobody holds does not change without what is compared at each look. */
const FREE_KEPT_MS = 10_000;

interface Seen {
  /** What the kernel's table said of the lane. */
  readonly signature: string;
  readonly inspection: LaneInspection;
  readonly inspectedAtMs: number;
  readonly sinceMs: number | null;
}

/**
 * The lanes as the state has them. /proc/locks is read once for all; who holds a lane is looked up
 * in fdinfo only when it is held, and again only when the table changed or some time has passed.
 */
export function createLaneWatch(
  gate: Gate = createGate(),
  readTable: () => LockTable | null = readLockTable,
): LaneWatch {
  let seen = new Map<string, Seen>();

  const look = (lane: LaneFiles, table: LockTable | null, nowMs: number): Seen => {
    const signature = signatureOf(lane, table);
    const before = seen.get(lane.width);
    if (before?.signature === signature && nowMs - before.inspectedAtMs < keptMs(before)) return before;
    const inspection = inspectLane(lane, table);
    const same = before !== undefined && holderKey(before.inspection) === holderKey(inspection);
    const sinceMs = inspection.holders.length === 0 ? null : same ? (before.sinceMs ?? nowMs) : nowMs;
    return { signature, inspection, inspectedAtMs: nowMs, sinceMs };
  };

  return {
    read(backends, nowMs): readonly WatchedLane[] {
      const table = readTable();
      const next = new Map<string, Seen>();
      const lanes = backends.flatMap(({ name, url, lanes: set }): WatchedLane[] => {
        const plan = gate.plan(url, null);
        const lane = plan.kind === 'lanes' ? plan.lanes.at(-1) : undefined;
        if (lane === undefined) return [];
        const entry = next.get(lane.width) ?? look(lane, table, nowMs);
        next.set(lane.width, entry);
        const { path, width, held, holders, waiting } = entry.inspection;
        const configured = set !== undefined && set !== null;
        const state = { backend: name, configured, path, width, held, holders, waiting };
        return [{ state, heldSinceMs: entry.sinceMs }];
      });
      seen = next;
      return lanes;
    },
  };
}

function keptMs({ inspection }: Seen): number {
  return inspection.held === false && inspection.holders.length === 0 ? FREE_KEPT_MS : HOLDER_KEPT_MS;
}

/** All that the table and the folder say of a lane, as a text to compare. */
function signatureOf(lane: LaneFiles, table: LockTable | null): string {
  const { width } = readWidth(lane);
  const files = Array.from({ length: width }, (_, index) => lockFileId(slotFiles(lane, index).lock)?.file);
  const lines = table?.locks.filter((lock) => files.includes(lock.file)) ?? [];
  const locks = lines.map((lock) => `${lock.file} ${lock.pid} ${lock.waiting}`).join(',');
  return `${width} ${table === null} ${files.join(',')} ${locks} ${liveTickets(lane, table)}`;
}

function holderKey(inspection: LaneInspection): string {
  return inspection.holders.map((holder) => `${holder.pid} ${holder.turn} ${holder.acquiredAt}`).join(',');
}
