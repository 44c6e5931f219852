import { type LaneFiles, type SlotFiles, slotFiles } from './lane-files.ts';
import type { FileLocker } from './locker.ts';
import { isBehind } from './queue.ts';
import type { GateReport, OpenReason } from './reports.ts';
import { type LockModes, type OpenLock, releaseSlot, takeSlot } from './take-slot.ts';
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

function takeLane(lane: LaneFiles, request: LanesRequest): LaneTake {
  if (request.place !== null && isBehind(lane, request.place, request.locker)) {
    return { kind: 'busy', lane, queued: true };
  }
  // How wide it is matters only once the first slot is taken: one more file that most turns need not ask for.
  let width = 1;
  for (let index = 0; index < width; index += 1) {
    const files = slotFiles(lane, index);
    const take = takeSlot(files.lock, request.modes, request.locker);
    if (take.kind === 'taken') return { kind: 'taken', slot: { lane, files, lock: take.slot } };
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

function widthOf(lane: LaneFiles, request: LanesRequest): number {
  const { width, garbage: message } = readWidth(lane);
  if (message !== null)
    request.report({ reason: 'width_garbage', lane: lane.name, path: lane.width, message, errno: null });
  return width;
}
