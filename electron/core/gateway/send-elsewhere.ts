import type { LandlordError } from '../../../shared/errors.ts';
import { failOpenNews } from '../gate/news.ts';
import type { Exchange } from './exchange.ts';
import { takeFallback, upstreamPath } from './fallback.ts';
import { forward } from './forward.ts';
import type { GatewayParts } from './gateway.ts';
import { headerText, requestHeaders } from './headers.ts';
import { type Asker, modelOf, type Outcome } from './outcome.ts';
import type { Route } from './route.ts';
import { begunError, bodyFor } from './send-locally.ts';
import type { Waiting } from './waiting.ts';

/**
 * Down the fallback chain, for this one request: the next one tries local first again (rule 18). Local
 * entries whose lane is in use are passed over. null: the chain has nobody who may serve it now.
 */
export async function sendElsewhere(
  parts: GatewayParts,
  exchange: Exchange,
  route: Route,
  asker: Asker,
  waiting: Waiting,
  error: LandlordError,
): Promise<Outcome | null> {
  const { request, head } = exchange;
  const wanted = route.view?.observed.name ?? head?.model?.value ?? null;
  let from = 0;
  for (;;) {
    const taken = await takeFallback(parts.gate, parts.settings(), wanted, {
      from,
      session: asker.name,
      class: asker.conduct.class,
      signal: exchange.gone,
      onReport: (report) => parts.report(failOpenNews(report, { session: asker.name, model: wanted })),
    });
    if (taken === null) return null;
    using _turn = taken.turn;
    const { setting, model } = taken.entry;
    const passed =
      taken.passedOver.length === 0
        ? ''
        : ` ${taken.passedOver.join(' and ')} ${taken.passedOver.length === 1 ? 'is' : 'are'} in use too.`;
    exchange.own['x-landlord-route'] = 'fallback';
    exchange.own['x-landlord-backend'] = setting.name;
    exchange.own['x-landlord-reason'] = headerText(`${error.code}: ${error.message}${passed}`);
    delete exchange.own['x-landlord-turn'];
    parts.tell({
      kind: 'deflected',
      reason:
        `${error.code}: ${error.message}.${passed} This turn went to ${setting.name}; the next one tries ${route.setting.name} first.`.replace(
          '..',
          '.',
        ),
      backend: route.setting.name,
      ...modelOf(route.view),
      ...(asker.name === null ? {} : { session: asker.name }),
      numbers: { ...error.numbers, waitedMs: Math.round(exchange.waitedMs) },
    });
    const begun = waiting.end();
    const { origin, path } = upstreamPath(setting.url, exchange.path);
    const { body, contentLength } = bodyFor(exchange, model ?? null);
    const key = setting.apiKeyEnv === null ? null : parts.env(setting.apiKeyEnv);
    const headers = requestHeaders(request.rawHeaders, {
      contentLength,
      identity: begun,
      foreign: true,
      apiKey: key,
    });
    // Anthropic's own servers know this header alone.
    if (key !== null && exchange.dialect === 'anthropic') headers.push('x-api-key', key);
    const end = await forward({
      dispatcher: await parts.dispatcher(),
      origin,
      method: request.method ?? 'GET',
      path,
      headers,
      body,
      own: exchange.own,
      response: exchange.response,
      signal: exchange.gone,
      isLost: null,
      begun: begun ? (status, text) => begunError(exchange, status, text) : null,
      monotonicMs: parts.monotonicMs,
    });
    const base = { route: 'fallback' as const, backend: setting.name, reason: error.code };
    if (end.kind === 'done' || end.kind === 'broken') return { ...base, ...end };
    if (end.kind === 'gone')
      return { ...base, reason: 'client_left', status: null, firstByteAtMs: null, tail: '' };
    if (head?.whole === false) return null;
    from = taken.index + 1;
  }
}
