import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { messageOf } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import type { BackendSetting, Settings } from '../../../shared/settings.ts';
import type { FallbackState } from '../../../shared/state.ts';
import type { RequestRecord } from '../events/request-record.ts';
import type { Gate } from '../gate/gate.ts';
import type { TurnClass } from '../gate/sidecar.ts';
import type { CommandContext } from '../loop/load-command.ts';
import type { ModelUse } from '../loop/world.ts';
import type { ReportedEvent } from '../runtime-api.ts';
import { keyFrom } from '../security/key-from.ts';
import { type Admission, createAdmission, isUp } from './admission.ts';
import { Counts } from './counts.ts';
import { DeviceQueue, type QueueSnapshot } from './device-queue.ts';
import { Endings, recordOf } from './endings.ts';
import { openExchange } from './exchange.ts';
import { askFallback } from './fallback.ts';
import { FallbackHealth } from './fallback-health.ts';
import { type Flight, InFlight } from './in-flight.ts';
import { LaneLines } from './lane-line.ts';
import { modelDetail, modelList } from './model-list.ts';
import { sendRefusal } from './refusals.ts';
import { KnownRoutes } from './route.ts';
import { serve } from './serve.ts';
import { Turnover, type TurnoverPace } from './turnover.ts';
import { upstreamOf } from './upstream-path.ts';

export interface GatewayOptions {
  readonly context: CommandContext;
  readonly gate: Gate;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly tell: (event: NewEvent) => void;
  readonly report: (event: ReportedEvent) => void;
  /** Each request that is over. */
  readonly onRequest: (record: RequestRecord) => void;
  readonly pace?: Partial<GatewayPace>;
  /** Left out: nothing is parked. */
  readonly parking?: GatewayParking;
  /** Tests: another way out. */
  readonly dispatcher?: Dispatcher;
}

/** What a request has to do with conversations that were parked. */
export interface GatewayParking {
  /** To be waited for before the model is asked; null: nothing. Never rejects. */
  before(modelId: string): Promise<void> | null;
  /** Milliseconds of prompt that this answer was spared, by its end; null: none that is known. */
  answered(modelId: string, tail: string): number | null;
}

export interface GatewayPace {
  /** A waiting stream hears of us after this long, and then every so often. */
  readonly keepAliveMs: { readonly first: number; readonly every: number };
  readonly turnover: TurnoverPace;
  /** How soon an entry that failed is asked again. */
  readonly fallbacks?: { readonly firstMs: number; readonly mostMs: number };
}

/** What serving one request needs of the gateway. */
export interface GatewayParts {
  readonly context: CommandContext;
  readonly gate: Gate;
  readonly admission: Admission;
  readonly lines: LaneLines;
  readonly turnover: Turnover;
  readonly flights: InFlight;
  readonly routes: KnownRoutes;
  /** A promise only for the first who asks. */
  dispatcher(): Dispatcher | Promise<Dispatcher>;
  readonly keepAliveMs: { readonly first: number; readonly every: number };
  readonly parking: GatewayParking | null;
  readonly health: FallbackHealth;
  readonly tell: (event: NewEvent) => void;
  readonly report: (event: ReportedEvent) => void;
  settings(): Settings;
  env(name: string): string | null;
  queue(deviceId: string | null): DeviceQueue;
  readonly endings: Endings;
  monotonicMs(): number;
  epochMs(): number;
}

export interface Gateway {
  /** Serves one request of `/v1`, or of a backend's front port. Resolves when it is over; never rejects. */
  handle(request: IncomingMessage, response: ServerResponse, front: BackendSetting | null): Promise<void>;
  /** `GET /v1/models`. */
  models(): unknown;
  /** `GET /v1/models/{id}`; null: there is none. */
  model(id: string): unknown;
  /** Whose turn a model serves now; null: nobody's of ours. */
  use(modelId: string): ModelUse | null;
  /** Requests that are served or wait to be. */
  flights(): readonly Flight[];
  /** Per device, for those who run batch work against a backend itself. */
  queues(): ReadonlyMap<string, QueueSnapshot>;
  onQueues(listener: () => void): () => void;
  /** Counts as a request of that class while it is not disposed: a turn held by a connection. */
  hold(
    modelId: string | null,
    deviceId: string | null,
    turnClass: TurnClass,
    caller: string | null,
  ): Disposable;
  metrics(): Promise<string>;
  /** Has each request that is over told (`onRequest`), which else comes a moment later. */
  settle(): void;
  /** The chain as it stands; `iso`: of a monotonic time. */
  fallbacks(iso: (monotonicMs: number) => string): readonly FallbackState[];
  stop(): Promise<void>;
}

/** A backend on this machine answers a connection at once or not at all. */
const CONNECT_LIMIT_MS = 10_000;
const KEEP_ALIVE_MS = { first: 5_000, every: 10_000 };
/** Models whose device is not known share one queue. */
const NO_DEVICE = '';

export function createGateway(options: GatewayOptions): Gateway {
  const { context } = options;
  const stopping = new AbortController();
  const flights = new InFlight();
  const counts = new Counts();
  const queues = new Map<string, DeviceQueue>();
  const listeners = new Set<() => void>();
  const monotonicMs = (): number => context.clock.monotonicMs();
  let dispatcher: Dispatcher | Promise<Dispatcher> | null = options.dispatcher ?? null;
  let calm: NodeJS.Timeout | null = null;
  const onChange = (): void => {
    if (listeners.size === 0) return;
    for (const listener of listeners) listener();
    awaitCalm();
  };
  /** Batch may go on a while after the last interactive request: nothing else happens then that would tell it so. */
  const awaitCalm = (): void => {
    if (calm !== null) clearTimeout(calm);
    const inMs = Math.min(...[...queues.values()].map((one) => one.calmInMs() ?? Number.POSITIVE_INFINITY));
    calm = Number.isFinite(inMs) ? setTimeout(onChange, Math.ceil(inMs) + 1) : null;
    calm?.unref();
  };
  const queue = (deviceId: string | null): DeviceQueue => {
    const id = deviceId ?? NO_DEVICE;
    const known = queues.get(id);
    if (known !== undefined) return known;
    const made = new DeviceQueue({ monotonicMs, onChange });
    queues.set(id, made);
    return made;
  };
  const health = new FallbackHealth({
    probe: (setting) => askFallback(setting, keyFrom(options.env, setting.apiKeyEnv)),
    tell: options.tell,
    monotonicMs,
    ...(options.pace?.fallbacks === undefined ? {} : { pace: options.pace.fallbacks }),
  });
  const savedPromptMs = (model: string, tail: string): number | null =>
    options.parking?.answered(model, tail) ?? null;
  const endings = new Endings((ending) => {
    const record = recordOf(ending, savedPromptMs);
    counts.add(record);
    options.onRequest(record);
  });
  const parts: GatewayParts = {
    context,
    gate: options.gate,
    admission: createAdmission(context, stopping.signal),
    lines: new LaneLines(() => options.gate.world.monotonicMs()),
    turnover: new Turnover(context, options.pace?.turnover),
    flights,
    routes: new KnownRoutes((backend) => isUp(context, backend)),
    dispatcher() {
      dispatcher ??= makeDispatcher().then((made) => {
        dispatcher = made;
        return made;
      });
      return dispatcher;
    },
    keepAliveMs: options.pace?.keepAliveMs ?? KEEP_ALIVE_MS,
    parking: options.parking ?? null,
    health,
    tell: options.tell,
    report: options.report,
    settings: () => context.loop.settings,
    env: (name) => keyFrom(options.env, name),
    queue,
    endings,
    monotonicMs,
    epochMs: () => context.clock.epochMs(),
  };

  return {
    async handle(request, response, front) {
      const upstream =
        front === null ? null : upstreamOf(request.url ?? '/', front, context.loop.models.views());
      const exchange = openExchange(request, response, front, monotonicMs(), upstream);
      try {
        await serve(parts, exchange);
      } catch (thrown) {
        const message = `The gateway failed on this request (${messageOf(thrown)}).`;
        if (response.headersSent) response.destroy();
        else
          sendRefusal(
            response,
            { status: 500, code: 'internal', message, numbers: {}, retryAfterS: null },
            exchange.dialect,
            exchange.own,
          );
      } finally {
        const spool = exchange.head?.spool ?? null;
        if (spool !== null) await spool[Symbol.asyncDispose]();
      }
    },
    models: () => modelList(context),
    model: (id) => modelDetail(context, id),
    use: (modelId) => flights.use(modelId),
    flights() {
      // Whoever is no longer in flight is to be found among those that were served.
      endings.settle();
      return flights.list();
    },
    settle: () => endings.settle(),
    queues: () => new Map([...queues].map(([id, one]) => [id, one.snapshot()])),
    onQueues(listener) {
      listeners.add(listener);
      awaitCalm();
      return () => listeners.delete(listener);
    },
    hold(modelId, deviceId, turnClass, caller) {
      const flight = flights.enter({ modelId, deviceId, class: turnClass, caller, sinceMs: monotonicMs() });
      const pass = turnClass === 'interactive' ? queue(deviceId).enter(turnClass, stopping) : null;
      return {
        [Symbol.dispose]() {
          if (pass !== null && !(pass instanceof Promise)) pass[Symbol.dispose]();
          flight[Symbol.dispose]();
        },
      };
    },
    metrics() {
      endings.settle();
      return counts.render(flights.list().length);
    },
    fallbacks: (iso) => health.states(context.loop.settings.fallbacks, iso),
    async stop() {
      stopping.abort();
      if (calm !== null) clearTimeout(calm);
      health.stop();
      await (await dispatcher)?.destroy();
      endings.settle();
    },
  };
}

/** undici takes 30 MB of memory (measured): whoever never asks the gateway does not pay for it. */
async function makeDispatcher(): Promise<Dispatcher> {
  const { Agent } = await import('undici');
  // A prompt may take minutes before the first byte, and a model may think in the middle: no time limit
  // of ours, the client has its own. No pipelining: a request behind another would wait for it.
  return new Agent({
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: CONNECT_LIMIT_MS },
    // llama-server drops a quiet connection after 5 s (cpp-httplib's default).
    keepAliveTimeout: 4_000,
    keepAliveTimeoutThreshold: 1_500,
  });
}
