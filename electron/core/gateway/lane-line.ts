import type { TurnClass } from '../gate/sidecar.ts';

/**
 * The line in this process before each lane. Only the first goes on to try the lock, whatever the lane's
 * width: it takes the first slot that comes free, and many that try would only be in each other's way.
 * The others wait here, where they can be ordered by more than the order of arrival:
 *
 *   interactive before batch ─ then the model that had the last turn ─ then by arrival;
 *   who has waited `AGED_MS` comes before all that, so that nobody starves
 */
export interface Place extends Disposable {
  /** Raised when an interactive one needs this place: give up the lock's queue and line up again. */
  readonly yielded: AbortSignal;
  readonly aged: boolean;
  /** It has the lane: its place is free for the next one to try. */
  granted(): void;
}

export interface LineWish {
  readonly class: TurnClass;
  readonly model: string | null;
  /** Since when it waits, also where it lines up again. */
  readonly sinceMs: number;
  readonly signal: AbortSignal;
}

export interface Waiting {
  readonly class: TurnClass;
  readonly model: string | null;
  readonly sinceMs: number;
}

export const AGED_MS = 20_000;
/** Turns of one model in a row while others wait, so that models are not swapped to and fro, nor kept for ever. */
const MOST_IN_A_ROW = 8;

/** Index of the one who goes next; -1: nobody waits. */
export function nextInLine(
  waiting: readonly Waiting[],
  last: { readonly model: string | null; readonly inARow: number },
  nowMs: number,
): number {
  let best = -1;
  let bestRank = Number.POSITIVE_INFINITY;
  for (const [index, one] of waiting.entries()) {
    const aged = nowMs - one.sinceMs >= AGED_MS;
    const same = last.model !== null && one.model === last.model && last.inARow < MOST_IN_A_ROW;
    const rank = aged ? 0 : (one.class === 'interactive' ? 1 : 3) + (same ? 0 : 1);
    const better =
      rank < bestRank ||
      (rank === bestRank && one.sinceMs < (waiting[best]?.sinceMs ?? Number.POSITIVE_INFINITY));
    if (!better) continue;
    best = index;
    bestRank = rank;
  }
  return best;
}

interface Entry extends Waiting {
  readonly start: () => void;
}

interface Trying {
  readonly class: TurnClass;
  readonly aged: boolean;
  readonly yielder: AbortController;
}

class Line {
  readonly #nowMs: () => number;
  readonly #waiting: Entry[] = [];
  readonly #trying = new Set<Trying>();
  #last: { model: string | null; inARow: number } = { model: null, inARow: 0 };

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#trying.size === 0;
  }

  enter(wish: LineWish): Promise<Place | null> {
    return new Promise((resolve) => {
      const leave = (): void => {
        const index = this.#waiting.indexOf(entry);
        if (index >= 0) this.#waiting.splice(index, 1);
        resolve(null);
      };
      const entry: Entry = {
        class: wish.class,
        model: wish.model,
        sinceMs: wish.sinceMs,
        start: () => {
          wish.signal.removeEventListener('abort', leave);
          resolve(this.#place(entry));
        },
      };
      this.#waiting.push(entry);
      wish.signal.addEventListener('abort', leave, { once: true });
      if (wish.signal.aborted) leave();
      this.#look();
    });
  }

  #place(entry: Entry): Place {
    const aged = this.#nowMs() - entry.sinceMs >= AGED_MS;
    const trying: Trying = { class: entry.class, aged, yielder: new AbortController() };
    this.#trying.add(trying);
    const end = (): void => {
      if (this.#trying.delete(trying)) this.#look();
    };
    return {
      yielded: trying.yielder.signal,
      aged,
      granted: () => {
        const same = entry.model === this.#last.model;
        this.#last = { model: entry.model, inARow: same ? this.#last.inARow + 1 : 1 };
        end();
      },
      [Symbol.dispose]: end,
    };
  }

  #look(): void {
    while (this.#trying.size < 1) {
      const index = nextInLine(this.#waiting, this.#last, this.#nowMs());
      const [entry] = index < 0 ? [] : this.#waiting.splice(index, 1);
      if (entry === undefined) return;
      entry.start();
    }
    if (!this.#waiting.some((one) => one.class === 'interactive')) return;
    // It lines up again behind the one it makes way for.
    for (const trying of this.#trying) if (trying.class === 'batch' && !trying.aged) trying.yielder.abort();
  }
}

export class LaneLines {
  readonly #lines = new Map<string, Line>();
  readonly #looks = new Map<string, Set<() => void>>();
  /** Few at a time, each for a moment: a Set would be made smaller and larger with each. */
  readonly #turns = new Map<string, string[]>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Calls `look` whenever a turn of ours in that lane ends; returns its undo. */
  onReleased(lane: string, look: () => void): () => void {
    const looks = this.#looks.get(lane) ?? new Set();
    this.#looks.set(lane, looks);
    looks.add(look);
    return () => looks.delete(look);
  }

  /** A turn of this process holds one of that lane's slots, until it is released. */
  took(lane: string, turn: string): void {
    const turns = this.#turns.get(lane);
    if (turns === undefined) this.#turns.set(lane, [turn]);
    else turns.push(turn);
  }

  /** Its name is known here before its sidecar is written. */
  holds(lane: string, turn: string): boolean {
    return this.#turns.get(lane)?.includes(turn) ?? false;
  }

  /** How many turns of this process hold that lane. */
  held(lane: string): number {
    return this.#turns.get(lane)?.length ?? 0;
  }

  released(lane: string, turn: string): void {
    const turns = this.#turns.get(lane);
    const at = turns?.indexOf(turn) ?? -1;
    if (at >= 0) turns?.splice(at, 1);
    const looks = this.#looks.get(lane);
    if (looks !== undefined && looks.size > 0) for (const look of [...looks]) look();
  }

  isEmpty(lane: string): boolean {
    return this.#lines.get(lane)?.isEmpty ?? true;
  }

  /** A place from which to try the lock; null: the signal came first. */
  enter(lane: string, wish: LineWish): Promise<Place | null> {
    const line = this.#lines.get(lane) ?? new Line(this.#nowMs);
    this.#lines.set(lane, line);
    return line.enter(wish);
  }
}
