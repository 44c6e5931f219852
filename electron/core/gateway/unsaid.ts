/**
 * Takes a key of ours out of what a server answers with it: some say it back where it is wrong, and the
 * client, which never had it, is not to learn it that way. Byte for byte, so that lengths stay what they
 * were announced as.
 */
export interface Unsaid {
  headers(raw: readonly string[]): string[];
  /** For one body. */
  body(): Hiding;
}

export interface Hiding {
  /** What may go on now; the end of a chunk may be the beginning of the key, and is kept back. */
  write(chunk: Buffer): Buffer;
  /** What was kept back. */
  end(): Buffer;
}

/** As short as this it is a word such as `none`, and no key. */
const LEAST_CHARS = 8;

/** null: there is nothing to hide. */
export function unsaidOf(key: string | null): Unsaid | null {
  if (key === null || key.length < LEAST_CHARS) return null;
  const sought = Buffer.from(key);
  const stars = Buffer.alloc(sought.length, '*');
  return {
    headers: (raw) => raw.map((part) => part.replaceAll(key, stars.toString())),
    body() {
      let kept = Buffer.alloc(0);
      return {
        write(chunk) {
          const text = Buffer.concat([kept, chunk]);
          for (let at = text.indexOf(sought); at >= 0; at = text.indexOf(sought, at + sought.length))
            stars.copy(text, at);
          const whole = Math.max(0, text.length - sought.length + 1);
          kept = text.subarray(whole);
          return text.subarray(0, whole);
        },
        end: () => kept,
      };
    },
  };
}
