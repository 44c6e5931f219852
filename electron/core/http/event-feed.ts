import type { LandlordEvent } from '../../../shared/events.ts';
import type { RuntimeApi } from '../runtime-api.ts';
import { type SseStream, sseComment, sseFrame } from './sse.ts';

/**
 * Sends every event after `afterId`, in order and once, however slow the reader is.
 *
 *   replaying ──log read to its end──► live ──a frame did not fit──► replaying
 *
 * Nothing is queued for a slow reader beyond one page: the log keeps the events, and the feed reads on
 * from the last one that was sent.
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
const PAGE = 100;

export function startEventFeed(options: EventFeedOptions): void {
  const { api, stream } = options;
  let replaying = false;
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
  /** False once the stream is closed. */
  const sendWhenOpen = async (event: LandlordEvent): Promise<boolean> => {
    while (!send(event)) {
      if (!(await stream.whenOpen())) return false;
    }
    return true;
  };
  const replay = async (afterId: number): Promise<void> => {
    if (replaying) return;
    replaying = true;
    let target: LandlordEvent | null;
    // A new database counts from 1 again: an id beyond its end resumes at that end.
    const newestInLog = await api.events({ limit: 1 });
    let from = newestInLog.ok ? Math.min(afterId, newestInLog.value.at(-1)?.id ?? 0) : afterId;
    sentId = Math.min(sentId ?? from, from);
    do {
      target = newest;
      const trouble = await sendAfter(api, from, sendWhenOpen);
      if (trouble !== null) stream.send(sseComment(trouble));
      // What can't be read from the log is at least told of.
      if (target !== null && !(await sendWhenOpen(target))) return;
      from = sentId ?? from;
      // Events that were announced meanwhile may not have been read.
    } while (stream.state !== 'closed' && newest !== target);
    replaying = false;
  };
  const undo = api.onEvent((event) => {
    newest = event;
    sentId ??= event.id - 1;
    if (replaying) return;
    if (event.id > sentId + 1 || !send(event)) void replay(sentId);
  });
  stream.onClose(undo);
  if (sentId !== null) void replay(sentId);
}

/**
 * Reads the log forward from `afterId` and sends each event; answers with the sentence of an error. The
 * log keeps the newest of a range, so the range is no wider than a page; over gaps (retention removed
 * what was there) it grows.
 */
async function sendAfter(
  api: Pick<RuntimeApi, 'events'>,
  afterId: number,
  send: (event: LandlordEvent) => Promise<boolean>,
): Promise<string | null> {
  const last = await api.events({ afterId, limit: 1 });
  if (!last.ok) return last.error.message;
  const endId = last.value.at(-1)?.id ?? afterId;
  let from = afterId;
  let width = PAGE;
  while (from < endId) {
    const page = await api.events({ afterId: from, beforeId: from + width + 1, limit: PAGE });
    if (!page.ok) return page.error.message;
    if (width > PAGE && page.value.length >= PAGE) {
      width = PAGE;
      continue;
    }
    for (const event of page.value) {
      if (!(await send(event))) return null;
    }
    from += width;
    width = page.value.length === 0 ? width * 4 : PAGE;
  }
  return null;
}
