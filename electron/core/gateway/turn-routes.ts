import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import { acquireTurn } from '../gate/acquire.ts';
import type { Gate } from '../gate/gate.ts';
import { failOpenNews } from '../gate/news.ts';
import { type TurnWish, turnWish } from '../http/bodies.ts';
import { refusal, refusalOf } from '../http/errors.ts';
import { SAFE_HEADERS } from '../http/headers.ts';
import { refuse } from '../http/routes.ts';
import { openSseStream, sseFrame } from '../http/sse.ts';
import { findModel } from '../loop/find-model.ts';
import type { CommandContext } from '../loop/load-command.ts';
import type { ReportedEvent } from '../runtime-api.ts';
import type { QueueSnapshot } from './device-queue.ts';
import type { Gateway } from './gateway.ts';
import { heldByCaller } from './lane.ts';
import { refusalFor, sendRefusal } from './refusals.ts';
import { deviceOfBackend } from './route.ts';

export interface TurnRoutesOptions {
  readonly gateway: Gateway;
  readonly gate: Gate;
  readonly context: CommandContext;
  readonly report: (event: ReportedEvent) => void;
}

/**
 * Held or waited for. Each looks at the lane by itself: 100 take a third of a core, and with 300 nothing else here
 * was answered any more (measured). Requests to the gateway stand in one line, which costs the same however long.
 */
const MOST = 100;
const KEEP_ALIVE_MS = 15_000;
const STREAM = { keepAliveMs: KEEP_ALIVE_MS, blockedLimitMs: 60_000 };

/**
 * `POST /api/turns`: one lane for several requests, held by the connection of this one. Its first line
 * names the turn, for `x-landlord-turn`; it ends with the connection, and so with the process.
 * `GET /api/yield`: whether batch work should make way now; as a stream, each change.
 */
export function addTurnRoutes(app: FastifyInstance, options: TurnRoutesOptions): void {
  const { gateway, gate, context } = options;
  let open = 0;

  app.post('/api/turns', async (request, reply) => {
    const wish = turnWish(request.body);
    if (!wish.ok) return refuse(reply, refusalOf(wish.error));
    const { session, class: turnClass, waitMs } = wish.value;
    const target = targetOf(context, wish.value);
    if (!target.ok) return refuse(reply, refusalOf(target.error));
    const { setting, url, modelId, model, deviceId } = target.value;
    if (open >= MOST) {
      const message = `${MOST} turns are held or waited for already; end one of them first.`;
      return refuse(reply, refusal(503, 'too_many_streams', message));
    }
    const gone = new AbortController();
    open += 1;
    reply.raw.on('close', () => {
      open -= 1;
      gone.abort();
    });
    // Who holds it by flock would wait for itself (rule 20).
    const own = await heldByCaller({ gate, url, model, request: request.raw });
    const turn =
      own ??
      (await acquireTurn(gate, url, {
        session,
        model,
        class: turnClass,
        waitMs,
        signal: gone.signal,
        reports: false,
        onReport: (report) => options.report(failOpenNews(report, { session, model })),
      }));
    reply.hijack();
    if (turn.kind === 'cancelled') return reply;
    if (turn.kind === 'busy') {
      const numbers = { heldForMs: turn.heldForMs, waitedMs: Math.round(turn.waitedMs) };
      sendRefusal(reply.raw, refusalFor(fail(turn.code, turn.message, numbers).error), 'openai', {});
      return reply;
    }
    const held = gateway.hold(modelId, deviceId, turnClass, session);
    const beat = setInterval(() => reply.raw.write('\n'), KEEP_ALIVE_MS);
    const release = (): void => {
      clearInterval(beat);
      held[Symbol.dispose]();
      if (turn.kind !== 'own') turn[Symbol.dispose]();
    };
    if (gone.signal.aborted) {
      release();
      return reply;
    }
    gone.signal.addEventListener('abort', release, { once: true });
    const name = turn.kind === 'own' ? turn.name : 'turn' in turn ? turn.turn : null;
    reply.raw.writeHead(200, {
      ...SAFE_HEADERS,
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store',
    });
    reply.raw.write(
      `${JSON.stringify({ turn: name, backend: setting.name, lane: turn.kind === 'own' ? 'nested' : turn.kind, class: turnClass })}\n`,
    );
    return reply;
  });

  app.get('/api/yield', (request, reply) => {
    if (!wantsStream(request)) return reply.send(answer(gateway.queues()));
    reply.hijack();
    const stream = openSseStream(reply.raw, SAFE_HEADERS, STREAM);
    let sent = '';
    const tell = (): void => {
      const data = JSON.stringify(answer(gateway.queues()));
      if (data !== sent && stream.send(sseFrame({ event: 'yield', data }))) sent = data;
    };
    const undo = gateway.onQueues(tell);
    stream.onOpen(tell);
    stream.onClose(undo);
    tell();
    return reply;
  });
}

function answer(queues: ReadonlyMap<string, QueueSnapshot>): unknown {
  const devices = [...queues].map(([id, queue]) => ({ id: id === '' ? null : id, ...queue }));
  return { yield: devices.some((device) => device.yield), devices };
}

function wantsStream(request: FastifyRequest): boolean {
  return (request.headers.accept ?? '').includes('text/event-stream');
}

interface Target {
  readonly setting: BackendSetting;
  readonly url: string;
  readonly modelId: string | null;
  readonly model: string | null;
  readonly deviceId: string | null;
}

function targetOf(
  { fleet, loop }: CommandContext,
  wanted: Pick<TurnWish, 'backend' | 'model'>,
): Result<Target> {
  const view = wanted.model === null ? null : findModel(loop.models.views(), wanted.model);
  if (view !== null && !view.ok) return view;
  const name = wanted.backend ?? view?.value.backend;
  if (name === undefined) return fail('bad_input', 'Say for which `model` or `backend` the turn is.');
  const setting = fleet.setting(name);
  if (setting === null || setting.url === null)
    return fail('unknown_backend', `There is no backend ${name}; \`landlord status\` lists them.`);
  return ok({
    setting,
    url: setting.url,
    modelId: view?.value.id ?? null,
    model: view?.value.observed.name ?? null,
    deviceId: view?.value.deviceId ?? deviceOfBackend(setting, loop.models.views()),
  });
}
