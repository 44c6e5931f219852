import type { LandlordError } from '../../../shared/errors.ts';
import type { FallbackSetting } from '../../../shared/settings.ts';
import { acquireTurn } from '../gate/acquire.ts';
import { failOpenNews } from '../gate/news.ts';
import { isGranted } from '../gate/turn.ts';
import type { Exchange } from './exchange.ts';
import { fallbackModel, keyHeaders, upstreamPath, withoutKeys } from './fallback.ts';
import { isAway } from './fallback-health.ts';
import { type Forwarded, forward } from './forward.ts';
import type { GatewayParts } from './gateway.ts';
import { headerText, requestHeaders } from './headers.ts';
import { type Asker, modelOf, type Outcome } from './outcome.ts';
import { ownRoute } from './own-entry.ts';
import { BodyTooLarge } from './request-head.ts';
import type { Route } from './route.ts';
import { begunError, bodyFor, sendLocally } from './send-locally.ts';
import { unsaidOf } from './unsaid.ts';
import type { Waiting } from './waiting.ts';

/** A turn on its way down the chain. */
interface Deflected {
  readonly parts: GatewayParts;
  readonly exchange: Exchange;
  /** Where it was meant to go. */
  readonly route: Route;
  readonly asker: Asker;
  readonly waiting: Waiting;
  /** Why it did not. */
  readonly error: LandlordError;
  /** Why entries before this one could not serve it either. */
  readonly passed: string[];
}

/** What became of a turn that could not be served here. */
export type SentElsewhere =
  | { readonly kind: 'sent'; readonly outcome: Outcome }
  /** The chain has nobody who may serve it now; in a sentence each, why. */
  | { readonly kind: 'nobody'; readonly why: readonly string[] }
  /** A body without an announced length went over the limit: nobody may serve it. */
  | { readonly kind: 'too_large' };

/** `failed`: its provider gave no answer, and the body may be spent. */
type Tried =
  | { readonly kind: 'over'; readonly outcome: Outcome }
  | { readonly kind: 'passed' | 'failed' | 'too_large' };

/**
 * Down the fallback chain, for this one request: the next one tries local first again (rule 18). An
 * entry that is one of our own backends needs admission and its lane as a first choice does, only that
 * nothing is waited for and nobody is evicted for it.
 */
export async function sendElsewhere(
  parts: GatewayParts,
  exchange: Exchange,
  route: Route,
  asker: Asker,
  waiting: Waiting,
  error: LandlordError,
): Promise<SentElsewhere> {
  const deflected: Deflected = { parts, exchange, route, asker, waiting, error, passed: [] };
  const wanted = route.view?.observed.name ?? exchange.pathModel ?? exchange.head?.model?.value ?? null;
  // Who has not answered lately is tried after all others, by a request that has nowhere else to go.
  const { fallbacks } = parts.settings();
  const well = fallbacks.filter((setting) => parts.health.objection(setting) === null);
  const ailing = fallbacks.filter((setting) => !well.includes(setting));
  let isTooLarge = false;
  for (const setting of [...well, ...ailing]) {
    const objection = ailing.includes(setting) ? parts.health.objection(setting) : null;
    if (objection !== null) deflected.passed.push(objection);
    const tried = await tryEntry(deflected, setting, fallbackModel(setting, wanted, route.setting.name));
    if (tried.kind === 'over') return { kind: 'sent', outcome: tried.outcome };
    isTooLarge = tried.kind === 'too_large';
    if (isTooLarge || exchange.departure.left || (tried.kind === 'failed' && exchange.head?.whole === false))
      break;
  }
  exchange.own['x-landlord-route'] = 'local';
  exchange.own['x-landlord-backend'] = route.setting.name;
  delete exchange.own['x-landlord-turn'];
  delete exchange.own['x-landlord-reason'];
  return isTooLarge ? { kind: 'too_large' } : { kind: 'nobody', why: deflected.passed };
}

async function tryEntry(
  deflected: Deflected,
  setting: FallbackSetting,
  model: string | null,
): Promise<Tried> {
  const { parts, exchange, route, passed } = deflected;
  const { localPort } = exchange.request.socket;
  const { port } = parts.settings().server;
  const own = ownRoute(setting.url, model, {
    backends: parts.context.fleet.list().map((backend) => backend.setting),
    views: parts.context.loop.models.views(),
    ports: exchange.front === null && localPort !== undefined ? [port, localPort] : [port],
  });
  if (own === null) return toAnother(deflected, setting, model);
  const isSame =
    own.ok && own.value.setting.name === route.setting.name && own.value.view?.id === route.view?.id;
  if (own.ok && !isSame) return toOwn(deflected, setting, own.value);
  passed.push(own.ok ? `${setting.name} is the same.` : `${setting.name} has no model ${model}.`);
  return { kind: 'passed' };
}

async function toOwn(deflected: Deflected, setting: FallbackSetting, route: Route): Promise<Tried> {
  const { parts, exchange, asker, waiting, error, passed } = deflected;
  const { view } = route;
  // It stays a request of its class on its device, and the model of the entry is in use by it.
  using _flight = parts.flights.enter({
    modelId: view?.id ?? null,
    deviceId: view?.deviceId ?? null,
    class: asker.conduct.class,
    caller: asker.name,
    sinceMs: exchange.arrivedAtMs,
  });
  let told = false;
  const end = await sendLocally(
    parts,
    exchange,
    route,
    {
      name: asker.name,
      conduct: { ...asker.conduct, onBusy: 'reject', memoryWaitMs: 0, toldToWait: false },
      onDeflected: () => {
        if (!told) tell(deflected, setting);
        told = true;
      },
    },
    waiting,
  );
  if (end.kind === 'over') {
    const { outcome } = end;
    return { kind: 'over', outcome: { ...outcome, route: 'fallback', reason: outcome.reason ?? error.code } };
  }
  if (end.kind === 'too_large') return { kind: 'too_large' };
  passed.push(
    end.error.code === 'local_backend_busy'
      ? `${setting.name} is in use too.`
      : `${setting.name}: ${end.error.code}.`,
  );
  return { kind: told ? 'failed' : 'passed' };
}

async function toAnother(
  deflected: Deflected,
  setting: FallbackSetting,
  model: string | null,
): Promise<Tried> {
  const { parts, exchange, asker, waiting, error, passed } = deflected;
  const { request } = exchange;
  // Another server of this machine has a lane too, which whoever knows of lanes takes.
  const turn =
    exchange.work === 'generate'
      ? await acquireTurn(parts.gate, setting.url, {
          session: asker.name,
          model,
          class: asker.conduct.class,
          signal: exchange.departure.signal,
          reports: false,
          onReport: (report) => parts.report(failOpenNews(report, { session: asker.name, model })),
        })
      : null;
  using _turn = turn;
  if (turn !== null && !isGranted(turn)) {
    passed.push(`${setting.name} is in use too.`);
    return { kind: 'passed' };
  }
  delete exchange.own['x-landlord-turn'];
  exchange.seat?.moveAway();
  tell(deflected, setting);
  const begun = waiting.end();
  const { origin, path } = upstreamPath(setting.url, withoutKeys(exchange.meantPath));
  const { body, contentLength } = bodyFor(exchange, model);
  const key = setting.apiKeyEnv === null ? null : parts.env(setting.apiKeyEnv);
  const unsaid = unsaidOf(key);
  const { bearer, apiKey } = keyHeaders(origin, exchange.dialect, key);
  const headers = requestHeaders(request.rawHeaders, {
    contentLength,
    identity: begun || unsaid !== null,
    foreign: true,
    apiKey: bearer,
  });
  if (apiKey !== null) headers.push('x-api-key', apiKey);
  const end = await forward(await parts.dispatcher(), {
    origin,
    method: request.method ?? 'GET',
    path,
    headers,
    body,
    own: exchange.own,
    unsaid,
    response: exchange.response,
    departure: exchange.departure,
    isLost: null,
    begun: begun ? (status, text) => begunError(exchange, status, text) : null,
    monotonicMs: parts.monotonicMs,
  });
  if (end.kind === 'done' && isAway(end.status))
    parts.health.failed(setting, `it answered with status ${end.status}`);
  else if (end.kind === 'done') parts.health.worked(setting);
  // No fault of its provider's.
  else if (end.kind === 'refused' && end.error instanceof BodyTooLarge) return { kind: 'too_large' };
  else if (end.kind === 'refused') parts.health.failed(setting, end.error.message);
  if (end.kind !== 'refused') return { kind: 'over', outcome: outcomeOf(end, setting.name, error.code) };
  passed.push(`${setting.name} gave no answer (${end.error.message}).`);
  return { kind: 'failed' };
}

function outcomeOf(
  end: Exclude<Forwarded, { readonly kind: 'refused' }>,
  backend: string,
  reason: string,
): Outcome {
  const base = { route: 'fallback' as const, backend };
  return end.kind === 'gone'
    ? { ...base, reason: 'client_left', status: null, firstByteAtMs: null, tail: '' }
    : { ...base, ...end, reason };
}

/** In the answer's headers and in the log, when it is about to be sent. */
function tell({ parts, exchange, route, asker, error, passed }: Deflected, setting: FallbackSetting): void {
  const why = [`${error.code}: ${error.message.replace(/\.$/, '')}.`, ...passed].join(' ');
  exchange.own['x-landlord-route'] = 'fallback';
  exchange.own['x-landlord-backend'] = setting.name;
  exchange.own['x-landlord-reason'] = headerText(why);
  parts.tell({
    kind: 'deflected',
    reason: `${why} This turn went to ${setting.name}; the next one tries ${route.setting.name} first.`,
    backend: route.setting.name,
    ...modelOf(route.view),
    ...(asker.name === null ? {} : { session: asker.name }),
    numbers: { ...error.numbers, waitedMs: Math.round(exchange.waitedMs) },
  });
}
