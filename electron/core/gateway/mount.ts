import type { FastifyInstance } from 'fastify';
import type { BackendSetting } from '../../../shared/settings.ts';
import type { RequestLog } from '../events/request-log.ts';
import type { RequestRecord } from '../events/request-record.ts';
import type { Gate } from '../gate/gate.ts';
import type { GatewayMount } from '../http/routes.ts';
import type { CommandContext } from '../loop/load-command.ts';
import type { ModelUse } from '../loop/world.ts';
import type { ReportedEvent } from '../runtime-api.ts';
import { Fronts } from './front.ts';
import { createGateway, type GatewayPace, type GatewayParking } from './gateway.ts';
import { addHistoryRoute } from './history-route.ts';
import type { Flight } from './in-flight.ts';
import { addGatewayRoutes } from './routes.ts';
import { addTurnRoutes } from './turn-routes.ts';

export interface MountOptions {
  readonly context: CommandContext;
  readonly gate: Gate;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly report: (event: ReportedEvent) => void;
  readonly requests: RequestLog;
  readonly pace?: Partial<GatewayPace>;
  readonly parking?: GatewayParking;
  /** Called with each request that is over, beside the history. */
  readonly onRequest?: (record: RequestRecord) => void;
}

export interface MountedGateway extends GatewayMount {
  /** Listens at the front ports of these backends, and no others. */
  front(backends: readonly BackendSetting[]): Promise<void>;
  /** Whose turn a model serves now. */
  use(modelId: string): ModelUse | null;
  /** Requests that are served or wait to be. */
  flights(): readonly Flight[];
  /** The fallback chain as it stands. */
  fallbacks: ReturnType<typeof createGateway>['fallbacks'];
  stop(): Promise<void>;
}

/** The gateway with its doors: `/v1` and the turns on the server's port, and a port of its own where a backend has a front. */
export function mountGateway(options: MountOptions): MountedGateway {
  const { context, gate, report } = options;
  const tell: Parameters<typeof createGateway>[0]['tell'] = (event) => context.journal.tell(event);
  const gateway = createGateway({
    context,
    gate,
    env: options.env,
    tell,
    report,
    onRequest: (record) => {
      options.requests.add(record);
      options.onRequest?.(record);
    },
    ...(options.pace === undefined ? {} : { pace: options.pace }),
    ...(options.parking === undefined ? {} : { parking: options.parking }),
  });
  const fronts = new Fronts(gateway, tell);
  return {
    addRoutes(app: FastifyInstance) {
      addGatewayRoutes(app, gateway);
      addTurnRoutes(app, { gateway, gate, context, report });
      addHistoryRoute(app, (query) => {
        gateway.settle();
        return options.requests.query(query);
      });
    },
    handle: (request, response) => gateway.handle(request, response, null),
    metrics: () => gateway.metrics(),
    origins: () => context.loop.settings.server.origins,
    front: (backends) => fronts.set(backends),
    use: (modelId) => gateway.use(modelId),
    flights: () => gateway.flights(),
    fallbacks: (iso) => gateway.fallbacks(iso),
    async stop() {
      await fronts.stop();
      await gateway.stop();
      await options.requests.flush();
    },
  };
}
