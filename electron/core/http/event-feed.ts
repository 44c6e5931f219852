import type { LandlordEvent } from '../../../shared/events.ts';
import type { RuntimeApi } from '../runtime-api.ts';
import { type SseStream, sseComment, sseFrame } from './sse.ts';

/**
 * Sends every event after `afterId`, in order and once, however slow the reader is.
 *
 *   replaying ──log read to its end──► live ──a frame did not fit──► waiting ──stream opens──► replaying
 *
 * Nothing is queued for a slow reader: the log keeps the events, and the feed reads on from the last
 * one that was sent.
 */
export interface EventFeedOptions {
  readonly api: Pick<RuntimeApi, 'events' | 'onEvent'>;
  readonly stream: SseStream;
  /** Last-Event-ID; null: from now on. */
  readonly afterId: number | null;
  /** The SSE event name; absent: none, so that `onmessage` gets it. */
  readonly name?: string;
}

/** Events read from the log at a time. */
const PAGE = 500;

export function startEventFeed(options: EventFeedOptions): void {
  const { api, stream } = options;
  let mode: 'replaying' | 'live' | 'waiting' = 'live';
  let sentId = options.afterId;
  /** The newest event that was announced; the log is read until it is sent. */
  let newest: LandlordEvent | null = null;

  const send = (event: LandlordEvent): boolean => {
    if (sentId !== null && event.id <= sentId) return true;
    const frame = { id: event.id, data: JSON.stringify(event) };
    const sent = stream.send(
      sseFrame(options.name === undefined ? frame : { event: options.name, ...frame }),
    );
    if (sent) sentId = event.id;
    return sent;
  };
  const replay = async (): Promise<void> => {
    if (sentId === null || mode === 'replaying') return;
    mode = 'replaying';
    let target: LandlordEvent | null;
    let outcome: ReplayOutcome;
    do {
      target = newest;
      outcome = await sendAfter(api, sentId, send);
      if (stream.state === 'closed') return;
      // Events that were announced during the read may not have been in it.
    } while (outcome.done && newest !== target);
    if (outcome.trouble !== null) stream.send(sseComment(outcome.trouble));
    mode = outcome.done ? 'live' : 'waiting';
    if (mode === 'live' && newest !== null && !send(newest)) mode = 'waiting';
    if (mode === 'waiting' && stream.state === 'open') void replay();
  };
  const undo = api.onEvent((event) => {
    newest = event;
    sentId ??= event.id - 1;
    if (mode !== 'live') return;
    if (event.id > sentId + 1) void replay();
    else if (!send(event)) mode = 'waiting';
  });
  stream.onOpen(() => {
    if (mode === 'waiting') void replay();
  });
  stream.onClose(undo);
  void replay();
}

interface ReplayOutcome {
  /** False when the stream took no more. */
  readonly done: boolean;
  readonly trouble: string | null;
}

/**
 * Reads the log forward from `afterId` and hands each event to `send` until that refuses. The log
 * answers with the newest of a range, so the range is kept no wider than a page; over gaps (retention
 * removed what was there) it grows.
 */
async function sendAfter(
  api: Pick<RuntimeApi, 'events'>,
  afterId: number,
  send: (event: LandlordEvent) => boolean,
): Promise<ReplayOutcome> {
  const last = await api.events({ afterId, limit: 1 });
  if (!last.ok) return { done: true, trouble: last.error.message };
  const endId = last.value.at(-1)?.id ?? afterId;
  let from = afterId;
  let width = PAGE;
  while (from < endId) {
    const page = await api.events({ afterId: from, beforeId: from + width + 1, limit: PAGE });
    if (!page.ok) return { done: true, trouble: page.error.message };
    if (width > PAGE && page.value.length >= PAGE) {
      width = PAGE;
      continue;
    }
    for (const event of page.value) {
      if (!send(event)) return { done: false, trouble: null };
    }
    from += width;
    width = page.value.length === 0 ? width * 4 : PAGE;
  }
  return { done: true, trouble: null };
}
