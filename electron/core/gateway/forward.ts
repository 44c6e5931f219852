import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { secrets } from '../security/secrets.ts';
import type { Departure } from './departure.ts';
import { answerHeaders, headerNameOf } from './headers.ts';
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
export class ClientGone extends Error {}

export function forward(dispatcher: Dispatcher, request: ForwardRequest): Promise<Forwarded> {
  if (request.departure.left) return Promise.resolve({ kind: 'gone' });
  return new Promise((resolve) => new Forwarding(request, resolve).start(dispatcher));
}

class Forwarding implements Dispatcher.DispatchHandler {
  readonly #request: ForwardRequest;
  readonly #resolve: (end: Forwarded) => void;
  readonly #tail = new Tail();
  readonly #outlet: Outlet;
  readonly #stopListening: () => void;
  #controller: Dispatcher.DispatchController | null = null;
  #status = 0;
  #statusMessage: string | undefined;
  #rawHeaders: readonly string[] = [];
  #answering = false;
  #firstByteAtMs: number | null = null;
  /** Parts of an answer that may yet be dropped. */
  #held: Buffer[] | null = null;
  #heldBytes = 0;
  #hiding: Hiding | null = null;
  #over = false;

  constructor(request: ForwardRequest, resolve: (end: Forwarded) => void) {
    this.#request = request;
    this.#resolve = resolve;
    this.#outlet = new Outlet(request.response, this, request.monotonicMs);
    this.#stopListening = request.departure.onLeft(() => this.#gone());
  }

  start(dispatcher: Dispatcher): void {
    const { origin, path, method, headers, body } = this.#request;
    try {
      dispatcher.dispatch({ origin, path, method, headers, body }, this);
    } catch (thrown) {
      this.#finish({ kind: 'refused', error: thrown instanceof Error ? thrown : new Error(String(thrown)) });
    }
  }

  /** The client takes no more for now. */
  pause(): void {
    if (!this.#over) this.#controller?.pause();
  }

  resume(): void {
    if (!this.#over) this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#request.departure.left) controller.abort(new ClientGone('the client has left'));
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
    statusMessage?: string,
  ): void {
    // 100 to 199 announce an answer, they are none.
    if (status < 200) return;
    const { unsaid, isLost, begun } = this.#request;
    this.#status = status;
    // One in another script than Latin can't be sent on, and means nothing (RFC 9112 §4).
    this.#statusMessage = /^[\t\x20-\x7e\x80-\xff]+$/.test(statusMessage ?? '') ? statusMessage : undefined;
    this.#rawHeaders = wireHeaders(controller.rawHeaders, headers);
    if (unsaid !== null) this.#rawHeaders = unsaid.headers(this.#rawHeaders);
    if (unsaid !== null && status >= 400) this.#hiding = unsaid.body();
    const mayBeLost = isLost !== null && status >= 500;
    const mustBeTold = begun !== null && status !== 200;
    if (mayBeLost || mustBeTold) this.#held = [];
    else this.#sendHead();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#held === null) {
      this.#write(chunk);
      return;
    }
    if (this.#heldBytes <= HELD_BYTES) this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes <= HELD_BYTES || this.#request.begun !== null) return;
    const parts = this.#held;
    this.#held = null;
    this.#sendHead();
    for (const part of parts) this.#write(part);
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#over) return;
    if (this.#held !== null && !this.#sendHeld(Buffer.concat(this.#held))) return;
    const rest = this.#hiding?.end();
    if (rest !== undefined) this.#outlet.write(rest);
    const { rawTrailers } = controller;
    if (Array.isArray(rawTrailers) && rawTrailers.length > 0)
      this.#request.response.addTrailers(pairs(wireHeaders(rawTrailers, {})));
    this.#request.ended?.();
    this.#outlet.end();
    this.#finish(this.#end('done'));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#request.departure.left) {
      this.#finish({ kind: 'gone' });
    } else if (this.#answering) {
      // Half an answer must not look like a whole one.
      this.#outlet.break();
      this.#finish(this.#end('broken'));
    } else {
      this.#finish({ kind: 'refused', error });
    }
  }

  #sendHead(): void {
    const { response, own } = this.#request;
    this.#answering = true;
    if (response.headersSent) return;
    // The upstream's own date goes through; none is made up.
    response.sendDate = false;
    const headers = answerHeaders(this.#rawHeaders, own);
    if (this.#statusMessage === undefined) response.writeHead(this.#status, headers);
    else response.writeHead(this.#status, this.#statusMessage, headers);
    this.#outlet.begin();
  }

  #write(chunk: Buffer): void {
    this.#firstByteAtMs ??= this.#request.monotonicMs();
    const part = this.#hiding === null ? chunk : this.#hiding.write(chunk);
    this.#tail.add(part);
    this.#outlet.write(part);
  }

  /** False: it was no answer of a model, and the request is over. */
  #sendHeld(body: Buffer): boolean {
    const { isLost, begun } = this.#request;
    const text = body.toString('utf8');
    if (isLost?.(this.#status, text) === true) {
      this.#finish({ kind: 'refused', error: new Error(secrets.hide(text).slice(0, 200)) });
      return false;
    }
    this.#sendHead();
    const told = begun === null || this.#status === 200 ? body : Buffer.from(begun(this.#status, text));
    if (told.length > 0) this.#write(told);
    return true;
  }

  #gone(): void {
    this.#controller?.abort(new ClientGone('the client has left'));
    this.#outlet.drop();
    this.#finish({ kind: 'gone' });
  }

  #end(kind: 'done' | 'broken'): Forwarded {
    return { kind, status: this.#status, firstByteAtMs: this.#firstByteAtMs, tail: this.#tail.text() };
  }

  #finish(end: Forwarded): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopListening();
    this.#resolve(end);
  }
}

/** Spelled and ordered as they came. `parsed`: by lower-case names; a value that stands alone is read already. */
function wireHeaders(
  raw: Dispatcher.DispatchController['rawHeaders'],
  parsed: Readonly<Record<string, string | string[] | undefined>>,
): string[] {
  if (!Array.isArray(raw)) return [];
  const wire: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = textOf(raw[index]);
    const read = parsed[headerNameOf(name).lower];
    wire.push(name, typeof read === 'string' ? read : textOf(raw[index + 1]));
  }
  return wire;
}

function textOf(part: Buffer | string | undefined): string {
  return typeof part === 'string' ? part : (part?.toString('latin1') ?? '');
}

function pairs(raw: readonly string[]): [string, string][] {
  const all: [string, string][] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) all.push([raw[index] ?? '', raw[index + 1] ?? '']);
  return all;
}
