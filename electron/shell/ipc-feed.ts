/**
 * Pushes the window what changes: the present state first, then at most one snapshot per interval,
 * always the newest; each event as it comes. JSON is made only while a page watches.
 */
import type { LinkState, PushName, PushTypes } from '../../shared/ipc-schema.ts';
import type { LandlordState } from '../../shared/state.ts';
import type { RuntimeApi } from '../core/runtime-api.ts';

export interface FeedOptions {
  readonly api: Pick<RuntimeApi, 'state' | 'onState' | 'onEvent'>;
  readonly link: () => LinkState;
  readonly onLink: (listener: (link: LinkState) => void) => () => void;
  readonly send: (name: PushName, json: string) => void;
  /** Least time between two snapshots. */
  readonly intervalMs: number;
}

/** Returns its own undo. */
export function startFeed(options: FeedOptions): () => void {
  const { api } = options;
  let timer: NodeJS.Timeout | undefined;
  let waiting: LandlordState | null = null;
  const push = <Name extends PushName>(name: Name, value: PushTypes[Name]): void =>
    options.send(name, JSON.stringify(value));
  const flush = (): void => {
    if (waiting === null || timer !== undefined) return;
    push('state', waiting);
    waiting = null;
    timer = setTimeout(() => {
      timer = undefined;
      flush();
    }, options.intervalMs);
    timer.unref();
  };
  const showState = (state: LandlordState): void => {
    waiting = state;
    flush();
  };
  const showLink = (link: LinkState): void => {
    // The state first: a page that hears of a link while it has no state asks for all of it anew.
    if (link.kind !== 'lost') showState(api.state());
    // What was last known of a lost runtime is on the page already, and must not pass for news.
    else waiting = null;
    push('link', link);
  };
  const undo = [
    api.onState((state) => {
      if (options.link().kind !== 'lost') showState(state);
    }),
    api.onEvent((event) => push('event', event)),
    options.onLink(showLink),
  ];
  showLink(options.link());
  return () => {
    clearTimeout(timer);
    for (const end of undo) end();
  };
}
