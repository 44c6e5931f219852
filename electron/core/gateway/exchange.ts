import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BackendSetting } from '../../../shared/settings.ts';
import { Departure } from './departure.ts';
import { endpointOf, type Work } from './endpoints.ts';
import type { Dialect } from './refusals.ts';
import type { RequestHead } from './request-head.ts';
import type { Seat } from './seat.ts';
import type { Upstream } from './upstream-path.ts';

/** A request on its way through the gateway, and what has become of it so far. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** With its query. */
  readonly path: string;
  /** As its path says; less where its body says that it asks for none. */
  work: Work;
  readonly dialect: Dialect;
  /** The model that the path names; null: the body does, if anything. */
  readonly pathModel: string | null;
  /** What the model's own server is asked: `path`, but for a llama-swap's `/upstream/MODEL` before it. */
  readonly meantPath: string;
  /** The backend whose port was called; null: the gateway's own address. */
  readonly front: BackendSetting | null;
  readonly departure: Departure;
  readonly arrivedAtMs: number;
  /** Headers of ours on the answer; grows as things are found out. */
  readonly own: Record<string, string>;
  head: RequestHead | null;
  waitedMs: number;
  /** Its place on the device; null: it works on no model. */
  seat: Seat | null;
}

export function openExchange(
  request: IncomingMessage,
  response: ServerResponse,
  front: BackendSetting | null,
  nowMs: number,
  upstream: Upstream | null,
): Exchange {
  const departure = new Departure();
  response.on('close', () => {
    if (!response.writableFinished) departure.leave();
  });
  // Writing to a client that has just left is no fault of ours; its 'close' follows.
  response.on('error', ignore);
  const path = request.url ?? '/';
  const meant = upstream?.path ?? path;
  const endpoint = endpointOf(meant);
  return {
    request,
    response,
    path,
    work: request.method === 'POST' ? endpoint.work : 'other',
    dialect: endpoint.dialect,
    pathModel: upstream?.model ?? null,
    meantPath: meant,
    front,
    departure,
    arrivedAtMs: nowMs,
    own: {},
    head: null,
    waitedMs: 0,
    seat: null,
  };
}

function ignore(): void {}

export function mayHaveBody(request: IncomingMessage): boolean {
  return (
    request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
  );
}
