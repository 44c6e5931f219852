import { randomUUID, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fail, type LandlordError, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import { answerWithin } from '../../http/crowd.ts';
import { http } from '../../node-http.ts';
import { MessageEvents, messageError, wholeMessage } from '../anthropic/message-answer.ts';
import { parseMessages } from '../anthropic/parse-messages.ts';
import type { ChatAnswer, ChatEngine } from '../engine-chat.ts';
import { AnswerChunks, type AnswerHead, usageOf, wholeAnswer } from './chat-answer.ts';
import { completionObject, completionUsage, parseCompletion } from './completions.ts';
import { encodeEmbeddings, parseEmbeddings } from './embeddings.ts';
import { httpError } from './http-error.ts';
import { parseChat } from './parse-chat.ts';

/** Where the models of an embedded backend are. */
export interface EmbeddedModels {
  /** Loads it where it is not, and what it needs for its purpose. `contextId` null: it makes embeddings only. */
  ready(
    model: string,
    purpose: 'text' | 'embeddings',
    signal: AbortSignal,
  ): Promise<Result<{ readonly modelId: string; readonly contextId: string | null }>>;
  names(): readonly string[];
}

export interface EngineServerOptions {
  readonly engine: ChatEngine;
  /** By the name of its backend; null: there is none. */
  readonly find: (backend: string) => EmbeddedModels | null;
  readonly epochMs: () => number;
  /** What the gateway shows; lives as long as this process. */
  readonly key: string;
}

type Answering = (
  models: EmbeddedModels,
  body: unknown,
  response: ServerResponse,
  signal: AbortSignal,
) => Promise<Result<null>>;

const MOST_BODY_BYTES = 64 * 1024 * 1024;

/**
 * The engine as an inference server that only the gateway may ask: on loopback, with a key that lives as
 * long as this process, so that nobody goes past admission. A backend's part is `/<its name>/v1`.
 */
export class EngineServer {
  readonly #options: EngineServerOptions;
  #server: Server | null = null;
  #url: string | null = null;

  constructor(options: EngineServerOptions) {
    this.#options = options;
  }

  /** Address of a backend's part; listens from then on. */
  async urlOf(backend: string): Promise<string> {
    this.#url ??= await this.#listen();
    return `${this.#url}/${encodeURIComponent(backend)}`;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    this.#url = null;
    if (server === null) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }

  #listen(): Promise<string> {
    const server = http.createServer();
    // Whoever is on this machine can connect, and is told that it may not ask.
    answerWithin(server, (request, response) => void this.#answer(request, response));
    // A model may take minutes to answer; the gateway and the client decide how long is too long.
    server.requestTimeout = 0;
    this.#server = server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => {
        const address: AddressInfo | string | null = server.address();
        if (address === null || typeof address === 'string') reject(new Error('no address'));
        else resolve(`http://127.0.0.1:${address.port}`);
      });
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    try {
      const result = await this.#route(request, response, gone.signal);
      if (!result.ok) refuse(request, response, result.error);
    } catch (thrown) {
      refuse(request, response, fail('internal', `The request failed: ${messageOf(thrown)}`).error);
    }
  }

  async #route(
    request: IncomingMessage,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<Result<null>> {
    if (!this.#mayAsk(request))
      return fail('not_permitted', 'Ask through the gateway: it books before it loads.');
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const slash = path.indexOf('/', 1);
    const models = this.#options.find(decodeURIComponent(path.slice(1, slash < 0 ? undefined : slash)));
    if (models === null) return fail('unknown_model', `There is no such backend: ${path}.`);
    const rest = slash < 0 ? '/' : path.slice(slash).replace(/^\/v1(?=\/)/, '');
    if (request.method === 'GET' && rest === '/models') {
      const data = models.names().map((id) => ({ id, object: 'model', created: 0, owned_by: 'embedded' }));
      send(response, 200, { object: 'list', data });
      return ok(null);
    }
    const answer = request.method === 'POST' ? this.#answers[rest] : undefined;
    if (answer === undefined) {
      return fail(
        'not_supported',
        `The embedded engine has no ${request.method} ${rest}; it has chat/completions, completions, messages and embeddings.`,
      );
    }
    const body = await readJson(request);
    return body.ok ? await answer(models, body.value, response, signal) : body;
  }

  #mayAsk(request: IncomingMessage): boolean {
    const given = Buffer.from(request.headers.authorization ?? '');
    const wanted = Buffer.from(`Bearer ${this.#options.key}`);
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  }

  readonly #chat: Answering = async (models, body, response, signal) => {
    const call = parseChat(body);
    if (!call.ok) return call;
    const { request, stream, includeUsage, model } = call.value;
    const contextId = await this.#contextOf(models, model, signal);
    if (!contextId.ok) return contextId;
    const head = this.#head('chatcmpl-', model);
    const chunks = new AnswerChunks(head);
    const events = new EventStream(response, () => [frame(chunks.first())]);
    const said = await this.#options.engine.chat(
      { ...request, contextId: contextId.value },
      (delta) => {
        if (stream) events.write([frame(chunks.delta(delta))]);
      },
      signal,
    );
    const answer = uncut(said, model, signal);
    if (!answer.ok) return answer;
    if (!stream) {
      send(response, 200, wholeAnswer(head, answer.value));
      return ok(null);
    }
    const usage = includeUsage ? [frame(chunks.usage(answer.value))] : [];
    events.end([frame(chunks.last(answer.value)), ...usage, DONE]);
    return ok(null);
  };

  readonly #complete: Answering = async (models, body, response, signal) => {
    const call = parseCompletion(body);
    if (!call.ok) return call;
    const { request, stream, includeUsage, model } = call.value;
    const contextId = await this.#contextOf(models, model, signal);
    if (!contextId.ok) return contextId;
    const head = this.#head('cmpl-', model);
    const events = new EventStream(response, () => []);
    const said = await this.#options.engine.complete(
      { ...request, contextId: contextId.value },
      (delta) => {
        if (stream && delta.kind === 'text') events.write([frame(completionObject(head, delta.text, null))]);
      },
      signal,
    );
    const answer = uncut(said, model, signal);
    if (!answer.ok) return answer;
    if (!stream) {
      const whole = completionObject(head, answer.value.text, answer.value);
      send(response, 200, { ...Object(whole), usage: usageOf(answer.value) });
      return ok(null);
    }
    const usage = includeUsage ? [frame(completionUsage(head, answer.value))] : [];
    events.end([frame(completionObject(head, '', answer.value)), ...usage, DONE]);
    return ok(null);
  };

  readonly #message: Answering = async (models, body, response, signal) => {
    const call = parseMessages(body);
    if (!call.ok) return call;
    const { request, stream, model } = call.value;
    const contextId = await this.#contextOf(models, model, signal);
    if (!contextId.ok) return contextId;
    const head = { id: `msg_${randomUUID().replaceAll('-', '')}`, model };
    const told = new MessageEvents(head);
    const events = new EventStream(response, () => told.first().map(namedFrame));
    const said = await this.#options.engine.chat(
      { ...request, contextId: contextId.value },
      (delta) => {
        if (stream) events.write(told.delta(delta).map(namedFrame));
      },
      signal,
    );
    const answer = uncut(said, model, signal);
    if (!answer.ok) return answer;
    if (stream) events.end(told.last(answer.value).map(namedFrame));
    else send(response, 200, wholeMessage(head, answer.value));
    return ok(null);
  };

  readonly #answers: Readonly<Record<string, Answering>> = {
    '/chat/completions': this.#chat,
    '/completions': this.#complete,
    '/messages': this.#message,
    '/embeddings': (models, body, response, signal) => this.#embeddings(models, body, response, signal),
  };

  #head(prefix: string, model: string): AnswerHead {
    return {
      id: `${prefix}${randomUUID().replaceAll('-', '')}`,
      created: Math.floor(this.#options.epochMs() / 1000),
      model,
    };
  }

  /** Of the model, which is loaded where it is not. Errors: `not_supported` where it makes embeddings only. */
  async #contextOf(models: EmbeddedModels, model: string, signal: AbortSignal): Promise<Result<string>> {
    const ready = await models.ready(model, 'text', signal);
    if (!ready.ok) return ready;
    const { contextId } = ready.value;
    if (contextId !== null) return ok(contextId);
    return fail('not_supported', `${model} makes embeddings only; ask it for those.`);
  }

  async #embeddings(
    models: EmbeddedModels,
    body: unknown,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<Result<null>> {
    const call = parseEmbeddings(body);
    if (!call.ok) return call;
    const ready = await models.ready(call.value.model, 'embeddings', signal);
    if (!ready.ok) return ready;
    const made = await this.#options.engine.embed(
      { modelId: ready.value.modelId, inputs: call.value.inputs },
      signal,
    );
    if (!made.ok) return made;
    send(response, 200, encodeEmbeddings(call.value, made.value));
    return ok(null);
  }
}

/** Half an answer is none: it would look as if the model had ended there. */
function uncut(answer: Result<ChatAnswer>, model: string, signal: AbortSignal): Result<ChatAnswer> {
  const isCut = answer.ok ? answer.value.finish === 'cancelled' : answer.error.code === 'cancelled';
  if (!isCut || signal.aborted) return answer;
  return fail(
    'engine_ended',
    `${model} was unloaded in the middle of this answer. Ask again, and it is loaded.`,
  );
}

/** An answer in pieces. Its head goes with the first one, so that what fails before has a status of its own. */
class EventStream {
  readonly #response: ServerResponse;
  readonly #first: () => readonly string[];

  constructor(response: ServerResponse, first: () => readonly string[]) {
    this.#response = response;
    this.#first = first;
  }

  write(frames: readonly string[]): void {
    if (!this.#response.headersSent) {
      this.#response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
      for (const one of this.#first()) this.#response.write(one);
    }
    for (const one of frames) this.#response.write(one);
  }

  end(frames: readonly string[]): void {
    this.write(frames);
    this.#response.end();
  }
}

const DONE = 'data: [DONE]\n\n';

function namedFrame(event: { readonly type: string }): string {
  return `event: ${event.type}\n${frame(event)}`;
}

function frame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

/** Inside a stream that has begun, as a frame of its own. */
function refuse(request: IncomingMessage, response: ServerResponse, error: LandlordError): void {
  if (response.destroyed || response.writableEnded) return;
  const { status, body } = httpError(error);
  const isMessages = /\/messages$/.test((request.url ?? '').split('?', 1)[0] ?? '');
  const told = isMessages ? messageError(status, error) : body;
  if (!response.headersSent) send(response, status, told);
  else response.end(isMessages ? namedFrame({ type: 'error', ...Object(told) }) : frame(told));
}

async function readJson(request: IncomingMessage): Promise<Result<unknown>> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request) {
    const chunk = Buffer.from(part);
    bytes += chunk.length;
    if (bytes > MOST_BODY_BYTES) return fail('bad_input', 'A request may have at most 64 MiB.');
    parts.push(chunk);
  }
  try {
    return ok(JSON.parse(Buffer.concat(parts).toString('utf8')));
  } catch {
    return fail('bad_input', 'The body is not JSON.');
  }
}
