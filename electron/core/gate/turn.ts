import type { LaneHolderState } from '../../../shared/state.ts';
import type { OpenReason } from './reports.ts';
import type { TurnClass } from './sidecar.ts';

/**
 * What a turn got when it asked for its lane. All but `busy` and `cancelled` go to the backend.
 *
 *   acquire ──► skipped    another machine, or no backend configured: nothing to do with the gate
 *           ──► nested     this agent already holds it
 *           ──► open       the gate is out of order, and the turn goes on without it
 *           ──► held ──► released (by `release`, `using`, or the end of the process)
 *           ──► busy       take the next entry of the fallback chain
 *           ──► cancelled  the signal was raised while it waited
 */
export type Turn = HeldTurn | NestedTurn | OpenTurn | SkippedTurn | BusyTurn | CancelledTurn;

/** The kinds that may go to the backend now. */
export type GrantedTurn = HeldTurn | NestedTurn | OpenTurn | SkippedTurn;

export interface HeldTurn extends Disposable {
  readonly kind: 'held';
  /** Also in the sidecar and in LANDLORD_TURN. */
  readonly turn: string;
  /** Paths of the locks held. */
  readonly locks: readonly string[];
  /** Their descriptors, to be passed across exec. */
  readonly descriptors: readonly number[];
  readonly waitedMs: number;
  /** For child processes of this turn, so that their own turns pass; also names the turns it is inside of. */
  readonly env: Readonly<Record<string, string>>;
  /** Any number of times; only the first counts. */
  release(): void;
}

export interface NestedTurn extends Disposable {
  readonly kind: 'nested';
  /** null: this process or one above it holds the lane without having said for which turn. */
  readonly turn: string | null;
  readonly env: Readonly<Record<string, string>>;
}

export interface OpenTurn extends Disposable {
  readonly kind: 'open';
  readonly reason: OpenReason;
  readonly message: string;
}

export interface SkippedTurn extends Disposable {
  readonly kind: 'skipped';
  readonly why: 'not_configured' | 'not_local' | 'no_lane';
}

export interface BusyTurn extends Disposable {
  readonly kind: 'busy';
  readonly code: 'local_backend_busy';
  /** `local model in use by another session (…)`. */
  readonly message: string;
  /** `127.0.0.1_8080`. */
  readonly lane: string;
  readonly holder: LaneHolderState | null;
  /** null: unknown. */
  readonly heldForMs: number | null;
  readonly waitedMs: number;
}

export interface CancelledTurn extends Disposable {
  readonly kind: 'cancelled';
  readonly waitedMs: number;
}

/**
 * Names of the turns a process is inside of, outermost first, with commas between: an agent may hold
 * the lanes of several backends.
 */
export const TURN_VARIABLE = 'LANDLORD_TURN';

/** A program that goes round in circles must not fill its children's environment. */
const MOST_TURNS = 64;

export function turnsText(turns: readonly string[]): string {
  return [...new Set(turns)].slice(-MOST_TURNS).join(',');
}

export function parseTurns(text: string | null | undefined): readonly string[] {
  if (text === null || text === undefined || text === '') return NO_TURNS;
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

const NO_TURNS: readonly string[] = [];

/** A comma would make two of one. */
export function turnName(text: string): string {
  return text.trim().replaceAll(',', '_');
}

export interface TurnAbout {
  readonly session: string | null;
  readonly model: string | null;
  readonly class: TurnClass;
}

/** `local model in use by another session (session writer, pid 4242 python3 agent.py, for 12 s)`. */
export function busyMessage(
  holder: LaneHolderState | null,
  heldForMs: number | null,
  own: string | null,
): string {
  const parts = [
    holder?.session === null || holder === null ? 'session unknown' : `session ${holder.session}`,
    holder?.pid == null ? 'holder unknown' : `pid ${holder.pid}${shortCommand(holder.command)}`,
    heldForMs === null ? 'age unknown' : `for ${ageText(heldForMs)}`,
  ];
  const whose = own !== null && holder?.session === own ? 'another turn of this session' : 'another session';
  return `local model in use by ${whose} (${parts.join(', ')})`;
}

export const NEXT_IN_QUEUE = 'local model in use by another session (others wait for it before this turn)';

function shortCommand(command: string | null): string {
  return command === null ? '' : ` ${command.length > 40 ? `${command.slice(0, 39)}…` : command}`;
}

/** `850 ms`, `12 s`, `3 min`, `2 h`. */
export function ageText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 120_000) return `${Math.floor(ms / 1000)} s`;
  return ms < 7_200_000 ? `${Math.floor(ms / 60_000)} min` : `${Math.floor(ms / 3_600_000)} h`;
}

export function isGranted(turn: Turn): turn is GrantedTurn {
  return turn.kind !== 'busy' && turn.kind !== 'cancelled';
}
