import type { IncomingMessage } from 'node:http';
import { acquireTurn, LONGEST_WAIT_MS } from '../gate/acquire.ts';
import type { Gate, TurnOptions } from '../gate/gate.ts';
import type { LaneFiles } from '../gate/lane-files.ts';
import { heldInLine, type LineHolder, turnHolds } from '../gate/nested.ts';
import { newcomerName } from '../gate/queue.ts';
import type { OnReport } from '../gate/reports.ts';
import type { TurnClass } from '../gate/sidecar.ts';
import {
  type BusyTurn,
  type CancelledTurn,
  type GrantedTurn,
  type HeldTurn,
  parseTurns,
} from '../gate/turn.ts';
import { slotsOf } from '../gate/width.ts';
import { callingProcess } from './caller.ts';
import type { Departure } from './departure.ts';
import { AGED_MS, type LaneLines } from './lane-line.ts';

/**
 * What became of a request's wish for its lane.
 *
 *   held     ours until it is released
 *   own      the agent behind the request holds it already, so it never waits on itself (rule 20)
 *   busy     somebody else has it, and the request does not wait
 *   left     the client went away while it waited
 */
export type LaneTaken =
  | { readonly kind: 'held'; readonly turn: Disposable; readonly name: string | null }
  | { readonly kind: 'own'; readonly name: string | null }
  | { readonly kind: 'busy'; readonly busy: BusyTurn }
  | { readonly kind: 'left' };

export interface LaneWish {
  readonly gate: Gate;
  readonly lines: LaneLines;
  readonly url: string;
  /** Those who wait for the same lane stand in one line; left out: the backend's. */
  readonly line?: string;
  readonly model: string | null;
  readonly session: string | null;
  readonly class: TurnClass;
  readonly waits: boolean;
  readonly request: IncomingMessage;
  readonly departure: Departure;
  readonly onReport: OnReport;
  /** Called once if it has to wait. */
  readonly onWaiting: () => void;
}

/** At once where it is free; else finds out whether the agent holds it itself, and waits in line only then. */
export function takeLane(wish: LaneWish): LaneTaken | Promise<LaneTaken> {
  const { lines, waits } = wish;
  if (claimHolds(wish)) return { kind: 'own', name: oneOf(wish.request.headers['x-landlord-turn']) };
  // Whoever stands in line here comes first, and what is all ours nobody else holds, the agent neither:
  // finding that out from the kernel would cost each that waits a walk over /proc.
  const isOurs = waits && allOurs(wish);
  const mayTry = (lines.isEmpty(lineOf(wish)) && !isOurs) || !waits;
  return (mayTry ? takeNow(wish) : null) ?? takeLater(wish, mayTry, isOurs);
}

function lineOf({ line, url }: LaneWish): string {
  return line ?? url;
}

function optionsOf({ model, session, class: turnClass, onReport }: LaneWish): TurnOptions {
  return { model, session, class: turnClass, onReport, reports: false, sidecar: 'soon' };
}

/** null: it is not free. */
function takeNow(wish: LaneWish): LaneTaken | null {
  const { gate, url } = wish;
  const prepared = gate.prepare(url, optionsOf(wish));
  const turn =
    prepared.kind === 'settled' ? prepared.turn : gate.attempt(prepared.context, newcomerName(wish.class), 0);
  return turn.kind === 'missed' ? null : settled(wish, turn);
}

async function takeLater(wish: LaneWish, mayTry: boolean, isOurs: boolean): Promise<LaneTaken> {
  const { gate, url, model, lines, waits, departure } = wish;
  const { signal } = departure;
  const about = optionsOf(wish);
  const first = mayTry ? await acquireTurn(gate, url, { ...about, waitMs: 0 }) : null;
  const got = first === null ? null : settled(wish, first);
  if (got !== null && got.kind !== 'busy') return got;
  const own = isOurs ? null : await heldByCaller(wish);
  if (own !== null) return own;
  if (got !== null && !waits) return got;
  wish.onWaiting();
  const sinceMs = gate.world.monotonicMs();
  for (;;) {
    using place = await lines.enter(lineOf(wish), { class: wish.class, model, sinceMs, signal });
    if (place === null) return { kind: 'left' };
    const agesInMs = sinceMs + AGED_MS - gate.world.monotonicMs();
    const ages = wish.class === 'batch' && !place.aged;
    const turn = await acquireTurn(gate, url, {
      ...about,
      // One that has waited long goes among the interactive ones, so that it comes to its turn too.
      class: place.aged ? 'interactive' : wish.class,
      waitMs: ages ? Math.max(1, agesInMs) : LONGEST_WAIT_MS,
      othersHoldIt: allOurs(wish),
      signal: AbortSignal.any([signal, place.yielded]),
      nudged: (look) => lines.onReleased(lineOf(wish), look),
    });
    if (turn.kind === 'cancelled' && !signal.aborted) continue;
    if (turn.kind === 'busy' && ages) continue;
    const end = settled(wish, turn);
    if (end.kind === 'held') place.granted();
    return end;
  }
}

function settled(wish: LaneWish, turn: GrantedTurn | BusyTurn | CancelledTurn): LaneTaken {
  switch (turn.kind) {
    case 'busy':
      return { kind: 'busy', busy: turn };
    case 'cancelled':
      return { kind: 'left' };
    case 'held':
      return { kind: 'held', turn: new TurnInLine(turn, wish.lines, lineOf(wish)), name: turn.turn };
    case 'nested':
      return { kind: 'held', turn, name: turn.turn };
    default:
      return { kind: 'held', turn, name: null };
  }
}

/** Its line is told when it has the lane, and when it gives it back. */
class TurnInLine implements Disposable {
  readonly #turn: HeldTurn;
  readonly #lines: LaneLines;
  readonly #line: string;

  constructor(turn: HeldTurn, lines: LaneLines, line: string) {
    this.#turn = turn;
    this.#lines = lines;
    this.#line = line;
    lines.took(line, turn.turn);
  }

  [Symbol.dispose](): void {
    if (!this.#lines.holds(this.#line, this.#turn.turn)) return;
    this.#turn.release();
    this.#lines.released(this.#line, this.#turn.turn);
  }
}

/** As many as there were when the plan was made, which stands for a second. */
const slotCounts = new WeakMap<object, number>();

/** Every slot of the lane is held by turns of this process. */
function allOurs(wish: LaneWish): boolean {
  const { gate, lines, url, model } = wish;
  const held = lines.held(lineOf(wish));
  if (held === 0) return false;
  const plan = gate.plan(url, model);
  if (plan.kind !== 'lanes') return false;
  let count = slotCounts.get(plan);
  const [lane] = plan.lanes;
  if (count === undefined && lane !== undefined && plan.lanes.length === 1) {
    count = slotsOf(lane).length;
    slotCounts.set(plan, count);
  }
  return count !== undefined && held >= count;
}

/** `x-landlord-turn` counts only where the sidecar says so and the kernel bears it out. */
function claimHolds(wish: LaneWish): boolean {
  const { gate, lines, url, model, request } = wish;
  // As LANDLORD_TURN, it may name several.
  const claims = parseTurns(oneOf(request.headers['x-landlord-turn']));
  if (claims.length === 0) return false;
  if (claims.some((claim) => lines.holds(lineOf(wish), claim))) return true;
  const plan = gate.plan(url, model);
  return (
    plan.kind === 'lanes' &&
    plan.lanes.some((lane) => claims.some((claim) => turnHolds(lane, claim) === true))
  );
}

/** The process at the other end, or one it descends from, has the lane's lock open and locked. */
export async function heldByCaller({
  gate,
  url,
  model,
  request,
}: Pick<LaneWish, 'gate' | 'url' | 'model' | 'request'>): Promise<Extract<
  LaneTaken,
  { readonly kind: 'own' }
> | null> {
  const plan = gate.plan(url, model);
  if (plan.kind !== 'lanes') return null;
  const { pid } = await callingProcess(request.socket);
  if (pid === null || pid === process.pid) return null;
  for (const lane of plan.lanes) {
    const holder = heldNow(lane, pid);
    // Ours are other requests' turns, also for a client that we have started.
    if (holder !== null && holder.pid !== process.pid) return { kind: 'own', name: holder.turn };
  }
  return null;
}

/** Of this round of the event loop alone: an agent may take its lane right after it has asked. */
const heldThisRound = new Map<string, LineHolder | null>();

/** One client with hundreds of connections is looked at once for all that have asked by now. */
function heldNow(lane: LaneFiles, pid: number): LineHolder | null {
  const key = `${pid} ${lane.root} ${lane.name}`;
  const known = heldThisRound.get(key);
  if (known !== undefined) return known;
  if (heldThisRound.size === 0) setImmediate(() => heldThisRound.clear());
  const holder = heldInLine(lane, pid);
  heldThisRound.set(key, holder);
  return holder;
}

function oneOf(header: string | string[] | undefined): string | null {
  return (Array.isArray(header) ? header[0] : header) ?? null;
}
