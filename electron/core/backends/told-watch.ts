import type { Clock } from '../clock.ts';
import { pauses, singleFile } from './cadence.ts';
import type { Ask, Dialect } from './dialects/dialect.ts';
import { sseParser } from './sse.ts';
import type { ToldInput } from './told-state.ts';

/** What we know of the server itself. */
export interface ToldLink {
  readonly status: 'up' | 'down' | 'unknown';
  readonly sinceMs: number | null;
  readonly error: string | null;
  readonly version: string | null;
  readonly listedAtMs: number | null;
}

export const UNLINKED: ToldLink = {
  status: 'unknown',
  sinceMs: null,
  error: null,
  version: null,
  listedAtMs: null,
};

const EVENTS_IN_A_ROW_MS = 25;

export interface ToldWatch {
  start(): void;
  stop(): Promise<void>;
  /** Reads the list anew; resolves when it has been read by a request made after this call. */
  refresh(): Promise<void>;
}

/** Reads a server's list on a cadence, more often where its events say that something has changed, less often while it is away. */
export function toldWatch(options: {
  readonly ask: Ask;
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly timings: {
    readonly pollMs: number;
    readonly firstBackoffMs: number;
    readonly lastBackoffMs: number;
    readonly requestTimeoutMs: number;
  };
  readonly onInput: (input: ToldInput) => void;
  readonly onLink: (link: ToldLink) => void;
}): ToldWatch {
  const { ask, dialect, clock, timings } = options;
  const stopped = new AbortController();
  const { pause, wake } = pauses(stopped.signal);
  let link = UNLINKED;
  /** What answers after an interruption may be another program: it is asked what it is. */
  let isIntroduced = false;
  let running: Promise<void> | null = null;
  let streaming: Promise<void> | null = null;
  let hasNoEvents = false;
  let nextStreamAtMs = 0;
  let soon: NodeJS.Timeout | null = null;

  const setLink = (change: Partial<ToldLink>): void => {
    const status = change.status ?? link.status;
    link = {
      ...link,
      ...change,
      sinceMs: status === link.status ? link.sinceMs : clock.monotonicMs(),
    };
    options.onLink(link);
  };

  const refuse = (message: string, reach: 'gone' | 'down' | 'odd'): void => {
    if (stopped.signal.aborted) return;
    isIntroduced = false;
    dialect.forget();
    if (reach === 'gone') options.onInput({ type: 'gone', atMs: clock.monotonicMs() });
    setLink({ status: reach === 'odd' ? 'unknown' : 'down', error: message });
  };

  const look = async (): Promise<void> => {
    if (stopped.signal.aborted) return;
    if (!isIntroduced) {
      const identity = await dialect.identify(ask);
      if (stopped.signal.aborted) return;
      if (!identity.ok) {
        // Whether it is away or odd is told by the list it would be asked for next.
        const reading = await dialect.read(ask);
        return reading.ok
          ? refuse(identity.error.message, 'odd')
          : refuse(identity.error.message, reading.reach);
      }
      hasNoEvents = false;
      setLink({ version: identity.value.version });
    }
    const reading = await dialect.read(ask);
    if (stopped.signal.aborted) return;
    if (!reading.ok) return refuse(reading.message, reading.reach);
    isIntroduced = true;
    const atMs = clock.monotonicMs();
    options.onInput({ type: 'list', models: reading.models, atMs });
    setLink({ status: 'up', error: null, listedAtMs: atMs });
    follow();
  };

  const looks = singleFile(look);
  const refresh = (): Promise<void> => looks.run();

  /** Once for all that happens in a row. */
  const refreshSoon = (): void => {
    soon ??= setTimeout(() => {
      soon = null;
      void refresh();
    }, EVENTS_IN_A_ROW_MS);
  };

  /** Opens the event stream where there is one and it is not open. */
  const follow = (): void => {
    const { events } = dialect;
    if (events === null || hasNoEvents || streaming !== null || clock.monotonicMs() < nextStreamAtMs) return;
    const parser = sseParser();
    let isOpen = false;
    streaming = ask.http
      .stream(events.path, {
        signal: stopped.signal,
        openTimeoutMs: timings.requestTimeoutMs,
        onOpen(status, contentType) {
          isOpen = status === 200 && contentType.includes('event-stream');
          hasNoEvents = !isOpen && (status === 404 || status === 405 || status === 501 || status === 200);
        },
        onText(text) {
          for (const message of isOpen ? parser.push(text) : []) {
            // A change of what is in flight is in no list; the next reading takes it in.
            if (events.onMessage(message.data) !== null) refreshSoon();
          }
        },
      })
      .then(() => {
        events.onClosed();
        streaming = null;
        nextStreamAtMs = clock.monotonicMs() + timings.lastBackoffMs;
      });
  };

  const run = async (): Promise<void> => {
    let backoffMs = timings.firstBackoffMs;
    while (!stopped.signal.aborted) {
      await refresh();
      if (link.status === 'up') {
        backoffMs = timings.firstBackoffMs;
        await pause(timings.pollMs);
      } else {
        await pause(backoffMs);
        backoffMs = Math.min(backoffMs * 2, timings.lastBackoffMs);
      }
    }
  };

  return {
    start() {
      running ??= run();
    },
    async stop() {
      stopped.abort();
      wake();
      if (soon !== null) clearTimeout(soon);
      await running;
      await looks.settled();
      await streaming;
    },
    async refresh() {
      if (stopped.signal.aborted) return;
      await refresh();
    },
  };
}
