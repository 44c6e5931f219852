import type { FoundString, JsonHead } from './json-head.ts';

const LONGEST_VALUE = 512;
const LONGEST_HEADERS = 8192;
const NOTHING: Buffer = Buffer.alloc(0);
const CRLF = '\r\n';

/**
 * Watches a form with files (RFC 7578) go by, as audio and image uploads have it, for the fields that
 * routing needs. Clients put the file first as often as not, so no more of it is held than a boundary
 * may be cut in two.
 *
 *   between ──boundary──► headers ──a field that is wanted──► value ─┐
 *      ▲                     └──a file, another field──┐             │
 *      └───────────────────────────────────────────────┴─────────────┘
 */
export class FormHeadScan {
  readonly #delimiter: Buffer | null;
  /** What has come and is not passed yet, and where it begins in the body. The first boundary needs no line before it. */
  #window: Buffer = Buffer.from(CRLF);
  #from = -CRLF.length;
  #state: 'between' | 'headers' | 'value' | 'done' = 'between';
  #field = '';
  #model: FoundString | null = null;
  #user: string | null = null;
  #stream: boolean | null = null;

  constructor(contentType: string) {
    const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType);
    const marker = boundary?.[1] ?? boundary?.[2];
    this.#delimiter = marker === undefined ? null : Buffer.from(`${CRLF}--${marker}`, 'latin1');
    if (marker === undefined) this.#state = 'done';
  }

  get head(): JsonHead {
    return { model: this.#model, user: this.#user, stream: this.#stream };
  }

  get done(): boolean {
    return this.#state === 'done';
  }

  feed(chunk: Buffer): void {
    if (this.#state === 'done') return;
    this.#window = Buffer.concat([this.#window, chunk]);
    while (this.#step());
  }

  /** False where more has to come first. */
  #step(): boolean {
    const delimiter = this.#delimiter ?? NOTHING;
    switch (this.#state) {
      case 'between': {
        const at = this.#window.indexOf(delimiter);
        if (at < 0) {
          this.#pass(Math.max(0, this.#window.length - delimiter.length + 1));
          return false;
        }
        this.#pass(at + delimiter.length);
        this.#state = 'headers';
        return true;
      }
      case 'headers': {
        if (this.#window.length < 2) return false;
        // Two dashes behind the boundary: that was the last one.
        if (this.#window.toString('latin1', 0, 2) === '--') {
          this.#window = NOTHING;
          this.#state = 'done';
          return false;
        }
        const end = this.#window.indexOf(CRLF + CRLF);
        if (end < 0 && this.#window.length <= LONGEST_HEADERS) return false;
        const name = end < 0 ? null : fieldName(this.#window.toString('latin1', 0, end));
        // The line's end stays: a part may be empty, with its boundary right behind.
        this.#pass(end < 0 ? 1 : end + CRLF.length);
        const wanted = name === 'model' || name === 'user' || name === 'stream';
        this.#field = wanted ? name : '';
        if (wanted) this.#pass(CRLF.length);
        this.#state = wanted ? 'value' : 'between';
        return true;
      }
      case 'value': {
        const end = this.#window.indexOf(delimiter);
        if (end < 0 && this.#window.length <= LONGEST_VALUE + delimiter.length) return false;
        if (end >= 0 && end <= LONGEST_VALUE) this.#take(this.#window.toString('utf8', 0, end), end);
        this.#state = 'between';
        return true;
      }
      case 'done':
        return false;
    }
  }

  #take(value: string, length: number): void {
    if (this.#field === 'model') this.#model = { value, from: this.#from, to: this.#from + length };
    if (this.#field === 'user') this.#user = value;
    if (this.#field === 'stream') this.#stream = value === 'true';
  }

  #pass(bytes: number): void {
    this.#window = this.#window.subarray(bytes);
    this.#from += bytes;
  }
}

/** The name of a plain field; null for a file, whose own name may hold anything. */
function fieldName(headers: string): string | null {
  const line = /^content-disposition:[ \t]*form-data([^\r\n]*)/im.exec(headers)?.[1] ?? '';
  let name: string | null = null;
  for (const [, key = '', quoted, plain] of line.matchAll(
    /;[ \t]*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/g,
  )) {
    if (/^filename\*?$/i.test(key)) return null;
    if (key.toLowerCase() === 'name') name = quoted ?? plain ?? null;
  }
  return name;
}
