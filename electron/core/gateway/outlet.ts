/**
 * How an answer's parts go out. The first few go at once, and so does each that comes after a pause; of
 * parts that follow one another faster than anybody reads, those of one moment go out together. Each
 * write costs a system call here and wakes the client up there, and at hundreds of tokens a second that
 * is time the tokens are waiting for on a machine whose cores are busy.
 *
 * Parts earn a write each `MOMENT_MS`, and save up to `BURST` of them.
 */
const MOMENT_MS = 8;
const BURST = 8;
/** As much as this is worth a write of its own. */
const FULL_BYTES = 16 * 1024;

/** What is asked of node:http's ServerResponse. */
export interface OutletResponse {
  readonly writableNeedDrain: boolean;
  write(part: Buffer, done?: () => void): boolean;
  end(part?: Buffer): void;
  destroy(): void;
}

export class Outlet {
  readonly #response: OutletResponse;
  readonly #monotonicMs: () => number;
  #earned = BURST;
  #earnedAtMs: number | null = null;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(response: OutletResponse, monotonicMs: () => number) {
    this.#response = response;
    this.#monotonicMs = monotonicMs;
  }

  /** False: no more should come before the response says `drain`. */
  write(part: Buffer): boolean {
    if (this.#timer === null && this.#earn() >= 1) {
      this.#earned -= 1;
      return this.#response.write(part);
    }
    this.#held.push(part);
    this.#heldBytes += part.length;
    if (this.#heldBytes >= FULL_BYTES) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), Math.ceil((1 - this.#earned) * MOMENT_MS));
    return !this.#response.writableNeedDrain;
  }

  /** What is held goes out with the end. */
  end(): void {
    const rest = this.#take();
    if (rest === null) this.#response.end();
    else this.#response.end(rest);
  }

  /** What came before the break goes out, and no proper end. */
  break(): void {
    const rest = this.#take();
    if (rest === null) this.#response.destroy();
    else this.#response.write(rest, () => this.#response.destroy());
  }

  /** Nobody is there to take what is held. */
  drop(): void {
    this.#take();
  }

  #earn(): number {
    const nowMs = this.#monotonicMs();
    const forMs = nowMs - (this.#earnedAtMs ?? nowMs);
    this.#earnedAtMs = nowMs;
    this.#earned = Math.min(BURST, this.#earned + forMs / MOMENT_MS);
    return this.#earned;
  }

  #flush(): void {
    const rest = this.#take();
    if (rest === null) return;
    this.#earned = Math.max(0, this.#earn() - 1);
    this.#response.write(rest);
  }

  #take(): Buffer | null {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const [only] = this.#held;
    if (only === undefined) return null;
    const rest = this.#held.length === 1 ? only : Buffer.concat(this.#held, this.#heldBytes);
    this.#held = [];
    this.#heldBytes = 0;
    return rest;
  }
}
