import type { BackendSetting } from '../../../shared/settings.ts';
import { barePath } from './endpoints.ts';
import type { Exchange } from './exchange.ts';
import type { GatewayParts } from './gateway.ts';
import { refusalFor, sendRefusal } from './refusals.ts';
import { readHead } from './request-head.ts';
import { frontRoute } from './route.ts';

/** From our request until the backend says that it loads. */
const BEGIN_LIMIT_MS = 60_000;

/**
 * What loads a model on a llama.cpp router without working on it: `POST /models/load`, and any GET or HEAD
 * with `model=` unless it says `autoload=false` (tools/server/README; cpp-httplib has one handler for both). null: this does not.
 */
export function loadWish(method: string, path: string): 'load' | { readonly model: string } | null {
  const at = path.indexOf('?');
  if (method === 'POST') return barePath(path) === '/models/load' ? 'load' : null;
  if ((method !== 'GET' && method !== 'HEAD') || at < 0) return null;
  const query = new URLSearchParams(path.slice(at + 1));
  const model = query.get('model');
  return model === null || ['false', '0'].includes(query.get('autoload') ?? '') ? null : { model };
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
      : { model: exchange.pathModel };
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
  if (view === null || (view.status !== 'unloaded' && view.status !== 'failed')) return true;
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
