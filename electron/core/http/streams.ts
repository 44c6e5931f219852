import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RuntimeApi } from '../runtime-api.ts';
import { refusal } from './errors.ts';
import { startEventFeed } from './event-feed.ts';
import { parseLastEventId } from './event-query.ts';
import { SAFE_HEADERS } from './headers.ts';
import { refuse } from './routes.ts';
import { openSseStream, type SseOptions, type SseStream } from './sse.ts';
import { startStateFeed } from './state-feed.ts';

/** Open event streams; a browser holds 6 connections to one host, an agent one or two. */
const MAX_STREAMS = 64;

export interface StreamsOptions extends SseOptions {
  readonly api: RuntimeApi;
  readonly stateIntervalMs: number;
  readonly monotonicMs: () => number;
}

export interface Streams {
  /** `GET /api/events`: each event as `id:` and `data:`. */
  openEvents(request: FastifyRequest, reply: FastifyReply, query: URLSearchParams): FastifyReply;
  /** `GET /api/stream`: `event: state` with snapshots, `event: event` with events. */
  openWindow(request: FastifyRequest, reply: FastifyReply): FastifyReply;
  closeAll(): void;
}

export function createStreams(options: StreamsOptions): Streams {
  const { api } = options;
  const open = new Set<SseStream>();

  const start = (reply: FastifyReply, feed: (stream: SseStream) => void): FastifyReply => {
    if (open.size >= MAX_STREAMS) {
      const message = `${MAX_STREAMS} event streams are open already; close one of them first.`;
      return refuse(reply, refusal(503, 'too_many_streams', message));
    }
    reply.hijack();
    const stream = openSseStream(reply.raw, SAFE_HEADERS, options);
    open.add(stream);
    stream.onClose(() => open.delete(stream));
    feed(stream);
    return reply;
  };
  return {
    openEvents(request, reply, query) {
      const afterId = lastEventId(request) ?? parseLastEventId(query.get('after') ?? undefined);
      return start(reply, (stream) => startEventFeed({ api, stream, afterId }));
    },
    openWindow(request, reply) {
      return start(reply, (stream) => {
        const { stateIntervalMs: intervalMs, monotonicMs } = options;
        startStateFeed({ api, stream, intervalMs, monotonicMs });
        startEventFeed({ api, stream, afterId: lastEventId(request), name: 'event' });
      });
    },
    closeAll() {
      for (const stream of [...open]) stream.close();
    },
  };
}

function lastEventId(request: FastifyRequest): number | null {
  const header = request.headers['last-event-id'];
  return parseLastEventId(Array.isArray(header) ? header[0] : header);
}
