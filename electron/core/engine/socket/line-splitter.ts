/** A whole line without its end, or the news that one was too long and is dropped. */
export type Line = { readonly kind: 'line'; readonly text: string } | { readonly kind: 'too_long' };

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/**
 * Cuts a byte stream into lines; `\r\n` is as good as `\n`. A line over the limit is told once, as soon
 * as it is over, and the rest of it is dropped: what follows it is read as ever.
 */
export class LineSplitter {
  readonly #limitBytes: number;
  #parts: Buffer[] = [];
  #heldBytes = 0;
  #dropping = false;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  push(chunk: Buffer): readonly Line[] {
    const lines: Line[] = [];
    let from = 0;
    while (from < chunk.length) {
      const end = chunk.indexOf(NEWLINE, from);
      this.#take(chunk.subarray(from, end < 0 ? chunk.length : end), lines);
      if (end < 0) break;
      if (this.#dropping) this.#dropping = false;
      else lines.push(this.#line());
      from = end + 1;
    }
    return lines;
  }

  /** What came after the last line's end, at the end of the stream. */
  end(): readonly Line[] {
    if (this.#heldBytes === 0) return [];
    return [this.#line()];
  }

  #take(part: Buffer, lines: Line[]): void {
    if (this.#dropping || part.length === 0) return;
    if (this.#heldBytes + part.length > this.#limitBytes) {
      this.#parts = [];
      this.#heldBytes = 0;
      this.#dropping = true;
      lines.push({ kind: 'too_long' });
      return;
    }
    // A copy: the chunk's memory is the socket's, and a slow line would keep all of it.
    this.#parts.push(Buffer.from(part));
    this.#heldBytes += part.length;
  }

  #line(): Line {
    const bytes = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#heldBytes = 0;
    const length = bytes.at(-1) === RETURN ? bytes.length - 1 : bytes.length;
    return { kind: 'line', text: bytes.toString('utf8', 0, length) };
  }
}
