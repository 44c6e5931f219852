/** U+FFFD, which a cut UTF-8 sequence shows as. */
const REPLACEMENT = '\ufffd';
/** A character has at most four bytes, and a token at least one. */
const MOST_HELD = 4;

/** Text of `tokens`, where `before` came just before them. */
export type Detokenize = (tokens: readonly number[], before: readonly number[]) => string;

/** Turns tokens into text, whole characters at a time. */
export class TextPieces {
  readonly #detokenize: Detokenize;
  readonly #told: number[];
  #held: number[];

  /** `untold`: tokens whose text is still to come; `before`: those before them, for the space between words. */
  constructor(detokenize: Detokenize, before: readonly number[], untold: readonly number[]) {
    this.#detokenize = detokenize;
    this.#told = [...before];
    this.#held = [...untold];
  }

  get held(): readonly number[] {
    return this.#held;
  }

  /** What can be said now that this token has come; may be empty. */
  take(token: number): string {
    this.#held.push(token);
    const text = this.#detokenize(this.#held, this.#told);
    // What is still no character after four tokens never becomes one.
    if (text.endsWith(REPLACEMENT) && this.#held.length < MOST_HELD) return '';
    this.#told.push(...this.#held);
    if (this.#told.length > 2 * MOST_HELD) this.#told.splice(0, this.#told.length - 2 * MOST_HELD);
    this.#held = [];
    return text;
  }
}
