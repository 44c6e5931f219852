import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import type { EventKind } from '../../../shared/events.ts';
import { type Clock, systemClock } from '../clock.ts';
import { workOf } from '../gateway/endpoints.ts';
import { http } from '../node-http.ts';
import type { HostApi } from '../runtime-api.ts';
import { type Credentials, createGatekeeper, type Gatekeeper } from './auth.ts';
import { corsHeaders, isListedOrigin, preflightHeaders } from './cors.ts';
import { answerWithin, HEAD_LIMIT_MS, refuseNonsense } from './crowd.ts';
import { type Refusal, refusal } from './errors.ts';
import { SAFE_HEADERS } from './headers.ts';
import { checkOrigin, checkRequest } from './host-check.ts';
import { createPageKeys } from './page-key.ts';
import { addPage, PAGE_ROUTES } from './page-routes.ts';
import { findPortHolder } from './port-holder.ts';
import { addRoutes, type GatewayMount, refuse, unforeseen } from './routes.ts';
import { createStreams } from './streams.ts';

export const DEFAULT_PORT = 7781;
const MAX_BODY_BYTES = 1024 * 1024;
/** A connection that asks nothing is kept this long: fastify's own default. */
const KEEP_ALIVE_MS = 72_000;

const NOT_WELL_FORMED = refusal(400, 'bad_input', 'The address of the request is not well formed.');

/** What goes to the gateway with no other route in question. */
const STRAIGHT = /^\/v1\/[a-z_/]+(?:\?|$)/;

/** Open unless a key is set. */
const KEYED_ROUTES: readonly string[] = [
  '/healthz',
  '/metrics',
  '/v1',
  '/v1/*',
  '/v1/models',
  '/v1/models/*',
];

export interface HttpOptions {
  readonly api: HostApi;
  /** 0: any free port (tests). */
  readonly port: number;
  /** The secret in `<state-dir>/token`. */
  readonly token: string;
  /** The value behind `server.apiKeyEnv` as it stands now; null: none is asked for, and `/v1`, `/metrics` and `/healthz` are open. */
  readonly apiKey: () => string | null;
  /** The built page; null or missing: the plain page is shown. */
  readonly pageDir: string | null;
  readonly version: string;
  /** Serves `/v1`, turns and yielding; left out: these paths say that there is none. */
  readonly gateway?: GatewayMount | null;
  readonly clock?: Clock;
  /** Least time between two snapshots to one window, default 250 ms. */
  readonly stateIntervalMs?: number;
  /** Default 15 s. */
  readonly keepAliveMs?: number;
  /** Default 60 s; see sse.ts. */
  readonly blockedLimitMs?: number;
}

export interface HttpServer {
  readonly port: number;
  /** `http://127.0.0.1:7781` */
  readonly url: string;
  /** A fresh address that opens the page once; see page-key.ts. */
  openUrl(): string;
  /** Ends every stream and connection; resolves when the port is free. */
  stop(): Promise<void>;
}

/** Serves the API and the page on 127.0.0.1. Fails with `already_running` when the port is taken. */
export async function startHttpServer(options: HttpOptions): Promise<Result<HttpServer>> {
  const clock = options.clock ?? systemClock;
  const app = fastify({
    logger: false,
    serverFactory: (handler) =>
      listener((request, response) => {
        if (!goesStraight(request)) handler(request, response);
        else void options.gateway?.handle(request, response);
      }),
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    // No route has a schema: without these two, fastify loads libraries for them that cost 4 MB.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    // A HEAD of a stream would never end.
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 1024 },
    frameworkErrors: (_error, _request, reply) => {
      refuse(reply, NOT_WELL_FORMED);
    },
    clientErrorHandler: refuseNonsense,
  });
  let boundPort: number | null = null;
  const port = (): number => {
    // Asked for with each request, and a call to the system each time.
    boundPort ??= portOf(app);
    return boundPort ?? options.port;
  };
  const keys = createPageKeys(options.token);
  const gatekeeper = createGatekeeper({
    token: options.token,
    apiKey: options.apiKey,
    keys,
    port,
    epochMs: clock.epochMs,
  });
  const streams = createStreams({
    api: options.api,
    stateIntervalMs: options.stateIntervalMs ?? 250,
    keepAliveMs: options.keepAliveMs ?? 15_000,
    blockedLimitMs: options.blockedLimitMs ?? 60_000,
    monotonicMs: clock.monotonicMs,
  });
  const url = (): string => `http://127.0.0.1:${port()}`;
  const openUrl = (): string => `${url()}/?key=${keys.issue()}`;
  const stopping = new AbortController();
  // Finding its way through the routes and hooks of a request costs a tenth of what the gateway adds to
  // it; one that is not let in goes that way all the same, and is told why.
  const goesStraight = (request: IncomingMessage): boolean =>
    options.gateway != null &&
    request.method === 'POST' &&
    STRAIGHT.test(request.url ?? '') &&
    !stopping.signal.aborted &&
    checkRequest(request, port()).allowed &&
    gatekeeper.mayReadOpenRoutes(credentialsOf(request));
  const eventCounts = new Map<EventKind, number>();
  const undoCount = options.api.onEvent((event) => {
    eventCounts.set(event.kind, (eventCounts.get(event.kind) ?? 0) + 1);
  });

  addChecks(app, gatekeeper, port, () => options.gateway?.origins?.() ?? []);
  addErrorAnswers(app);
  addPage(app, { api: options.api, pageDir: options.pageDir, gatekeeper });
  addRoutes(app, {
    api: options.api,
    streams,
    version: options.version,
    eventCounts,
    openUrl,
    stopping: stopping.signal,
    gateway: options.gateway ?? null,
  });

  try {
    await app.listen({ host: '127.0.0.1', port: options.port, exclusive: true });
  } catch (thrown) {
    undoCount();
    return listenFailure(thrown, options.port);
  }
  return ok({
    port: port(),
    url: url(),
    openUrl,
    async stop() {
      undoCount();
      stopping.abort();
      streams.closeAll();
      await app.close();
    },
  });
}

function noSchemas(): never {
  throw new Error('a route was given a schema, which nothing here checks');
}

/** As fastify makes one by itself. */
function listener(answer: RequestListener): Server {
  const server = http.createServer({
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: 0,
    headersTimeout: HEAD_LIMIT_MS,
  });
  server.setTimeout(0);
  answerWithin(server, answer);
  return server;
}

function credentialsOf({ headers }: IncomingMessage): Credentials {
  const key = oneOf(headers['x-api-key']);
  // Anthropic's clients send their key there.
  const shown = headers.authorization ?? (key === undefined ? undefined : `Bearer ${key}`);
  return { authorization: shown, cookie: headers.cookie };
}

/** Before any route: the request is meant for us, and its sender may ask this. */
function addChecks(
  app: FastifyInstance,
  gatekeeper: Gatekeeper,
  port: () => number,
  origins: () => readonly string[],
): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(SAFE_HEADERS);
    const { host, origin } = request.headers;
    const listed = isListedOrigin(request.raw, origins()) ? (origin ?? null) : null;
    // Of a page that is listed, only whom it meant is asked.
    const verdict =
      listed === null
        ? checkRequest(request.raw, port())
        : checkOrigin(
            { method: request.method, host, origin: undefined, fetchSite: undefined, fetchMode: undefined },
            port(),
          );
    if (!verdict.allowed) return refuse(reply, refusal(verdict.status, verdict.code, verdict.message));
    // A whole address is for a proxy, and what is in it comes before the host header (RFC 9112 §3.2.2).
    if (request.raw.url?.startsWith('/') !== true) return refuse(reply, NOT_WELL_FORMED);
    if (listed !== null) {
      // On the answer itself: what the gateway writes goes past fastify.
      for (const [name, value] of Object.entries(corsHeaders(listed))) reply.raw.setHeader(name, value);
      const preflight = preflightHeaders(request.raw);
      if (preflight !== null) return reply.code(204).headers(preflight).send();
    }
    const { url: route } = request.routeOptions;
    if (route === undefined && isWorkElsewhere(request))
      return refuse(reply, refusal(404, 'not_found', wrongBase(request.url)));
    const denied = authorize(route, credentialsOf(request.raw));
    return denied === null ? undefined : refuse(reply, denied);
  });

  // Decided by the route that was matched, not by the text of the address, which has many spellings.
  const authorize = (route: string | undefined, credentials: Credentials): Refusal | null => {
    if (route !== undefined && PAGE_ROUTES.includes(route)) return null;
    if (route !== undefined && KEYED_ROUTES.includes(route)) {
      if (gatekeeper.mayReadOpenRoutes(credentials)) return null;
      return refusal(
        401,
        'unauthorized',
        'A key is set for this server: send it as `authorization: Bearer …`.',
      );
    }
    if (gatekeeper.mayUseApi(credentials)) return null;
    return refusal(
      401,
      'unauthorized',
      'Send the token of the file `token` in the state directory as `authorization: Bearer …`, or open the page with `landlord open`.',
    );
  };
}

/** Work for a model at a path of no dialect that is spoken here. */
function isWorkElsewhere({ method, url }: FastifyRequest): boolean {
  return !/^\/(?:sd)?api\//.test(url) && workOf(method, url) !== 'other';
}

/** The commonest slip in a client's settings. */
function wrongBase(url: string): string {
  const path = url.split('?', 1)[0] ?? '';
  return `There is no ${path} here, but /v1${path.replace(/^\/v\d*(?=\/)/, '')}. The base URL of an OpenAI client ends in /v1, that of an Anthropic client does not.`;
}

/** Only JSON comes in, and whatever goes wrong goes out as `{error}` without a stack. */
function addErrorAnswers(app: FastifyInstance): void {
  app.removeContentTypeParser('text/plain');
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    // A client may announce JSON and send nothing: that is no body.
    if (body === '') return done(null, undefined);
    return parseJson(request, String(body), done);
  });
  app.setErrorHandler((error: FastifyError, _request, reply) => refuse(reply, refusalOfFastify(error)));
  app.setNotFoundHandler((request: FastifyRequest, reply) =>
    refuse(
      reply,
      refusal(404, 'not_found', `There is no ${request.method} ${request.url.split('?', 1)[0]} here.`),
    ),
  );
}

function refusalOfFastify(error: FastifyError): Refusal {
  switch (error.statusCode) {
    case 413:
      return refusal(413, 'too_large', `A body may have at most ${MAX_BODY_BYTES} bytes.`);
    case 415:
      return refusal(
        415,
        'unsupported_media_type',
        'Send a JSON body, with `content-type: application/json`.',
      );
    case 400:
      return refusal(400, 'bad_input', 'The body is not JSON that can be read.');
    default:
      return unforeseen();
  }
}

async function listenFailure(thrown: unknown, port: number): Promise<Result<never>> {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : null;
  if (code === 'EADDRINUSE') {
    const holder = await findPortHolder(port);
    const who = holder === null ? 'another program' : `process ${holder.pid} (${holder.command})`;
    return fail(
      'already_running',
      `Port ${port} is taken by ${who}. Stop it, or choose another port with --port.`,
      {
        port,
        pid: holder?.pid ?? null,
      },
    );
  }
  if (code === 'EACCES') {
    return fail(
      'not_permitted',
      `This user may not listen on port ${port}. Choose one above 1023 with --port.`,
      {
        port,
      },
    );
  }
  return fail('internal', `Listening on 127.0.0.1:${port} failed: ${messageOf(thrown)}.`, { port });
}

function portOf(app: FastifyInstance): number | null {
  const address: AddressInfo | string | null = app.server.address();
  return address !== null && typeof address === 'object' ? address.port : null;
}

function oneOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
