import type { IncomingMessage } from 'node:http';
import { fail, type LandlordError, type Result } from '../../../shared/errors.ts';
import type { BackendSetting, Settings } from '../../../shared/settings.ts';
import { startForUse } from '../loop/first-use.ts';
import { agentSettingOf, callingProcess, conductOf, foundProcess, statedCaller } from './caller.ts';
import { endpointOf } from './endpoints.ts';
import type { Exchange } from './exchange.ts';
import { mayHaveBody } from './exchange.ts';
import { admitLoad } from './front-load.ts';
import type { GatewayParts } from './gateway.ts';
import { type Asker, modelOf, type Outcome } from './outcome.ts';
import { type GatewayRefusal, refusalFor, refuseBody, sendRefusal } from './refusals.ts';
import { isForm, isJson, readHead } from './request-head.ts';
import { deviceOfBackend, frontRoute, type Route } from './route.ts';
import { Seat } from './seat.ts';
import { sendElsewhere } from './send-elsewhere.ts';
import { sendLocally } from './send-locally.ts';
import { isUnloadWish } from './unload-wish.ts';
import { createWaiting, type Waiting } from './waiting.ts';

const TOO_LARGE: GatewayRefusal = {
  status: 413,
  code: 'too_large',
  message: 'A request may have at most 64 MiB. Send smaller images, or fewer in one request.',
  numbers: { limitBytes: 64 * 1024 * 1024 },
  retryAfterS: null,
};

const NO_PATH: GatewayRefusal = {
  status: 400,
  code: 'bad_input',
  message: 'The address must be a path such as /v1/chat/completions, without ., .., # or %u in it.',
  numbers: {},
  retryAfterS: null,
};

const NO_ROOM: GatewayRefusal = {
  status: 507,
  code: 'storage_failed',
  message:
    'The model is named behind more than 1 MiB, which is kept in a file until then, and the disk is full. Put "model" first, or free some room in /var/tmp.',
  numbers: {},
  retryAfterS: null,
};

const NO_JSON: LandlordError = {
  code: 'bad_input',
  message:
    'The body is not valid JSON, so it names no model. Send an object such as {"model": …, "messages": […]}.',
};

/** Why no model can be found in what should name one; null: it is a text that could. */
function unreadable({ head, request, work }: Exchange): LandlordError | null {
  if (work === 'other' || head === null) return null;
  const packed = request.headers['content-encoding'];
  if (packed !== undefined && packed.toLowerCase() !== 'identity')
    return fail(
      'bad_input',
      `The body is packed (content-encoding: ${packed}), and what is packed is not looked into for its model. Send it as it is.`,
    ).error;
  return head.whole && !isForm(request) && !isJson(head.bytes) ? NO_JSON : null;
}

/** A round through the queue of microtasks: by then the parser has handed on all of a body that came with its head. */
const HANDED_ON = Promise.resolve();

/** One request from its head to its end: read, route, send here or elsewhere, record. */
export async function serve(parts: GatewayParts, exchange: Exchange): Promise<void> {
  const { request, response, front } = exchange;
  if (!endpointOf(exchange.path).isPlain) {
    refuseBody(request, response, NO_PATH, exchange.dialect, {});
    return;
  }
  // A front port passes all else on as it is; only what works on a model is looked into.
  const isRead = mayHaveBody(request) && (front === null || exchange.work !== 'other');
  if (front !== null && exchange.work === 'other' && !(await admitLoad(parts, exchange, front))) return;
  if (isRead) {
    await HANDED_ON;
    const reading = readHead(request);
    const read = reading instanceof Promise ? await reading : reading;
    if (read.kind === 'gone') return;
    if (read.kind === 'too_large') {
      // What still comes is not read: the connection can't be used again.
      refuseBody(request, response, TOO_LARGE, exchange.dialect, {});
      return;
    }
    if (read.kind === 'no_room') {
      refuseBody(request, response, NO_ROOM, exchange.dialect, {});
      return;
    }
    exchange.head = read.head;
    if (isUnloadWish(exchange)) exchange.work = 'other';
  }
  const { loop, fleet } = parts.context;
  const wanted = exchange.pathModel ?? exchange.head?.model?.value ?? null;
  const look = (): Result<Route> =>
    front === null
      ? parts.routes.resolve(wanted, loop.models.views(), fleet.settings())
      : { ok: true, value: frontRoute(wanted, loop.models.views(), front, front.url ?? '') };
  const first = look();
  // A server of ours may wait for its first use.
  const mayStart = first.ok ? first.value.view === null && first.value.setting.start === 'use' : true;
  const name = first.ok ? `${first.value.setting.name}/` : wanted;
  const route =
    mayStart && (await startForUse(parts.context, name, exchange.departure.signal)) ? look() : first;
  if (!route.ok) {
    const error = (wanted === null ? unreadable(exchange) : null) ?? route.error;
    const refusal = refusalFor(error);
    sendRefusal(response, refusal, exchange.dialect, {});
    recordEnd(parts, exchange, wanted, null, refusedOutcome(null, error, refusal.status));
    return;
  }
  await serveRoute(parts, exchange, route.value);
}

async function serveRoute(parts: GatewayParts, exchange: Exchange, route: Route): Promise<void> {
  const { setting, view } = route;
  const asking = askerOf(parts, exchange);
  const asker = asking instanceof Promise ? await asking : asking;
  exchange.own['x-landlord-route'] = 'local';
  exchange.own['x-landlord-backend'] = setting.name;
  if (exchange.work === 'other') {
    const end = await sendLocally(parts, exchange, route, asker, null);
    if (end.kind === 'too_large')
      refuseBody(exchange.request, exchange.response, TOO_LARGE, exchange.dialect, {});
    if (end.kind === 'not_here' && !exchange.departure.left)
      sendRefusal(exchange.response, refusalFor(end.error), exchange.dialect, exchange.own);
    return;
  }
  const modelId = view?.id ?? null;
  const deviceId = view?.deviceId ?? deviceOfBackend(setting, parts.context.loop.models.views());
  const turnClass = asker.conduct.class;
  // No `using` here: V8 calls out of JavaScript for each, which took 2 µs of a request (perf).
  const seat = new Seat(
    parts.flights,
    parts.queue(deviceId),
    { modelId, deviceId, class: turnClass, caller: asker.name, sinceMs: exchange.arrivedAtMs },
    exchange.departure,
  );
  exchange.seat = seat;
  const waiting = createWaiting({
    response: exchange.response,
    isStream: exchange.head?.stream === true && endpointOf(exchange.meantPath).streamsEvents,
    own: () => exchange.own,
    firstMs: parts.keepAliveMs.first,
    everyMs: parts.keepAliveMs.every,
  });
  try {
    const entered = seat.enter();
    if (entered !== true) {
      const fromMs = parts.monotonicMs();
      waiting.begin('waiting: interactive requests come first');
      const isIn = await entered;
      exchange.waitedMs += parts.monotonicMs() - fromMs;
      if (!isIn) {
        record(parts, exchange, route, asker, leftOutcome(setting));
        return;
      }
    }
    const outcome = await serveAdmitted(parts, exchange, route, asker, waiting);
    const { beside } = seat;
    if (
      turnClass === 'interactive' &&
      outcome.route === 'local' &&
      outcome.firstByteAtMs !== null &&
      beside !== null
    )
      parts.queue(deviceId).felt(outcome.firstByteAtMs - exchange.arrivedAtMs - exchange.waitedMs, beside);
  } finally {
    waiting.end();
    if (modelId !== null) parts.turnover.used(modelId, turnClass);
    seat[Symbol.dispose]();
  }
}

async function serveAdmitted(
  parts: GatewayParts,
  exchange: Exchange,
  route: Route,
  asker: Asker,
  waiting: Waiting,
): Promise<Outcome> {
  const local = await sendLocally(parts, exchange, route, asker, waiting);
  let end: Outcome;
  switch (local.kind) {
    case 'over':
      end = local.outcome;
      break;
    case 'not_here':
      end = await instead(parts, exchange, route, asker, waiting, local.error);
      break;
    case 'too_large':
      end = refuseTooLarge(exchange, route);
  }
  record(parts, exchange, route, asker, end);
  return end;
}

function refuseTooLarge({ request, response, dialect, own }: Exchange, { setting }: Route): Outcome {
  refuseBody(request, response, TOO_LARGE, dialect, own);
  return { ...refusedOutcome(setting, fail('bad_input', '').error, 413), reason: 'too_large' };
}

/** The turn is deflected where that is wished and set; else it is refused, with its reason. */
async function instead(
  parts: GatewayParts,
  exchange: Exchange,
  route: Route,
  asker: Asker,
  waiting: Waiting,
  cause: LandlordError,
): Promise<Outcome> {
  const { response, dialect } = exchange;
  let error = cause;
  if (error.code === 'cancelled' || exchange.departure.left) return leftOutcome(route.setting);
  const mayGoElsewhere = ['local_backend_busy', 'vram_denied', 'big_models_asleep', 'draining'].includes(
    error.code,
  );
  if (mayGoElsewhere && asker.conduct.onBusy === 'fallback') {
    const sent = await sendElsewhere(parts, exchange, route, asker, waiting, error);
    if (sent.kind === 'sent') return sent.outcome;
    if (sent.kind === 'too_large') return refuseTooLarge(exchange, route);
    if (sent.why.length > 0)
      error = { ...error, message: [`${error.message.replace(/\.$/, '')}.`, ...sent.why].join(' ') };
  }
  // A denial of memory is in the log already, with its numbers (load-command.ts).
  if (error.code === 'local_backend_busy' || error.code === 'big_models_asleep')
    parts.tell({
      kind: 'denied',
      reason: `${error.code}: ${error.message}`,
      backend: route.setting.name,
      ...modelOf(route.view),
      ...(asker.name === null ? {} : { session: asker.name }),
      numbers: { ...error.numbers, waitedMs: Math.round(exchange.waitedMs) },
    });
  waiting.end();
  exchange.own['x-landlord-reason'] = error.code;
  const refused = refusalFor(error);
  sendRefusal(response, refused, dialect, exchange.own);
  return refusedOutcome(route.setting, error, refused.status);
}

function askerOf(parts: GatewayParts, exchange: Exchange): Asker | Promise<Asker> {
  const { request } = exchange;
  const { agents } = parts.settings();
  const stated = statedCaller(request, exchange.head?.user ?? null, agents);
  if (stated !== null) return named(parts, request, stated.name);
  const found = foundProcess(request.socket);
  if (found !== null) return named(parts, request, found.name);
  // Looking for the process costs a walk over /proc: only where its name decides something now.
  return exchange.work !== 'other' && Object.keys(agents).length > 0
    ? callingProcess(request.socket).then(({ name }) => named(parts, request, name))
    : named(parts, request, null);
}

interface KnownAsker {
  readonly settings: Settings;
  readonly classHeader: string | string[] | undefined;
  readonly asker: Asker;
}

/** Who asked last: requests of one agent follow one another. */
let lastAsker: KnownAsker | null = null;

function named(parts: GatewayParts, request: IncomingMessage, name: string | null): Asker {
  const settings = parts.settings();
  const classHeader = request.headers['x-landlord-class'];
  if (
    lastAsker?.settings === settings &&
    lastAsker.classHeader === classHeader &&
    lastAsker.asker.name === name
  )
    return lastAsker.asker;
  const conduct = conductOf(classHeader, agentSettingOf(name, settings), settings.fallbacks.length > 0);
  lastAsker = { settings, classHeader, asker: { name, conduct } };
  return lastAsker.asker;
}

function refusedOutcome(setting: BackendSetting | null, error: LandlordError, status: number): Outcome {
  return {
    route: 'refused',
    backend: setting?.name ?? null,
    reason: error.code,
    status,
    firstByteAtMs: null,
    tail: '',
  };
}

function leftOutcome(setting: BackendSetting): Outcome {
  return { ...refusedOutcome(setting, fail('cancelled', '').error, 0), reason: 'client_left', status: null };
}

function record(parts: GatewayParts, exchange: Exchange, route: Route, asker: Asker, outcome: Outcome): void {
  const name = route.view?.id ?? exchange.pathModel ?? exchange.head?.model?.value ?? null;
  recordEnd(parts, exchange, name, asker, outcome);
}

function recordEnd(
  parts: GatewayParts,
  exchange: Exchange,
  model: string | null,
  asker: Asker | null,
  outcome: Outcome,
): void {
  const { socket } = exchange.request;
  const ending = {
    outcome,
    model,
    agent: asker?.name ?? null,
    class: asker?.conduct.class ?? 'interactive',
    isStream: exchange.head?.stream === true,
    arrivedAtMs: exchange.arrivedAtMs,
    waitedMs: exchange.waitedMs,
    endedAtMs: parts.monotonicMs(),
    endedAtEpochMs: parts.epochMs(),
  };
  if (ending.agent !== null || socket.destroyed) {
    parts.endings.add(ending);
    return;
  }
  // After the answer, and off its way: the process behind a connection is looked for once a connection.
  setImmediate(() => {
    void callingProcess(socket).then(({ name }) => parts.endings.add({ ...ending, agent: name }));
  });
}
