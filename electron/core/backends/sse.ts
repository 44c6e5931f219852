/** One message of a text/event-stream (WHATWG HTML, §9.2 "Server-sent events"). */
export interface SseMessage {
  /** `message` where the stream names none. */
  readonly event: string;
  readonly data: string;
}

/** Keeps what is left of a line between chunks; hands out messages as their blank line comes. */
export interface SseParser {
  push(chunk: string): readonly SseMessage[];
}

/** `maxChars` bounds one message: a stream that never ends a line is dropped, not kept. Default 1 Mi. */
export function sseParser(maxChars: number = 1 << 20): SseParser {
  let rest = '';
  let event = '';
  let data: string[] = [];
  let dataChars = 0;
  let afterCarriageReturn = false;

  const take = (line: string): SseMessage | null => {
    if (line === '') {
      const message = data.length === 0 ? null : { event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      dataChars = 0;
      return message;
    }
    const colon = line.indexOf(':');
    // A line that begins with a colon is a comment, used to keep the connection open.
    if (colon === 0) return null;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'event') event = value;
    else if (name === 'data' && dataChars + value.length < maxChars) {
      data.push(value);
      // With its line end: empty lines without end would pile up too.
      dataChars += value.length + 1;
    }
    return null;
  };

  return {
    push(chunk) {
      const messages: SseMessage[] = [];
      // A CR LF cut between two chunks is one line end.
      let text = rest + (afterCarriageReturn && chunk.startsWith('\n') ? chunk.slice(1) : chunk);
      if (chunk !== '') afterCarriageReturn = chunk.endsWith('\r');
      for (;;) {
        const end = /\r\n|\n|\r/.exec(text);
        if (end === null) break;
        const message = take(text.slice(0, end.index));
        if (message !== null) messages.push(message);
        text = text.slice(end.index + end[0].length);
      }
      rest = text.length > maxChars ? '' : text;
      return messages;
    },
  };
}
