import type { LaneState } from '../../../shared/state.ts';
import { ageText } from './turn.ts';

/**
 * A lane that is held for long while its device does nothing: an agent that hangs, or a child that
 * inherited the lock. It is told, never broken by us: the kernel's lock is the holder's to give back.
 */
export interface StuckInput {
  readonly lane: LaneState;
  /** Monotonic ms; null: not held, or unknown. */
  readonly heldSinceMs: number | null;
  readonly nowMs: number;
  /** Of the device the backend is on, oldest first; null: unknown, which never counts as idle. */
  readonly busyHistory: readonly { readonly atMs: number; readonly busyPercent: number | null }[];
}

export interface StuckPolicy {
  readonly heldMs: number;
  readonly idleMs: number;
  /** At most this busy is idle: a desktop alone makes a few percent. */
  readonly idlePercent: number;
  /** So few readings over `idleMs` prove nothing. */
  readonly leastReadings: number;
}

export const STUCK_POLICY: StuckPolicy = {
  heldMs: 300_000,
  idleMs: 60_000,
  idlePercent: 5,
  leastReadings: 5,
};

export interface LaneFinding {
  /** The same while it is about the same thing: told once. */
  readonly key: string;
  readonly reason: string;
  readonly session: string | null;
  readonly numbers: Readonly<Record<string, number | null>>;
}

/** null: not held long enough, or the device works, or too little is known of it. */
export function laneStuck(input: StuckInput, policy: StuckPolicy = STUCK_POLICY): LaneFinding | null {
  const { lane, heldSinceMs, nowMs, busyHistory } = input;
  if (lane.holders.length === 0 || heldSinceMs === null) return null;
  const heldMs = nowMs - heldSinceMs;
  if (heldMs < policy.heldMs) return null;
  const recent = busyHistory.filter(
    (reading) => reading.atMs >= nowMs - policy.idleMs && reading.atMs <= nowMs,
  );
  const first = recent[0];
  // The readings must cover the time, not only lie in it.
  if (first === undefined || recent.length < policy.leastReadings) return null;
  if (nowMs - first.atMs < policy.idleMs / 2) return null;
  const busiest = recent.reduce<number | null>(
    (most, { busyPercent }) => (most === null || busyPercent === null ? null : Math.max(most, busyPercent)),
    0,
  );
  if (busiest === null || busiest > policy.idlePercent) return null;
  const [holder] = lane.holders;
  const who = holder?.session == null ? `pid ${holder?.pid ?? 'unknown'}` : `session ${holder.session}`;
  return {
    key: `stuck ${lane.path} ${holder?.pid} ${holder?.turn} ${holder?.acquiredAt}`,
    reason:
      `The lane of ${lane.backend} has been held by ${who} for ${ageText(heldMs)} while its device was idle ` +
      `for the last ${ageText(policy.idleMs)}; end that turn, or see what it waits for.`,
    session: holder?.session ?? null,
    numbers: { heldMs, idleMs: policy.idleMs, busyPercent: busiest, pid: holder?.pid ?? null },
  };
}
