/**
 * The files of one lane (design §5.1). Any program in any language finds them by these names:
 *
 *   127.0.0.1_8080.lock     flock(2) this; created once, never deleted
 *   127.0.0.1_8080.json     the sidecar: who holds it, advisory
 *   127.0.0.1_8080.width    how many turns at once; absent is 1
 *   127.0.0.1_8080.1.lock   slot 1 of a lane that is wider, and so on
 *   127.0.0.1_8080.queue/   tickets of those who wait; there only while somebody does
 *   127.0.0.1_8080.means    lanes a turn for this port takes instead of its own
 */
export interface LaneFiles {
  /** `127.0.0.1_8080`. */
  readonly name: string;
  readonly root: string;
  readonly width: string;
  readonly queue: string;
  readonly means: string;
}

export interface SlotFiles {
  /** From 0; slot 0 is the lane's own lock. */
  readonly index: number;
  readonly lock: string;
  readonly sidecar: string;
}

/** More than this at once on one backend is a mistake in the file. */
export const MAX_WIDTH = 256;

/** `root` is absolute. Paths are put together by hand: this is done for each turn. */
export function laneFiles(root: string, name: string): LaneFiles {
  const stem = `${root}/${name}`;
  return { name, root, width: `${stem}.width`, queue: `${stem}.queue`, means: `${stem}.means` };
}

const firstSlots = new WeakMap<LaneFiles, SlotFiles>();

/** Those of the first slot, which each turn asks for, are put together once a lane. */
export function slotFiles(lane: LaneFiles, index: number): SlotFiles {
  if (index > 0) return filesOf(index, `${lane.root}/${lane.name}.${index}`);
  const known = firstSlots.get(lane);
  if (known !== undefined) return known;
  const files = filesOf(0, `${lane.root}/${lane.name}`);
  firstSlots.set(lane, files);
  return files;
}

function filesOf(index: number, stem: string): SlotFiles {
  return { index, lock: `${stem}.lock`, sidecar: `${stem}.json` };
}

/** 1–256; null for a text that is no such number, which counts as 1: too narrow is only slower. */
export function parseWidth(text: string): number | null {
  const width = Number(text.trim());
  return text.trim() !== '' && Number.isInteger(width) && width >= 1 && width <= MAX_WIDTH ? width : null;
}
