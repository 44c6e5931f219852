import type { LaneFiles } from './lane-files.ts';
import type { Later, Pending } from './later.ts';
import type { FileLocker } from './locker.ts';
import { removeSidecarOf } from './slot-sidecar.ts';
import type { TakenSlot } from './take-lanes.ts';
import { releaseSlot } from './take-slot.ts';
import { type HeldTurn, TURN_VARIABLE, turnsText } from './turn.ts';

/** A turn of this process that holds its lanes until it is released. */
export class ActiveTurn implements HeldTurn {
  readonly kind = 'held';
  readonly turn: string;
  readonly waitedMs: number;
  readonly #outer: readonly string[];
  readonly #slots: readonly TakenSlot[];
  readonly #locker: FileLocker;
  #released = false;
  #pending: Pending | null = null;

  /** `outer`: names of the turns this one is inside of, outermost first. */
  constructor(
    turn: string,
    outer: readonly string[],
    slots: readonly TakenSlot[],
    locker: FileLocker,
    waitedMs: number,
  ) {
    this.turn = turn;
    this.waitedMs = waitedMs;
    this.#outer = outer;
    this.#slots = slots;
    this.#locker = locker;
  }

  /** Put together when asked for: few turns start a program. */
  get env(): Readonly<Record<string, string>> {
    return { [TURN_VARIABLE]: turnsText([...this.#outer, this.turn]) };
  }

  get locks(): readonly string[] {
    return this.#slots.map(({ lock }) => lock.path);
  }

  get descriptors(): readonly number[] {
    return this.#slots.map(({ lock }) => lock.fd);
  }

  get released(): boolean {
    return this.#released;
  }

  holds(lane: LaneFiles): boolean {
    return (
      !this.#released &&
      this.#slots.some((slot) => slot.lane.name === lane.name && slot.lane.root === lane.root)
    );
  }

  /** Does that work after a while; not where it is released by then. */
  unlessReleased(later: Later, work: () => void): void {
    this.#pending = later.add(work);
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    if (this.#pending !== null) this.#pending.work = null;
    for (const slot of this.#slots.toReversed()) {
      // Before the lock is let go: after that the sidecar there may be the next turn's.
      removeSidecarOf(slot);
      releaseSlot(slot.lock, this.#locker);
    }
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
