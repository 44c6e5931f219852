import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { secrets } from '../security/secrets.ts';
import type { Departure } from './departure.ts';
import { answerHeaders } from './headers.ts';
import { Outlet } from './outlet.ts';
import { Tail } from './tail.ts';
import type { Hiding, Unsaid } from './unsaid.ts';

/**
 * One exchange with an upstream, its answer copied to the client as it comes.
 *
 *   dispatched ──► answering ──► done
 *        │             └──► broken      the upstream ended in the middle: so does the client's answer
 *        ├──► refused                   nothing was sent to the client: it may be tried again
 *        └──► gone                      the client left; the upstream was cut off at once
 */
export type Forwarded =
  | {
      readonly kind: 'done' | 'broken';
      readonly status: number;
      /** Monotonic ms of the first byte of the answer's body; null: it had none. */
      readonly firstByteAtMs: number | null;
      readonly tail: string;
    }
  | { readonly kind: 'refused'; readonly error: Error }
  | { readonly kind: 'gone' };

export interface ForwardRequest {
  readonly dispatcher: Dispatcher;
  readonly origin: string;
  readonly method: string;
  readonly path: string;
  readonly headers: string[];
  readonly body: Buffer | Readable | null;
  /** Headers of ours on the answer. */
  readonly own: Readonly<Record<string, string>>;
  /** Takes a key that is not the client's out of errors; null: there is none. */
  readonly unsaid: Unsaid | null;
  readonly response: ServerResponse;
  readonly departure: Departure;
  /** Whether a small answer of 5xx means that the request never reached a model, so that it may be tried again. */
  readonly isLost: ((status: number, body: string) => boolean) | null;
  /** The answer's head has gone out already (a waiting stream): what is no event stream is told in one. */
  readonly begun: ((status: number, body: string) => string) | null;
  readonly monotonicMs: () => number;
  /**
   * The upstream is done. Called before the client sees the end: a session whose requests follow one
   * another must not find the lane held by its own last one.
   */
  readonly ended?: () => void;
}

/** A larger error is never one of a proxy that lost its child. */
const HELD_BYTES = 4096;
/** A head waits this long for the first of its body: one write, and the client wakes up once. */
const HEAD_ALONE_MS = 5;

export class ClientGone extends Error {}

export function forward(request: ForwardRequest): Promise<Forwarded> {
  const { response, departure } = request;
  if (departure.left) return Promise.resolve({ kind: 'gone' });
  return new Promise((resolve) => {
    const tail = new Tail();
    const outlet = new Outlet(response, request.monotonicMs);
    let controller: Dispatcher.DispatchController | null = null;
    let status = 0;
    let answering = false;
    let headTimer: NodeJS.Timeout | null = null;
    let firstByteAtMs: number | null = null;
    /** Parts of an answer that may yet be dropped. */
    let held: Buffer[] | null = null;
    let heldBytes = 0;
    let rawHeaders: string[] = [];
    let statusMessage: string | undefined;
    let hiding: Hiding | null = null;
    let over = false;

    const finish = (end: Forwarded): void => {
      if (over) return;
      over = true;
      stopListening();
      if (headTimer !== null) clearTimeout(headTimer);
      response.off('drain', onDrain);
      resolve(end);
    };
    const onGone = (): void => {
      controller?.abort(new ClientGone('the client has left'));
      outlet.drop();
      finish({ kind: 'gone' });
    };
    const onDrain = (): void => controller?.resume();
    const sendHead = (): void => {
      answering = true;
      if (response.headersSent) return;
      // The upstream's own date goes through; none is made up.
      response.sendDate = false;
      const headers = answerHeaders(rawHeaders, request.own);
      if (statusMessage === undefined) response.writeHead(status, headers);
      else response.writeHead(status, statusMessage, headers);
      // With the first bytes if they come along, alone if not: a reader learns soon that it is being served.
      headTimer = setTimeout(() => response.flushHeaders(), HEAD_ALONE_MS);
    };
    const write = (chunk: Buffer): void => {
      if (headTimer !== null) clearTimeout(headTimer);
      headTimer = null;
      firstByteAtMs ??= request.monotonicMs();
      const part = hiding === null ? chunk : hiding.write(chunk);
      tail.add(part);
      if (!outlet.write(part)) controller?.pause();
    };

    const stopListening = departure.onLeft(onGone);
    response.on('drain', onDrain);
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        controller = started;
        if (departure.left) started.abort(new ClientGone('the client has left'));
      },
      onResponseStart(started, code, _headers, message) {
        // 100 to 199 announce an answer, they are none.
        if (code < 200) return;
        status = code;
        statusMessage = message === '' ? undefined : message;
        rawHeaders = wireHeaders(started.rawHeaders);
        if (request.unsaid !== null) rawHeaders = request.unsaid.headers(rawHeaders);
        if (request.unsaid !== null && code >= 400) hiding = request.unsaid.body();
        const mayBeLost = request.isLost !== null && code >= 500;
        const mustBeTold = request.begun !== null && code !== 200;
        if (mayBeLost || mustBeTold) held = [];
        else sendHead();
      },
      onResponseData(_controller, chunk) {
        if (held === null) {
          write(chunk);
          return;
        }
        if (heldBytes <= HELD_BYTES) held.push(chunk);
        heldBytes += chunk.length;
        if (heldBytes <= HELD_BYTES || request.begun !== null) return;
        const parts = held;
        held = null;
        sendHead();
        for (const part of parts) write(part);
      },
      onResponseEnd(ended) {
        if (over) return;
        const trailers = wireHeaders(ended.rawTrailers);
        if (held !== null) {
          const body = Buffer.concat(held);
          const text = body.toString('utf8');
          if (request.isLost?.(status, text) === true) {
            finish({ kind: 'refused', error: new Error(secrets.hide(text).slice(0, 200)) });
            return;
          }
          sendHead();
          const told =
            request.begun === null || status === 200 ? body : Buffer.from(request.begun(status, text));
          if (told.length > 0) write(told);
        }
        const rest = hiding?.end() ?? Buffer.alloc(0);
        if (rest.length > 0) outlet.write(rest);
        if (trailers.length > 0) response.addTrailers(pairs(trailers));
        request.ended?.();
        outlet.end();
        finish({ kind: 'done', status, firstByteAtMs, tail: tail.text() });
      },
      onResponseError(_controller, error) {
        if (departure.left) return finish({ kind: 'gone' });
        if (!answering) return finish({ kind: 'refused', error });
        // Half an answer must not look like a whole one.
        outlet.break();
        finish({ kind: 'broken', status, firstByteAtMs, tail: tail.text() });
      },
    };
    try {
      request.dispatcher.dispatch(
        {
          origin: request.origin,
          path: request.path,
          method: request.method,
          headers: request.headers,
          body: request.body,
        },
        handler,
      );
    } catch (thrown) {
      finish({ kind: 'refused', error: thrown instanceof Error ? thrown : new Error(String(thrown)) });
    }
  });
}

function wireHeaders(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}

function pairs(raw: readonly string[]): [string, string][] {
  const all: [string, string][] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) all.push([raw[index] ?? '', raw[index + 1] ?? '']);
  return all;
}
