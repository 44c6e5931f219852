import type { ServerResponse } from 'node:http';

/**
 * One server-sent event stream (WHATWG HTML, §9.2) to a reader that may be slow.
 *
 *   open ──write fills the socket──► blocked ──drain──► open
 *     └──────────── reader leaves, or stays blocked for 60 s ──────────► closed
 *
 * A blocked stream accepts nothing: what happens meanwhile is not buffered here, its owner sends what
 * is still worth sending on `onOpen`. So a stopped reader costs one socket buffer, however long.
 */
export interface SseStream {
  /** False when the frame was not taken: the stream is blocked or closed. */
  send(frame: string): boolean;
  readonly state: 'open' | 'blocked' | 'closed';
  /** Called each time a blocked stream takes frames again. */
  onOpen(listener: () => void): void;
  /** Resolves once the stream takes frames (true) or is closed (false). */
  whenOpen(): Promise<boolean>;
  onClose(listener: () => void): void;
  close(): void;
}

export interface SseOptions {
  /** A comment goes out this often, so that proxies and readers see that the stream lives. */
  readonly keepAliveMs: number;
  /** A reader that takes nothing for this long is cut off. */
  readonly blockedLimitMs: number;
}

/** One frame; `data` must be one line, as JSON is. */
export function sseFrame(frame: { event?: string; id?: number; data: string }): string {
  const event = frame.event === undefined ? '' : `event: ${frame.event}\n`;
  const id = frame.id === undefined ? '' : `id: ${frame.id}\n`;
  return `${event}${id}data: ${frame.data}\n\n`;
}

export function sseComment(text: string): string {
  return `: ${text.replaceAll(/[\r\n]+/g, ' ')}\n\n`;
}

/** Takes the response over: nothing else may write to it afterwards. */
export function openSseStream(
  response: ServerResponse,
  headers: Readonly<Record<string, string>>,
  options: SseOptions,
): SseStream {
  const onOpen: (() => void)[] = [];
  const onClose: (() => void)[] = [];
  let state: SseStream['state'] = 'open';
  let blockedTimer: NodeJS.Timeout | undefined;
  let waiters: ((open: boolean) => void)[] = [];
  const wake = (open: boolean): void => {
    const woken = waiters;
    waiters = [];
    for (const waiter of woken) waiter(open);
  };

  const close = (): void => {
    if (state === 'closed') return;
    const blocked = state === 'blocked';
    state = 'closed';
    clearInterval(keepAlive);
    clearTimeout(blockedTimer);
    for (const listener of onClose) listener();
    wake(false);
    // A reader that takes nothing would never let `end` finish.
    if (blocked) response.destroy();
    else response.end();
  };
  const send = (frame: string): boolean => {
    if (state !== 'open') return false;
    if (!response.write(frame)) {
      state = 'blocked';
      blockedTimer = setTimeout(close, options.blockedLimitMs);
      blockedTimer.unref();
    }
    return true;
  };
  const keepAlive = setInterval(() => send(sseComment('alive')), options.keepAliveMs);
  keepAlive.unref();

  response.on('drain', () => {
    if (state !== 'blocked') return;
    clearTimeout(blockedTimer);
    state = 'open';
    for (const listener of onOpen) {
      if (state === 'open') listener();
    }
    wake(true);
  });
  response.on('close', close);
  response.on('error', close);
  response.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  // The first bytes tell a reader that it is connected, before anything has happened.
  send('retry: 2000\n\n');
  return {
    send,
    get state() {
      return state;
    },
    onOpen: (listener) => void onOpen.push(listener),
    onClose: (listener) => void onClose.push(listener),
    whenOpen() {
      if (state !== 'blocked') return Promise.resolve(state === 'open');
      return new Promise((resolve) => waiters.push(resolve));
    },
    close,
  };
}
