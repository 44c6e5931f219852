import type { Readable } from 'node:stream';
import { fail, type LandlordError } from '../../../shared/errors.ts';
import { failOpenNews } from '../gate/news.ts';
import { isAwake } from './admission.ts';
import { admit } from './admit.ts';
import type { Exchange } from './exchange.ts';
import { mayHaveBody } from './exchange.ts';
import { upstreamPath } from './fallback.ts';
import { type Forwarded, forward } from './forward.ts';
import type { GatewayParts } from './gateway.ts';
import { requestHeaders } from './headers.ts';
import { type LaneTaken, takeLane } from './lane.ts';
import type { Asker, Outcome } from './outcome.ts';
import { refusalFor, refusalFrame } from './refusals.ts';
import { BodyTooLarge, isForm, renamed, rest, spooledBody } from './request-head.ts';
import type { Route } from './route.ts';
import { unsaidOf } from './unsaid.ts';
import { pathAt } from './upstream-path.ts';
import type { Waiting } from './waiting.ts';

/** `not_here`: nothing was sent to the client, which may be served elsewhere or told why. */
export type LocalEnd =
  | { readonly kind: 'over'; readonly outcome: Outcome }
  | { readonly kind: 'not_here'; readonly error: LandlordError }
  /** A body without an announced length went over the limit. */
  | { readonly kind: 'too_large' };

/** A router whose child died under the request says so (llama.cpp tools/server, the router's proxy). */
const LOST = /proxy error|failed to read connection|could not establish connection/i;
const NOTICE_EVERY_MS = 100;
const NOTICE_LIMIT_MS = 2_000;
/** One that is unloaded again and again is its backend's to refuse. */
const MOST_ADMISSIONS = 4;

/** Admission, lane, the backend, and the lane's release however it ends. One more try where no byte was sent. */
export async function sendLocally(
  parts: GatewayParts,
  exchange: Exchange,
  route: Route,
  asker: Asker,
  waiting: Waiting | null,
): Promise<LocalEnd> {
  let attempt = 0;
  for (let admissions = 1; ; admissions += 1) {
    // What is free at once is not waited for: each await is a round through the queue of promises.
    const admitting = admit(parts, exchange, route, asker, waiting);
    const admitted = admitting instanceof Promise ? await admitting : admitting;
    if (!admitted.ok) return { kind: 'not_here', error: admitted.error };
    // What it had read before it was unloaded comes back first: before the lane, which nobody may hold up for it.
    const parked = broughtBack(parts, exchange, route, waiting);
    if (parked !== null) await parked;
    const wasThere = isThere(parts, route);
    const taking = laneFor(parts, exchange, route, asker, waiting);
    const lane = taking instanceof Promise ? await taking : taking;
    if (lane?.kind === 'left')
      return { kind: 'not_here', error: fail('cancelled', 'The client left.').error };
    if (lane?.kind === 'busy') {
      const { busy } = lane;
      const numbers = { heldForMs: busy.heldForMs, holderPid: busy.holder?.pid ?? null };
      return { kind: 'not_here', error: fail('local_backend_busy', busy.message, numbers).error };
    }
    const turn = lane?.kind === 'held' ? lane.turn : null;
    const release = (): void => turn?.[Symbol.dispose]();
    // No `using`, as in serve.ts: this is passed by each request.
    try {
      // It may have been unloaded by hand while the lane was waited for: what it needs is asked for anew,
      // and not while others stand before a lane that does nothing.
      if (wasThere && !isThere(parts, route) && admissions < MOST_ADMISSIONS) continue;
      // Loaded anew while the lane was waited for.
      const again = broughtBack(parts, exchange, route, waiting);
      if (again !== null) await again;
      const name = lane?.name ?? null;
      if (name !== null) exchange.own['x-landlord-turn'] = name;
      else if (exchange.own['x-landlord-turn'] !== undefined) delete exchange.own['x-landlord-turn'];
      asker.onDeflected?.();
      const mayRetry = attempt === 0 && (exchange.head?.whole ?? !mayHaveBody(exchange.request));
      const end = await send(parts, exchange, route, waiting, mayRetry, release);
      if (end.kind !== 'refused' || !mayRetry || exchange.departure.left) return localEnd(route, end);
      await seenGone(parts, route, exchange.departure.signal);
      attempt += 1;
    } finally {
      release();
    }
  }
}

/** null: there is nothing to wait for. */
function broughtBack(
  parts: GatewayParts,
  exchange: Exchange,
  { view }: Route,
  waiting: Waiting | null,
): Promise<void> | null {
  const work = view === null || exchange.work === 'other' ? null : parts.parking?.before(view.id);
  if (work === null || work === undefined) return null;
  const fromMs = parts.monotonicMs();
  waiting?.begin('waiting: parked conversations are being brought back');
  return work.finally(() => {
    exchange.waitedMs += parts.monotonicMs() - fromMs;
  });
}

function isThere({ context }: GatewayParts, { view }: Route): boolean {
  const now = view === null ? null : context.loop.models.get(view.id);
  return now !== null && isAwake(context, now);
}

/** Until its backend has noticed too: before that it sends the next request after the dead child as well. */
async function seenGone(
  { context }: GatewayParts,
  { setting, view }: Route,
  gone: AbortSignal,
): Promise<void> {
  const { loop, fleet, clock } = context;
  const untilMs = clock.monotonicMs() + NOTICE_LIMIT_MS;
  const isUp = (): boolean => view !== null && loop.models.get(view.id)?.status === 'loaded';
  do {
    await fleet.get(setting.name)?.refresh();
    if (!isUp()) return;
    await loop.until(() => !isUp(), NOTICE_EVERY_MS, gone);
  } while (!gone.aborted && clock.monotonicMs() < untilMs);
}

function localEnd(route: Route, end: Forwarded): LocalEnd {
  const backend = route.setting.name;
  switch (end.kind) {
    case 'done':
    case 'broken': {
      const { status, firstByteAtMs, tail } = end;
      const reason = end.kind === 'broken' ? 'upstream_broke' : null;
      return { kind: 'over', outcome: { route: 'local', backend, reason, status, firstByteAtMs, tail } };
    }
    case 'gone': {
      const reason = 'client_left';
      const nothing = { status: null, firstByteAtMs: null, tail: '' };
      return { kind: 'over', outcome: { route: 'local', backend, reason, ...nothing } };
    }
    case 'refused': {
      if (end.error instanceof BodyTooLarge) return { kind: 'too_large' };
      const where = `The backend ${route.setting.name} (${route.url})`;
      const why = `${where} gave no answer: ${end.error.message}. \`landlord status\` says whether it is up.`;
      const error = fail('backend_unreachable', why).error;
      return { kind: 'not_here', error };
    }
  }
}

/** Who waits for whom: with a lane for each model, models of one backend do not; with one for a device, its backends do. */
function lineOf(setting: Route['setting'], url: string, model: string | null): string {
  if (setting.lane === 'model') return `${url} ${model}`;
  return setting.lane === 'device' ? `device ${setting.device}` : url;
}

function laneFor(
  parts: GatewayParts,
  exchange: Exchange,
  { setting, url, view }: Route,
  asker: Asker,
  waiting: Waiting | null,
): LaneTaken | null | Promise<LaneTaken> {
  if (exchange.work !== 'generate' || setting.lanes === null) return null;
  const fromMs = parts.monotonicMs();
  const model = view?.observed.name ?? null;
  const session = asker.name;
  const taken = takeLane({
    gate: parts.gate,
    lines: parts.lines,
    url,
    line: lineOf(setting, url, model),
    model,
    session,
    class: asker.conduct.class,
    waits: asker.conduct.onBusy === 'wait',
    request: exchange.request,
    departure: exchange.departure,
    onReport: (report) => parts.report(failOpenNews(report, { session, model })),
    onWaiting: () => waiting?.begin('waiting: the local model is in use'),
  });
  if (!(taken instanceof Promise)) return taken;
  return taken.finally(() => {
    exchange.waitedMs += parts.monotonicMs() - fromMs;
  });
}

function send(
  parts: GatewayParts,
  exchange: Exchange,
  route: Route,
  waiting: Waiting | null,
  mayRetry: boolean,
  ended: () => void,
): Promise<Forwarded> {
  const { request, head, front } = exchange;
  const begun = waiting?.end() ?? false;
  const { origin, path } = upstreamPath(route.url, pathAt(exchange, route));
  const { body, contentLength } = bodyFor(exchange, route.sentName);
  const { apiKey } = front === null ? keyFor(parts, route) : {};
  const unsaid = unsaidOf(apiKey ?? null);
  const dispatcher = parts.dispatcher();
  const asked = {
    origin,
    method: request.method ?? 'GET',
    path,
    headers: requestHeaders(request.rawHeaders, {
      contentLength,
      // What is packed can't be looked through.
      identity: begun || unsaid !== null,
      apiKey,
    }),
    body,
    own: exchange.own,
    unsaid,
    response: exchange.response,
    departure: exchange.departure,
    isLost: mayRetry && head !== null ? saysLost : null,
    begun: begun ? (status: number, text: string) => begunError(exchange, status, text) : null,
    monotonicMs: parts.monotonicMs,
    ended,
  };
  return dispatcher instanceof Promise
    ? dispatcher.then((made) => forward(made, asked))
    : forward(dispatcher, asked);
}

function saysLost(_status: number, text: string): boolean {
  return LOST.test(text);
}

/** The key of the backend where one is set; a key that opens our own door goes no further. */
function keyFor(parts: GatewayParts, { setting }: Route): { readonly apiKey?: string | null } {
  if (setting.apiKeyEnv !== null) return { apiKey: parts.env(setting.apiKeyEnv) };
  const { apiKeyEnv } = parts.settings().server;
  return apiKeyEnv !== null && parts.env(apiKeyEnv) !== null ? { apiKey: null } : {};
}

export function bodyFor(
  exchange: Exchange,
  sentName: string | null,
): { readonly body: Buffer | Readable | null; readonly contentLength: number | null | undefined } {
  const { request, head } = exchange;
  const announced = request.headers['content-length'];
  if (head === null) {
    if (!mayHaveBody(request)) return { body: null, contentLength: undefined };
    return { body: request, contentLength: announced === undefined ? null : Number(announced) };
  }
  if (head.spool !== null) {
    const { body, grownBytes } = spooledBody(request, head, head.spool, sentName);
    const length = head.whole ? head.spool.sizeBytes : announced === undefined ? null : Number(announced);
    return { body, contentLength: length === null ? null : length + grownBytes };
  }
  const beginning = sentName === null ? head.bytes : renamed(head, sentName, !isForm(request));
  if (head.whole) return { body: beginning, contentLength: beginning.length };
  const grown = beginning.length - head.bytes.length;
  return {
    body: rest(request, beginning, head.bytes.length),
    contentLength: announced === undefined ? null : Number(announced) + grown,
  };
}

/** What is no event stream, inside one that has begun. */
export function begunError(exchange: Exchange, status: number, text: string): string {
  const message = `The backend answered ${status}: ${text.slice(0, 500)}`;
  return refusalFrame({ ...refusalFor(fail('backend_refused', message).error), status }, exchange.dialect);
}
