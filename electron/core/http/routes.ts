import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fail, type Result } from '../../../shared/errors.ts';
import type { EventKind } from '../../../shared/events.ts';
import type { Command, HostApi } from '../runtime-api.ts';
import {
  acceptCommand,
  drainCommand,
  guardsCommand,
  makeRoomCommand,
  modelCommand,
  plainCommand,
  reportedEvent,
  sleepCommand,
} from './bodies.ts';
import { type Refusal, refusal, refusalOf } from './errors.ts';
import { parseEventQuery } from './event-query.ts';
import { METRICS_CONTENT_TYPE, renderMetrics } from './metrics.ts';
import { addQuestionRoutes } from './question-routes.ts';
import { addReservationRoutes } from './reservation-routes.ts';
import type { Streams } from './streams.ts';

export interface RouteOptions {
  readonly api: HostApi;
  readonly streams: Streams;
  readonly version: string;
  readonly eventCounts: ReadonlyMap<EventKind, number>;
  /** A fresh address with a one-time key. */
  readonly openUrl: () => string;
  /** Aborted when the server stops: a command that waits gives up then, not when its asker leaves. */
  readonly stopping: AbortSignal;
  /** Adds the gateway's routes; null: there is none, and these paths say so. */
  readonly gateway: GatewayMount | null;
}

/** What the gateway brings to this server. */
export interface GatewayMount {
  addRoutes(app: FastifyInstance): void;
  /** One request of `/v1` that has been let in. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Its part of `/metrics`. */
  metrics(): Promise<string>;
  /** Pages of these origins may use `/v1`. */
  origins?(): readonly string[];
}

/** A sentence, three names and some figures. */
const MAX_REPORT_BYTES = 16 * 1024;

const MODEL_ACTIONS = ['load', 'unload', 'pin', 'unpin'] as const;

/** The routes of design §5.3; who may use them has been checked before. */
export function addRoutes(app: FastifyInstance, options: RouteOptions): void {
  const { api, streams } = options;

  app.get('/healthz', async () => ({
    ok: true,
    service: 'vram-landlord',
    version: options.version,
    revision: api.state().revision,
  }));
  app.get('/metrics', async (_request, reply) =>
    reply
      .type(METRICS_CONTENT_TYPE)
      .send(
        (await renderMetrics(api.state(), options.eventCounts)) + ((await options.gateway?.metrics()) ?? ''),
      ),
  );

  app.get('/api/state', async () => api.state());
  app.get('/api/stream', (request, reply) => streams.openWindow(request, reply));
  app.get('/api/events', async (request, reply) => {
    const query = new URL(request.url, 'http://localhost').searchParams;
    if (!wantsList(request, query)) return streams.openEvents(request, reply, query);
    const parsed = parseEventQuery(query);
    if (!parsed.ok) return refuse(reply, refusalOf(parsed.error));
    const events = await api.events(parsed.value);
    return events.ok ? reply.send(events.value) : refuse(reply, refusalOf(events.error));
  });
  app.post('/api/open', async () => ({ url: options.openUrl() }));

  const command = (path: string, read: (request: FastifyRequest) => Result<Command>): void => {
    app.post(path, async (request, reply) => {
      const parsed = read(request);
      const done = parsed.ok ? await api.command(parsed.value, options.stopping) : parsed;
      return done.ok ? reply.send(done.value) : refuse(reply, refusalOf(done.error));
    });
  };
  for (const action of MODEL_ACTIONS) {
    command(`/api/models/:id/${action}`, (request) => modelCommand(action, idOf(request), request.body));
  }
  command('/api/sleep', (request) => sleepCommand(request.body));
  command('/api/wake', (request) => plainCommand('wake', request.body));
  command('/api/drain', (request) => drainCommand(request.body));
  command('/api/accept', (request) => acceptCommand(request.body));
  command('/api/make-room', (request) => makeRoomCommand(request.body));
  command('/api/restore', (request) => plainCommand('restore', request.body));
  command('/api/guards', (request) => guardsCommand(request.body));

  app.post('/api/reports', { bodyLimit: MAX_REPORT_BYTES }, async (request, reply) => {
    const parsed = reportedEvent(request.body);
    if (!parsed.ok) return refuse(reply, refusalOf(parsed.error));
    await api.report(parsed.value);
    return reply.code(202).send({ message: 'It is in the log.' });
  });

  addQuestionRoutes(app, api);
  addReservationRoutes(app, api, options.stopping);
  options.gateway?.addRoutes(app);
  const gatewayPaths = options.gateway === null ? ['/api/turns', '/api/yield', '/v1', '/v1/*'] : [];
  for (const path of gatewayPaths) {
    app.all(path, async (_request, reply) => refuse(reply, notServed(path)));
  }
}

export function refuse(reply: FastifyReply, { status, body }: Refusal): FastifyReply {
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="vram-landlord"');
  return reply.code(status).type('application/json; charset=utf-8').send(body);
}

/** `?json=1`, or an Accept header that asks for JSON and not for a stream. */
function wantsList(request: FastifyRequest, query: URLSearchParams): boolean {
  const accept = request.headers.accept ?? '';
  if (query.get('json') === '1') return true;
  return accept.includes('application/json') && !accept.includes('text/event-stream');
}

function idOf(request: FastifyRequest): string {
  const { params } = request;
  const id = typeof params === 'object' && params !== null && 'id' in params ? params.id : '';
  return typeof id === 'string' ? id : '';
}

function notServed(path: string): Refusal {
  const what = path.startsWith('/v1')
    ? 'This version has no gateway: send requests to the backend itself; models it loads are watched all the same.'
    : `This version does not serve ${path}.`;
  return refusal(404, 'not_found', what);
}

/** For an exception that no route foresaw: said without its stack. */
export function unforeseen(): Refusal {
  const error = fail('internal', 'The request failed inside VRAM Landlord; its log says why.').error;
  return refusalOf(error);
}
