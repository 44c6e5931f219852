import type { ServerResponse } from 'node:http';
import { headerText } from './headers.ts';

/**
 * Keeps a stream that has to wait alive: after a while its head goes out, and a comment from time to
 * time, so that neither the client nor a proxy before it gives up (WHATWG HTML §9.2: a line that
 * begins with a colon is ignored).
 */
export interface Waiting {
  /** Starts the clock; harmless a second time. */
  begin(why: string): void;
  /** Ends the comments. True when the head has gone out. */
  end(): boolean;
}

export interface WaitingOptions {
  readonly response: ServerResponse;
  /** False: nothing can be sent before the answer. */
  readonly isStream: boolean;
  readonly own: () => Readonly<Record<string, string>>;
  readonly firstMs: number;
  readonly everyMs: number;
}

export function createWaiting(options: WaitingOptions): Waiting {
  const { response } = options;
  let timer: NodeJS.Timeout | null = null;
  let begun = false;
  let why = '';
  const comment = (): void => {
    if (response.destroyed || response.writableEnded) return;
    if (!begun) {
      begun = true;
      const own = Object.entries(options.own()).flatMap(([name, value]) => [name, headerText(value)]);
      response.writeHead(200, [
        'content-type',
        'text/event-stream; charset=utf-8',
        'cache-control',
        'no-cache',
        ...own,
      ]);
    }
    // A client that takes nothing needs no more of them.
    if (!response.writableNeedDrain) response.write(`: ${headerText(why)}\n\n`);
    timer = setTimeout(comment, options.everyMs);
  };
  return {
    begin(reason) {
      why = reason;
      if (!options.isStream || timer !== null) return;
      timer = setTimeout(comment, options.firstMs);
    },
    end() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      return begun;
    },
  };
}
