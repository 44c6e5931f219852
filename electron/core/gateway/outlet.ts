/**
 * How an answer's parts go out. What comes in one read goes out in one write: the head with the first of
 * the body, the last of the body with the end. The first few reads' parts go at once, and so does each
 * that comes after a pause; of parts that follow one another faster than anybody reads, those of one
 * moment go out together. Each write costs a system call here and wakes the client up there, and at
 * hundreds of tokens a second that is time the tokens are waiting for on a machine whose cores are busy.
 *
 * Parts earn a write each `MOMENT_MS`, and save up to `BURST` of them.
 */
const MOMENT_MS = 8;
const BURST = 8;
/** As much as this is worth a write of its own. */
const FULL_BYTES = 16 * 1024;
/** More than this is not made a text of to be written with the head. */
const TEXT_BYTES = 8 * 1024;
/** A head waits this long for the first of its body; then it goes alone, so that a reader learns that it is served. */
const HEAD_ALONE_MS = 5;

/** What is asked of node:http's ServerResponse. */
export interface OutletResponse {
  write(part: Buffer, done?: () => void): boolean;
  end(part?: Buffer): void;
  end(part: string, encoding: 'latin1'): void;
  destroy(): void;
  flushHeaders(): void;
  once(event: 'drain', listener: () => void): unknown;
}

/** Where the parts come from. */
export interface OutletSource {
  /** No more should come until it is resumed: the client takes none. */
  pause(): void;
  resume(): void;
}

/** The parser takes one read apart in one go; what is queued behind this comes right after. */
const READ = Promise.resolve();

export class Outlet {
  readonly #response: OutletResponse;
  readonly #source: OutletSource;
  readonly #monotonicMs: () => number;
  #earned = BURST;
  #earnedAtMs: number | null = null;
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** The head is written and waits. */
  #hasHead = false;
  /** It will be looked at once what has been read now is taken apart. */
  #isDue = false;
  #timer: NodeJS.Timeout | null = null;
  #isFull = false;

  constructor(response: OutletResponse, source: OutletSource, monotonicMs: () => number) {
    this.#response = response;
    this.#source = source;
    this.#monotonicMs = monotonicMs;
  }

  /** The head is written. */
  begin(): void {
    this.#hasHead = true;
    this.#due();
  }

  write(part: Buffer): void {
    if (part.length === 0) return;
    this.#held.push(part);
    this.#heldBytes += part.length;
    if (this.#heldBytes >= FULL_BYTES) this.#flush();
    else if (this.#hasHead || this.#timer === null) this.#due();
  }

  /** What is held goes out with the end. */
  end(): void {
    const isWhole = this.#hasHead;
    const rest = this.#take();
    if (rest === null) this.#response.end();
    // As text, a byte a character, it goes out in one piece with the head, which node:http keeps as one.
    else if (isWhole && rest.length <= TEXT_BYTES) this.#response.end(rest.toString('latin1'), 'latin1');
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

  #due(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    // Not a tick: in some processes each costs 2 µs (perf).
    void READ.then(this.#look);
  }

  /** All of one read is here. */
  readonly #look = (): void => {
    this.#isDue = false;
    if (this.#held.length === 0) {
      if (this.#hasHead) this.#wait(HEAD_ALONE_MS);
    } else if (this.#earn() >= 1) {
      this.#flush();
    } else {
      this.#wait(Math.ceil((1 - this.#earned) * MOMENT_MS));
    }
  };

  #earn(): number {
    const nowMs = this.#monotonicMs();
    const forMs = nowMs - (this.#earnedAtMs ?? nowMs);
    this.#earnedAtMs = nowMs;
    this.#earned = Math.min(BURST, this.#earned + forMs / MOMENT_MS);
    return this.#earned;
  }

  #wait(ms: number): void {
    if (this.#timer === null) this.#timer = setTimeout(() => this.#flush(), ms);
  }

  #flush(): void {
    const rest = this.#take();
    if (rest === null) {
      this.#response.flushHeaders();
      return;
    }
    this.#earned = Math.max(0, this.#earn() - 1);
    if (this.#response.write(rest) || this.#isFull) return;
    this.#isFull = true;
    this.#source.pause();
    this.#response.once('drain', () => {
      this.#isFull = false;
      this.#source.resume();
    });
  }

  #take(): Buffer | null {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#hasHead = false;
    const [only] = this.#held;
    if (only === undefined) return null;
    const rest = this.#held.length === 1 ? only : Buffer.concat(this.#held, this.#heldBytes);
    this.#held = [];
    this.#heldBytes = 0;
    return rest;
  }
}
