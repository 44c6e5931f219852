/** What routing needs of a JSON body, found while it streams in and without parsing the rest. */
export interface JsonHead {
  /** The value of the top-level `model`, and where its token lies in the body, quotes included. */
  readonly model: FoundString | null;
  readonly user: string | null;
  /** null: not said. */
  readonly stream: boolean | null;
}

export interface FoundString {
  readonly value: string;
  /** Byte offsets in the body, the end exclusive. */
  readonly from: number;
  readonly to: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** No key or name that matters is longer; a prompt in a top-level string is passed over, not kept. */
const LONGEST_TEXT = 4096;
const SMALL_BYTES = 4096;

/**
 * Watches the top level of one JSON object go by, chunk by chunk. Strings are skipped at the speed of
 * `indexOf`, so an image of 60 MB in base64 costs one pass. It judges nothing: what is not JSON is the
 * backend's to refuse.
 */
export class JsonHeadScan {
  #model: FoundString | null = null;
  #user: string | null = null;
  #stream: boolean | null = null;
  #offset = 0;
  #depth = 0;
  #done = false;
  #inString = false;
  #escaped = false;
  #stringFrom = 0;
  /** Of the string that goes by, a byte a character; null: it does not matter. */
  #text: string | null = null;
  /** Of a small chunk while it goes by, a byte a character: its keys are cut from it, and not each asked for. */
  #small: string | null = null;
  #key: string | null = null;
  #expectsKey = false;
  #scalar = '';

  get head(): JsonHead {
    return { model: this.#model, user: this.#user, stream: this.#stream };
  }

  /** Nothing more is to be learned. */
  get done(): boolean {
    return this.#done;
  }

  feed(chunk: Buffer): void {
    this.#small = chunk.length <= SMALL_BYTES ? chunk.toString('latin1') : null;
    let at = 0;
    let backslashAt = -1;
    while (at < chunk.length && !this.#done) {
      if (!this.#inString) {
        this.#structure(chunk[at] ?? 0, this.#offset + at);
        at += 1;
        continue;
      }
      if (this.#escaped) {
        this.#escaped = false;
        this.#keep(chunk, at, at + 1);
        at += 1;
        continue;
      }
      let to = nearEnd(chunk, at);
      if (to < 0) {
        const quoteAt = endOf(chunk.indexOf(QUOTE, at), chunk);
        if (backslashAt < at) backslashAt = endOf(chunk.indexOf(BACKSLASH, at), chunk);
        to = Math.min(quoteAt, backslashAt);
      }
      this.#keep(chunk, at, to);
      at = to;
      if (at >= chunk.length) break;
      if (chunk[at] === BACKSLASH) {
        this.#escaped = true;
        this.#keep(chunk, at, at + 1);
      } else {
        this.#endString(this.#offset + at + 1);
      }
      at += 1;
    }
    this.#offset += chunk.length;
    this.#small = null;
  }

  #structure(byte: number, offset: number): void {
    const isSpace = byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
    if (this.#depth === 0) {
      // A byte order mark may come first (RFC 8259 §8.1 lets a reader ignore it).
      if (isSpace || byte === 0xef || byte === 0xbb || byte === 0xbf) return;
      if (byte !== 0x7b) {
        this.#done = true;
        return;
      }
      this.#depth = 1;
      this.#expectsKey = true;
      return;
    }
    switch (byte) {
      case QUOTE:
        this.#inString = true;
        this.#stringFrom = offset;
        this.#text = this.#depth === 1 && this.#matters() ? '' : null;
        return;
      case 0x7b:
      case 0x5b:
        this.#depth += 1;
        return;
      case 0x7d:
      case 0x5d:
        if (this.#depth === 1) this.#endValue();
        this.#depth -= 1;
        if (this.#depth === 0) this.#done = true;
        return;
      case 0x3a:
        if (this.#depth === 1) this.#expectsKey = false;
        return;
      case 0x2c:
        if (this.#depth === 1) this.#endValue();
        return;
      default:
        if (this.#depth === 1 && !isSpace && this.#key === 'stream' && this.#scalar.length < 8)
          this.#scalar += String.fromCharCode(byte);
    }
  }

  /** A key, or the value of one that is looked for. */
  #matters(): boolean {
    return this.#expectsKey || this.#key === 'model' || this.#key === 'user';
  }

  #keep(chunk: Buffer, from: number, to: number): void {
    if (this.#text === null || to <= from) return;
    if (this.#text.length + to - from > LONGEST_TEXT) this.#text = null;
    // A value is kept for long, and must not hold on to the text that it would be a slice of.
    else if (this.#small !== null && this.#expectsKey) this.#text += this.#small.slice(from, to);
    else this.#text += chunk.toString('latin1', from, to);
  }

  #endString(to: number): void {
    this.#inString = false;
    const kept = this.#text;
    this.#text = null;
    if (this.#depth !== 1) return;
    if (this.#expectsKey) {
      // Those that matter are ASCII: only a backslash may stand for a part of them.
      this.#key = kept?.includes('\\') === true ? unquoted(kept) : kept;
      return;
    }
    const text = kept === null ? null : unquoted(kept);
    if (text === null) return;
    // A repeated key: the last one counts, as with JSON.parse.
    if (this.#key === 'model') this.#model = { value: text, from: this.#stringFrom, to };
    if (this.#key === 'user') this.#user = text;
  }

  #endValue(): void {
    if (this.#key === 'stream' && (this.#scalar === 'true' || this.#scalar === 'false'))
      this.#stream = this.#scalar === 'true';
    this.#scalar = '';
    this.#key = null;
    this.#expectsKey = true;
  }
}

/** Most strings are short, and `indexOf` is a call out of JavaScript that costs more than their bytes. */
const NEAR_BYTES = 64;

/** Of the next quote or backslash nearby; -1: there is none. */
function nearEnd(chunk: Buffer, from: number): number {
  const to = Math.min(chunk.length, from + NEAR_BYTES);
  for (let at = from; at < to; at += 1) {
    const byte = chunk[at];
    if (byte === QUOTE || byte === BACKSLASH) return at;
  }
  return -1;
}

function endOf(index: number, chunk: Buffer): number {
  return index < 0 ? chunk.length : index;
}

/** Bytes of UTF-8 as JSON has them between quotes. */
function unquoted(bytes: string): string | null {
  const text = /[\x80-\xff]/.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes;
  if (!text.includes('\\')) return text;
  try {
    const value: unknown = JSON.parse(`"${text}"`);
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
}
