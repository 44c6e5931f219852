import { messageOf } from '../../../shared/errors.ts';
import type { Gate, Missed, TryContext, TurnOptions } from './gate.ts';
import type { LaneFiles } from './lane-files.ts';
import { looksFree } from './looks-free.ts';
import { countAhead, enqueue, leave, namesBefore, newcomerName, type Ticket, ticketName } from './queue.ts';
import type { CancelledTurn, HeldTurn, OpenTurn, Turn } from './turn.ts';

export interface WaitOptions extends TurnOptions {
  /** How long to wait for the lane, in ms, 0 to one hour; default 0: busy at once. */
  readonly waitMs?: number;
  /** Ends the waiting. */
  readonly signal?: AbortSignal;
  /**
   * True: it is known that other turns of this process hold it, none of them the asker's own. Else the
   * kernel is asked, which is a walk over all descriptors of this process and those above it (rule 20).
   */
  readonly othersHoldIt?: boolean;
  /**
   * Called with what makes the waiting look again at once; returns its undo. For a program whose own
   * turns follow one another: it knows when one ends, and need not wait for the next look.
   */
  readonly nudged?: (look: () => void) => () => void;
}

/** A turn that waits longer is better deflected. */
export const LONGEST_WAIT_MS = 3_600_000;

/** Design §5.1: LOCK_NB is tried every 10 to 50 ms. The head of the queue looks most often. */
const HEAD_POLL_MS = { from: 10, to: 16 };
const POLL_MS = { from: 20, to: 50 };

/**
 * Those far behind only look whether they have come to the head, and each look costs the more, the more
 * wait: 60 waiters that all looked every 50 ms took two thirds of a processor (measured). So the eighth
 * looks half as often as the second; still soon enough to notice a head that stands still.
 */
const EIGHTH = 8;
const RAREST = 4;

/** Of one with so many before it. */
export function pollBehind(ahead: number): { readonly from: number; readonly to: number } {
  const factor = Math.min(RAREST, 1 + Math.max(0, ahead - 1) / EIGHTH);
  return { from: POLL_MS.from * factor, to: POLL_MS.to * factor };
}

/**
 * A lane that stays free this long with a queue before it has a waiter at its head that does not run
 * (stopped, swapped out): the others must not wait for it. Each waits this long for every one before
 * it, so that they pass in their order too.
 */
const STALLED_MS = 250;
const STALLED_MOST = 8;

/** Where the kernel's table can't be read, how often one behind others tries all the same. */
const BLIND_TRY_MS = 2000;

/** Takes the lane, waiting for it up to `waitMs` in the order of class and arrival. */
export async function acquireTurn(
  gate: Gate,
  backendUrl: string | null | undefined,
  options: WaitOptions = {},
): Promise<Turn> {
  const prepared = gate.prepare(backendUrl, options);
  if (prepared.kind === 'settled') return prepared.turn;
  const { context } = prepared;
  return gate.deflect(context, await take(gate, context, options));
}

async function take(gate: Gate, context: TryContext, options: WaitOptions): Promise<Turn> {
  if (options.signal?.aborted === true) return cancelled(0);
  const place = newcomerName(context.about.class);
  const tried = gate.attempt(context, place, 0);
  if (tried.kind !== 'missed') return tried;
  // Whoever holds it by itself would wait for itself: that is found out before waiting, not after.
  const narrowed = options.othersHoldIt === true ? context : gate.narrow(context);
  if ('kind' in narrowed) return narrowed;
  const first = narrowed === context ? tried : gate.attempt(narrowed, place, 0);
  if (first.kind !== 'missed') return first;
  return takeLater(gate, narrowed, first, options);
}

async function takeLater(
  gate: Gate,
  context: TryContext,
  first: Missed,
  options: WaitOptions,
): Promise<Turn> {
  const waitMs = Math.min(LONGEST_WAIT_MS, Math.max(0, options.waitMs ?? 0));
  if (waitMs === 0) {
    // With others before it and the lane free, the next moment decides: does anybody take it?
    if (first.queued && looksFree(first.lane)) return wait(gate, context, first, STALLED_MS + 100, options);
    return gate.busy(context, first, 0);
  }
  return wait(gate, context, first, waitMs, options);
}

async function wait(
  gate: Gate,
  context: TryContext,
  first: Missed,
  waitMs: number,
  { signal, nudged }: WaitOptions,
): Promise<Turn> {
  const { world } = gate;
  const startedAtMs = world.monotonicMs();
  const name = ticketName(context.about.class, startedAtMs, process.pid, world.chance());
  const tickets = takeTickets(context, name);
  let missed = first;
  let freeSinceMs: number | null = null;
  let triedAtMs = startedAtMs;
  let free: boolean | null = false;
  let lookedAtMs = 0;
  let stood = '';
  try {
    for (;;) {
      const before = missed.queued ? namesBefore(missed.lane, name) : [];
      const ahead = before.length;
      // A queue that moves does not stand still, however often the lane is seen free between two turns.
      const standing = `${ahead} ${before[0]}`;
      if (standing !== stood) freeSinceMs = null;
      stood = standing;
      const poll = missed.queued ? pollBehind(ahead) : HEAD_POLL_MS;
      const remainingMs = startedAtMs + waitMs - world.monotonicMs();
      if (remainingMs <= 0) return gate.busy(context, missed, world.monotonicMs() - startedAtMs);
      const pauseMs = poll.from + world.random() * (poll.to - poll.from);
      if (!(await pause(Math.min(pauseMs, remainingMs), signal, nudged))) {
        return cancelled(world.monotonicMs() - startedAtMs);
      }
      const nowMs = world.monotonicMs();
      const got: HeldTurn | OpenTurn | Missed = gate.attempt(context, name, nowMs - startedAtMs);
      if (got.kind !== 'missed') return got;
      missed = got;
      if (!missed.queued) free = false;
      else if (nowMs - lookedAtMs >= (STALLED_MS * Math.min(STALLED_MOST, ahead)) / 4) {
        // The kernel's table is the longest of what is read here, and one far behind waits long in any case.
        free = looksFree(missed.lane);
        lookedAtMs = nowMs;
      }
      freeSinceMs = free === true ? (freeSinceMs ?? nowMs) : null;
      const stalled = freeSinceMs !== null && nowMs - freeSinceMs >= stalledMs(missed.lane, name, context);
      if (stalled || (free === null && nowMs - triedAtMs >= BLIND_TRY_MS)) {
        triedAtMs = nowMs;
        const past = gate.attempt(context, null, nowMs - startedAtMs);
        if (past.kind !== 'missed') return past;
      }
    }
  } finally {
    for (const { lane, ticket } of tickets) leave(lane, ticket);
  }
}

function stalledMs(lane: LaneFiles, name: string, { locker }: TryContext): number {
  return STALLED_MS * Math.min(STALLED_MOST, Math.max(1, countAhead(lane, name, locker)));
}

interface LaneTicket {
  readonly lane: LaneFiles;
  readonly ticket: Ticket;
}

/** Without a ticket a turn still waits, only not in order. */
function takeTickets(context: TryContext, name: string): readonly LaneTicket[] {
  const tickets: LaneTicket[] = [];
  for (const lane of context.plan.lanes) {
    try {
      tickets.push({ lane, ticket: enqueue(lane, name, context.plan.modes, context.locker) });
    } catch (thrown) {
      const message = `No ticket can be put in ${lane.queue} (${messageOf(thrown)}), so this turn waits without an order.`;
      context.report({ reason: 'queue_failed', lane: lane.name, path: lane.queue, message, errno: null });
    }
  }
  return tickets;
}

/** False when it was cancelled. */
function pause(ms: number, signal: AbortSignal | undefined, nudged: WaitOptions['nudged']): Promise<boolean> {
  if (signal?.aborted === true) return Promise.resolve(false);
  return new Promise((resolve) => {
    const end = (goesOn: boolean): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      undo?.();
      resolve(goesOn);
    };
    const onAbort = (): void => end(false);
    const timer = setTimeout(() => end(true), ms);
    signal?.addEventListener('abort', onAbort, { once: true });
    const undo = nudged?.(() => end(true));
  });
}

function cancelled(waitedMs: number): CancelledTurn {
  return { kind: 'cancelled', waitedMs, [Symbol.dispose]: () => undefined };
}
