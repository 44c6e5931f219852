import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { NewEvent } from '../../../shared/events.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import {
  answerWithin,
  connectionLimit,
  HEAD_LIMIT_MS,
  openFilesLimit,
  refuseNonsense,
} from '../http/crowd.ts';
import { checkRequest } from '../http/host-check.ts';
import { findPortHolder } from '../http/port-holder.ts';
import { http } from '../node-http.ts';
import { loadWish } from './front-load.ts';
import type { Gateway } from './gateway.ts';
import { sendRefusal } from './refusals.ts';
import { passWebSocket, refuseUpgrade, wantsWebSocket } from './websocket.ts';

const RETRY_MS = 5_000;
/** As the gateway's own address: clients that keep a connection for as long as a server may must not find it gone. */
const KEEP_ALIVE_MS = 72_000;

interface Front {
  setting: BackendSetting;
  readonly port: number;
  readonly server: Server;
  stopped: boolean;
  timer: NodeJS.Timeout | null;
}

/**
 * A listener for each backend with `front`: it answers as the backend would on that port, every path
 * included, with admission and the lane before what works on a model.
 */
export class Fronts {
  readonly #gateway: Pick<Gateway, 'handle'>;
  readonly #tell: (event: NewEvent) => void;
  readonly #fronts = new Map<string, Front>();
  /** Changes come one after the other: a config may be saved again while ports still open. */
  #changing: Promise<void> = Promise.resolve();
  #isOver = false;
  /** They listen no more, and still answer. */
  readonly #leaving = new Set<Server>();
  /** No server counts them among its connections any more. */
  readonly #webSockets = new Set<Duplex>();

  constructor(gateway: Pick<Gateway, 'handle'>, tell: (event: NewEvent) => void) {
    this.#gateway = gateway;
    this.#tell = tell;
  }

  /** Listens for exactly these from now on. Answers that are under way at a port that goes come to their end. */
  set(backends: readonly BackendSetting[]): Promise<void> {
    this.#changing = this.#changing.then(() => this.#set(this.#isOver ? [] : backends));
    return this.#changing;
  }

  async #set(backends: readonly BackendSetting[]): Promise<void> {
    const wanted = backends.filter((setting) => setting.front !== null && setting.url !== null);
    const leaving = [...this.#fronts].filter(
      ([name, front]) => !wanted.some((setting) => setting.name === name && setting.front === front.port),
    );
    for (const [name, front] of leaving) this.#leave(name, front);
    for (const setting of wanted) {
      const present = this.#fronts.get(setting.name);
      if (present !== undefined) present.setting = setting;
      else if (setting.front !== null) await this.#start(setting, setting.front);
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.set([]);
    for (const socket of this.#webSockets) socket.destroy();
    await Promise.all(
      [...this.#leaving].map((server) => {
        const closed = new Promise((resolve) => server.once('close', resolve));
        server.closeAllConnections();
        return closed;
      }),
    );
  }

  async #start(setting: BackendSetting, port: number): Promise<void> {
    // A prompt of many megabytes, and a model that thinks, take their time: no limits of ours.
    const limits = {
      requestTimeout: 0,
      headersTimeout: HEAD_LIMIT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // llama.cpp's router has none, and would load what the request names as if nothing had been said of one.
      shouldUpgradeCallback: (request: IncomingMessage): boolean =>
        wantsWebSocket(request) &&
        (front.setting.kind !== 'llama.cpp' ||
          loadWish(request.method ?? 'GET', request.url ?? '/') === null),
    };
    const server = http.createServer(limits);
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      const verdict = checkRequest(request, port);
      if (verdict.allowed) {
        void this.#gateway.handle(request, response, front.setting);
        return;
      }
      const { status, message } = verdict;
      sendRefusal(
        response,
        { status, code: 'not_permitted', message, numbers: {}, retryAfterS: null },
        'openai',
        {},
      );
    };
    const isWebSocket = answerWithin(server, answer, connectionLimit(openFilesLimit()) / 4);
    server.on('upgrade', (request, socket, head) => {
      const { url } = front.setting;
      const verdict = checkRequest(request, port);
      if (verdict.allowed && url !== null) {
        this.#webSockets.add(socket);
        socket.once('close', () => this.#webSockets.delete(socket));
        isWebSocket(request.socket);
        passWebSocket({ request, socket, head, url });
        return;
      }
      refuseUpgrade(socket, verdict.allowed ? 502 : verdict.status);
    });
    server.on('clientError', refuseNonsense);
    const front: Front = { setting, port, server, stopped: false, timer: null };
    this.#fronts.set(setting.name, front);
    await this.#listen(front, true);
  }

  async #listen(front: Front, first: boolean): Promise<void> {
    const { server, port, setting } = front;
    const failure = await new Promise<Error | null>((resolve) => {
      server.once('error', resolve);
      server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
        server.off('error', resolve);
        resolve(null);
      });
    });
    if (front.stopped) {
      server.close();
      return;
    }
    if (failure === null) {
      server.on('error', () => undefined);
      if (!first)
        this.#tell({
          kind: 'config_loaded',
          backend: setting.name,
          reason: `Port ${port} is free now: ${setting.name} is served there.`,
          numbers: { port },
        });
      return;
    }
    if (first) {
      const holder = await findPortHolder(port);
      const who = holder === null ? failure.message : `process ${holder.pid} (${holder.command}) has it`;
      this.#tell({
        kind: 'config_rejected',
        backend: setting.name,
        reason: `${setting.name} can't be served at port ${port}: ${who}. Move that program to another port; this is tried again until it works.`,
        numbers: { port, pid: holder?.pid ?? null },
      });
    }
    if (front.stopped) return;
    front.timer = setTimeout(() => void this.#listen(front, false), RETRY_MS);
  }

  /** The port is free at once; who is being answered there is answered to the end. */
  #leave(name: string, front: Front): void {
    const { server } = front;
    this.#fronts.delete(name);
    front.stopped = true;
    if (front.timer !== null) clearTimeout(front.timer);
    if (!server.listening) return;
    this.#leaving.add(server);
    server.close(() => this.#leaving.delete(server));
  }
}
