import type { BackendSetting } from '../../../shared/settings.ts';
import { barePath } from './endpoints.ts';
import type { Exchange } from './exchange.ts';
import type { GatewayParts } from './gateway.ts';
import { refusalFor, sendRefusal } from './refusals.ts';
import { readHead } from './request-head.ts';
import { frontRoute } from './route.ts';

/** From our request until the backend says that it loads. */
const BEGIN_LIMIT_MS = 60_000;

/** A request that has a server take a model into memory without working on it. */
export interface LoadWish {
  /** null: it names none, so a server's only one is meant. */
  readonly model: string | null;
  /** One that is not there. */
  readonly loads: boolean;
  /** One that sleeps. */
  readonly wakes: boolean;
}

/**
 * What loads a model on a llama.cpp router without working on it: `POST /models/load`, and any GET or HEAD
 * with `model=` unless it says `autoload=false` (tools/server/README; cpp-httplib has one handler for both). `/slots`
 * wakes a sleeping one, whatever it says (seen of build 11669). null: this does neither.
 */
export function loadWish(method: string, path: string): 'load' | LoadWish | null {
  if (method === 'POST') return barePath(path) === '/models/load' ? 'load' : null;
  if (method !== 'GET' && method !== 'HEAD') return null;
  const at = path.indexOf('?');
  const query = new URLSearchParams(at < 0 ? '' : path.slice(at + 1));
  const model = query.get('model');
  const loads = model !== null && !['false', '0'].includes(query.get('autoload') ?? '');
  const wakes = barePath(path) === '/slots';
  return loads || wakes ? { model, loads, wakes } : null;
}

/** Admission for such a request at a front port. False: it has been answered; true: it goes on to the backend. */
export async function admitLoad(
  parts: GatewayParts,
  exchange: Exchange,
  front: BackendSetting,
): Promise<boolean> {
  const { request, response } = exchange;
  const wish =
    exchange.pathModel === null
      ? loadWish(request.method ?? 'GET', exchange.path)
      : { model: exchange.pathModel, loads: true, wakes: false };
  if (wish === null) return true;
  if (wish === 'load') {
    const read = await readHead(request);
    if (read.kind !== 'read') {
      response.destroy();
      return false;
    }
    exchange.head = read.head;
  }
  const model = wish === 'load' ? (exchange.head?.model?.value ?? null) : wish.model;
  const { loop } = parts.context;
  const { view } = frontRoute(model, loop.models.views(), front, front.url ?? '');
  if (view === null) return true;
  const isGone = view.status === 'unloaded' || view.status === 'failed';
  const isWish =
    wish === 'load' ? isGone : (wish.loads && isGone) || (wish.wakes && view.status === 'sleeping');
  if (!isWish) return true;
  const loading = parts.admission.admit(view.id, exchange.departure.signal, { makeRoom: true });
  if (loading === null) return true;
  const status = (): string | undefined => loop.models.get(view.id)?.status;
  // The router answers when a load begins, long before it has ended.
  const begun = loop.until(
    () => status() === 'loading' || status() === 'loaded',
    wish === 'load' ? BEGIN_LIMIT_MS : 0,
    exchange.departure.signal,
  );
  const admitted = await (wish === 'load'
    ? Promise.race([loading, begun.then((began) => (began ? null : loading))])
    : loading);
  if (admitted !== null && !admitted.ok) {
    sendRefusal(response, refusalFor(admitted.error), exchange.dialect, {});
    return false;
  }
  if (wish !== 'load') return true;
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
  response.end('{"success":true}');
  return false;
}
