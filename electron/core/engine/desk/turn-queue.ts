/** A DECODE that waits for its next turn. */
export interface WaitingTurn {
  readonly agent: string;
  readonly class: 'interactive' | 'batch';
  /** Monotonic ms of its arrival. */
  readonly arrivedAtMs: number;
  /** Monotonic ms of the end of its last turn; null: it had none. */
  readonly lastTurnAtMs: number | null;
}

/** A batch turn that has waited for so long goes as an interactive one: it is served late, but served. */
const AGEING_MS = 10_000;

/** Monotonic ms since it waits: it came then, or last had its turn. */
function waitsSince(turn: WaitingTurn): number {
  return turn.lastTurnAtMs ?? turn.arrivedAtMs;
}

/** Whether it goes as an interactive one, by its class or because it has waited for long. Pure. */
export function isUrgent(turn: WaitingTurn, nowMs: number): boolean {
  return turn.class === 'interactive' || nowMs - waitsSince(turn) >= AGEING_MS;
}

/**
 * Whose turn it is: interactive before batch, an aged batch turn counting as interactive; within a class
 * whoever has waited longest since it came or last had its turn. Pure.
 */
export function inOrder<T extends WaitingTurn>(waiting: readonly T[], nowMs: number): readonly T[] {
  const rank = (turn: T): number => (isUrgent(turn, nowMs) ? 0 : 1);
  return [...waiting].sort(
    (one, other) =>
      rank(one) - rank(other) || waitsSince(one) - waitsSince(other) || one.arrivedAtMs - other.arrivedAtMs,
  );
}
