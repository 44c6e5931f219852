import { type FolderMark, isUnchanged, markOf } from './folder-mark.ts';
import { type LaneFiles, type SlotFiles, slotFiles } from './lane-files.ts';
import type { FileLocker } from './locker.ts';
import { isBehind, isQueued } from './queue.ts';
import type { GateReport, OpenReason } from './reports.ts';
import { isAtPath, type LockModes, type OpenLock, releaseSlot, takeOpenSlot, takeSlot } from './take-slot.ts';
import { readWidth } from './width.ts';

/** One slot of one lane, locked. */
export interface TakenSlot {
  readonly lane: LaneFiles;
  readonly files: SlotFiles;
  readonly lock: OpenLock;
}

/**
 * All lanes of a plan or none: a turn that holds one and waits for another could wait for a turn
 * that does the same the other way round.
 */
export type LanesTake =
  | { readonly kind: 'taken'; readonly slots: readonly TakenSlot[] }
  /** `queued`: the lane may be free, but others come first. */
  | { readonly kind: 'busy'; readonly lane: LaneFiles; readonly queued: boolean }
  | {
      readonly kind: 'unusable';
      readonly reason: OpenReason;
      readonly report: Omit<GateReport, 'reason'>;
    };

export interface LanesRequest {
  readonly lanes: readonly LaneFiles[];
  readonly modes: LockModes;
  readonly locker: FileLocker;
  /** Name of our ticket, or of a newcomer; null: take it whoever waits. */
  readonly place: string | null;
  readonly report: (report: GateReport) => void;
}

export function takeLanes(request: LanesRequest): LanesTake {
  const taken: TakenSlot[] = [];
  const giveBack = (): void => {
    for (const slot of taken.toReversed()) releaseSlot(slot.lock, request.locker);
  };
  for (const lane of request.lanes) {
    const one = takeLane(lane, request);
    if (one.kind !== 'taken') {
      giveBack();
      return one;
    }
    taken.push(one.slot);
  }
  return { kind: 'taken', slots: taken };
}

type LaneTake =
  | { readonly kind: 'taken'; readonly slot: TakenSlot }
  | Exclude<LanesTake, { readonly kind: 'taken' }>;

/** Of lanes whose lock was found at its path with nobody in line: so it is while their folder stays as it was. */
const calm = new WeakMap<LaneFiles, { readonly folder: FolderMark; readonly lock: OpenLock }>();

function takeLane(lane: LaneFiles, request: LanesRequest): LaneTake {
  const again = takeCalm(lane, request.locker);
  if (again !== null) return { kind: 'taken', slot: again };
  if (request.place !== null && isBehind(lane, request.place, request.locker)) {
    return { kind: 'busy', lane, queued: true };
  }
  // How wide it is matters only once the first slot is taken: one more file that most turns need not ask for.
  let width = 1;
  for (let index = 0; index < width; index += 1) {
    const files = slotFiles(lane, index);
    const take = takeSlot(files.lock, request.modes, request.locker);
    if (take.kind === 'taken') {
      if (index === 0) remember(lane, take.slot);
      return { kind: 'taken', slot: { lane, files, lock: take.slot } };
    }
    if (take.kind === 'unusable') {
      const { reason, errno, message } = take;
      return {
        kind: 'unusable',
        reason,
        report: { lane: lane.name, path: files.lock, message, errno },
      };
    }
    if (index === 0) width = widthOf(lane, request);
  }
  return { kind: 'busy', lane, queued: false };
}

/** With one look at the folder instead of one at each file in it: on cold caches a look costs 8 µs. null: all is to be looked at. */
function takeCalm(lane: LaneFiles, locker: FileLocker): TakenSlot | null {
  const known = calm.get(lane);
  if (known === undefined) return null;
  const lock = takeOpenSlot(known.lock, locker);
  if (lock === null) return null;
  if (isUnchanged(lane.root, known.folder)) return { lane, files: slotFiles(lane, 0), lock };
  calm.delete(lane);
  releaseSlot(lock, locker);
  return null;
}

function remember(lane: LaneFiles, lock: OpenLock): void {
  // Before what it is to vouch for.
  const folder = markOf(lane.root);
  if (folder !== null && !isQueued(lane) && isAtPath(lock)) calm.set(lane, { folder, lock });
}

function widthOf(lane: LaneFiles, request: LanesRequest): number {
  const { width, garbage: message } = readWidth(lane);
  if (message !== null)
    request.report({ reason: 'width_garbage', lane: lane.name, path: lane.width, message, errno: null });
  return width;
}
