import type { Clock } from '../clock.ts';
import { pauses, singleFile } from './cadence.ts';
import { type HttpAnswer, type HttpClient, objectionTo, saidBy } from './http.ts';
import { DEFAULT_STOP_TIMEOUT_MS, type ListedModel, parseModelsList } from './models-list.ts';
import { parseRouterEvent } from './router-events.ts';
import type { RouterInput } from './router-state.ts';
import { parseProps, type ServerProps } from './server-props.ts';
import { sseParser } from './sse.ts';

/** What we know of the server itself. */
export interface Link {
  readonly status: 'up' | 'down' | 'unknown';
  readonly sinceMs: number | null;
  readonly error: string | null;
  readonly props: ServerProps | null;
  /**
   * Unless they are open, the list is read about once a second instead. `unsupported`: an older build;
   * `failing`: they should open and do not.
   */
  readonly events: 'open' | 'closed' | 'unsupported' | 'failing';
  /** When the models list was last read; null: never. */
  readonly listedAtMs: number | null;
}

export const NO_LINK: Link = {
  status: 'unknown',
  sinceMs: null,
  error: null,
  props: null,
  events: 'closed',
  listedAtMs: null,
};

export interface WatchTimings {
  /** Slow check of what the events said. */
  readonly resyncMs: number;
  /** Reading the list, or a plain server's state, where there are no events. */
  readonly pollMs: number;
  readonly firstBackoffMs: number;
  readonly lastBackoffMs: number;
  readonly requestTimeoutMs: number;
}

export interface RouterWatch {
  start(): void;
  stop(): Promise<void>;
  /** Reads the list anew; resolves when it has been read by a request made after this call. */
  refresh(): Promise<void>;
}

/**
 * Keeps state in step with a router or a plain server: events where there are any, else the list.
 * The stream is opened first and the list read after, so that nothing falls between them. Only
 * `/props`, `/models` and `/models/sse` without a model are asked, none of which touches a model.
 */
export function routerWatch(options: {
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly timings: WatchTimings;
  readonly onInput: (input: RouterInput) => void;
  readonly onLink: (link: Link) => void;
}): RouterWatch {
  const { http, clock, timings } = options;
  const stopped = new AbortController();
  const { pause, wake } = pauses(stopped.signal);
  let link = NO_LINK;
  let running: Promise<void> | null = null;
  /** While it starts, a plain server does not say what it is; it is most likely what it was. */
  let lastSingle: ServerProps | null = null;
  /** What answers after an interruption may be another build, or another program: it is asked what it is. */
  let isIntroduced = false;

  const setLink = (change: Partial<Link>): void => {
    const status = change.status ?? link.status;
    const sinceMs = status === link.status ? link.sinceMs : clock.monotonicMs();
    link = { ...link, ...change, sinceMs };
    options.onLink(link);
  };

  /** Waits for as long, and meanwhile reads the list of a router that sends no events. */
  const poll = async (ms: number): Promise<void> => {
    const endAtMs = clock.monotonicMs() + ms;
    for (let leftMs = ms; leftMs > 0; leftMs = endAtMs - clock.monotonicMs()) {
      await pause(Math.min(leftMs, timings.pollMs));
      if (stopped.signal.aborted || link.status !== 'up' || leftMs <= timings.pollMs) return;
      await refresh();
    }
  };

  /** Takes an unusable answer for what it is worth. */
  const refuse = (answer: HttpAnswer, path: string): void => {
    if (stopped.signal.aborted) return;
    isIntroduced = false;
    const error = objectionTo(answer, http.baseUrl, path);
    const isGone = answer.kind === 'failed' && answer.reason === 'refused';
    const isDown = answer.kind === 'failed' && answer.reason !== 'timed_out';
    if (isGone) options.onInput({ type: 'gone', atMs: clock.monotonicMs() });
    const events = link.events === 'open' ? 'open' : 'closed';
    setLink({ status: isDown ? 'down' : 'unknown', error, events });
  };

  const readProps = async (): Promise<ServerProps | 'loading' | null> => {
    const answer = await http.get('/props', ask());
    if (answer.kind === 'answer' && answer.status === 503 && saidBy(answer) !== null) return 'loading';
    if (objectionTo(answer, http.baseUrl, '/props') !== null) {
      refuse(answer, '/props');
      return null;
    }
    const props = parseProps(answer.kind === 'answer' ? answer.json : undefined);
    if (props === null) {
      setLink({
        status: 'unknown',
        error: `${http.baseUrl}/props does not answer as llama.cpp does: another program may have this port; correct the backend's url or kind.`,
      });
    }
    return props;
  };

  const readList = async (): Promise<boolean> => {
    const askedAtMs = clock.monotonicMs();
    const answer = await http.get('/models', ask());
    const parsed =
      objectionTo(answer, http.baseUrl, '/models') === null && answer.kind === 'answer'
        ? parseModelsList(answer.json)
        : null;
    if (parsed === null) {
      refuse(answer, '/models');
      return false;
    }
    if (!parsed.ok) {
      setLink({ status: 'unknown', error: `${http.baseUrl}: ${parsed.error.message}` });
      return false;
    }
    const atMs = clock.monotonicMs();
    options.onInput({ type: 'list', models: parsed.value, askedAtMs, atMs });
    setLink({ status: 'up', error: null, listedAtMs: atMs });
    return true;
  };

  /** A plain server has no list with states: `/props` is its list of one, and is exempt from its sleep timer. */
  const takeSingle = (props: ServerProps | 'loading'): void => {
    const atMs = clock.monotonicMs();
    if (props !== 'loading') lastSingle = props;
    const known = props === 'loading' ? lastSingle : props;
    const model = known === null ? null : singleModel(known, props === 'loading');
    if (model !== null) options.onInput({ type: 'list', models: [model], askedAtMs: atMs, atMs });
    setLink({ status: 'up', error: null, props: known, listedAtMs: atMs });
  };

  const look = async (): Promise<void> => {
    if (!isIntroduced) {
      const props = await readProps();
      if (props === null || stopped.signal.aborted) return;
      if (props === 'loading' || props.role === 'single') {
        takeSingle(props);
        return;
      }
      setLink({ props });
    }
    isIntroduced = await readList();
  };

  const looks = singleFile(look);
  const refresh = (): Promise<void> => looks.run();

  const follow = async (): Promise<void> => {
    const parser = sseParser();
    const resync = setInterval(() => void refresh(), timings.resyncMs);
    // Until it has opened; while nothing happens there, nothing here wakes for it.
    const unheard = setInterval(() => void refresh(), timings.pollMs);
    try {
      await http.stream('/models/sse', {
        signal: stopped.signal,
        openTimeoutMs: timings.requestTimeoutMs,
        onOpen: (status, contentType) => {
          if (status === 200 && contentType.includes('event-stream')) {
            clearInterval(unheard);
            setLink({ events: 'open' });
            void refresh();
          } else if (status === 404 || status === 405 || status === 501 || status === 200) {
            setLink({ events: 'unsupported' });
          } else setLink({ events: 'failing' });
        },
        onText: (text) => {
          for (const message of link.events === 'open' ? parser.push(text) : []) take(message.data);
        },
      });
    } finally {
      clearInterval(resync);
      clearInterval(unheard);
      isIntroduced = false;
      if (link.events === 'open') setLink({ events: 'closed' });
      else if (link.events === 'closed' && link.status === 'up') setLink({ events: 'failing' });
    }
  };

  const take = (data: string): void => {
    const event = parseRouterEvent(data);
    if (event === null) return;
    if (event.type === 'reload') void refresh();
    else options.onInput({ ...event, atMs: clock.monotonicMs() });
  };

  const run = async (): Promise<void> => {
    let backoffMs = timings.firstBackoffMs;
    while (!stopped.signal.aborted) {
      await refresh();
      if (stopped.signal.aborted) return;
      if (link.status !== 'up') {
        await pause(backoffMs);
        backoffMs = Math.min(backoffMs * 2, timings.lastBackoffMs);
        continue;
      }
      const isRouter = link.props?.role === 'router';
      if (!isRouter || link.events === 'unsupported') {
        backoffMs = timings.firstBackoffMs;
        await pause(timings.pollMs);
        continue;
      }
      const openedAtMs = clock.monotonicMs();
      await follow();
      const isLasting = clock.monotonicMs() - openedAtMs > timings.lastBackoffMs;
      if (isLasting) backoffMs = timings.firstBackoffMs;
      else {
        await poll(backoffMs);
        backoffMs = Math.min(backoffMs * 2, timings.lastBackoffMs);
      }
    }
  };

  function ask(): { timeoutMs: number; signal: AbortSignal } {
    return { timeoutMs: timings.requestTimeoutMs, signal: stopped.signal };
  }

  return {
    start() {
      running ??= run();
    },
    async stop() {
      stopped.abort();
      wake();
      await running;
      await looks.settled();
    },
    async refresh() {
      if (stopped.signal.aborted) return;
      await refresh();
      // Whoever waits for a lost server need not wait out the pause.
      if (link.status === 'up') wake();
    },
  };
}

function singleModel(props: ServerProps, isLoading: boolean): ListedModel | null {
  if (props.modelName === null) return null;
  const status = isLoading ? 'loading' : props.isSleeping === true ? 'sleeping' : 'loaded';
  return {
    name: props.modelName,
    aliases: props.modelAlias === null || props.modelAlias === props.modelName ? [] : [props.modelAlias],
    status,
    statusText: status,
    failed: false,
    exitCode: null,
    args: null,
    port: null,
    modelPath: props.modelPath,
    contextTokens: props.contextTokens,
    stopTimeoutMs: DEFAULT_STOP_TIMEOUT_MS,
    tellsMetrics: props.tellsMetrics === true,
  };
}
