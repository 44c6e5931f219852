import type { IncomingMessage } from 'node:http';
import { http, https } from '../node-http.ts';
import { secrets } from '../security/secrets.ts';

/**
 * Small requests to one inference server: a limit on time and on bytes for each, and a sentence for
 * each way it can fail. Nothing here throws or rejects. node:http rather than fetch, because fetch ends
 * a silent event stream after five minutes and costs several times the CPU.
 */
export type HttpAnswer =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly text: string;
      /** The parsed body; undefined when it is not JSON. */
      readonly json: unknown;
    }
  | HttpFailure;

export interface HttpFailure {
  readonly kind: 'failed';
  /** `refused`: nothing listens there. `cut`: it hung up before it had answered. */
  readonly reason: 'refused' | 'timed_out' | 'cut' | 'too_big' | 'cancelled' | 'unreachable';
  /** A sentence with the address in it. */
  readonly message: string;
}

export interface RequestOptions {
  /** Default 5 000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Default 8 MiB: a models list with hundreds of presets is under one. */
  readonly maxBytes?: number;
}

export interface StreamHandlers {
  /** Called once with the status line, before any text. */
  readonly onOpen: (status: number, contentType: string) => void;
  readonly onText: (chunk: string) => void;
  readonly signal: AbortSignal;
  /** Time until the status line; default 5 000. Silence after it is not limited. */
  readonly openTimeoutMs?: number;
}

export interface HttpClient {
  readonly baseUrl: string;
  get(path: string, options?: RequestOptions): Promise<HttpAnswer>;
  post(path: string, body: unknown, options?: RequestOptions): Promise<HttpAnswer>;
  /** Resolves when the stream has ended, for whatever reason; null: it ended in order. */
  stream(path: string, handlers: StreamHandlers): Promise<HttpFailure | null>;
  close(): void;
}

/** `apiKey` null: no authorization header. One that no header can carry makes every request fail, and nothing is sent. */
export function httpClient(baseUrl: string, apiKey: string | null): HttpClient {
  const secure = baseUrl.startsWith('https:');
  // No connection is kept: in llama-server each one holds a thread that a request of its users may need.
  const agent = secure ? new https.Agent({ keepAlive: false }) : new http.Agent({ keepAlive: false });
  const send = secure ? https.request : http.request;
  secrets.learn(apiKey);
  const headers: Record<string, string> = { accept: 'application/json' };
  if (apiKey !== null) headers.authorization = `Bearer ${apiKey}`;

  const unsendable = NOT_IN_HEADERS.test(apiKey ?? '');
  const keyFailure = (): HttpFailure =>
    failure(
      'unreachable',
      `The key for ${baseUrl} has characters that can't be sent: look at the variable that holds it.`,
    );

  const once = (
    method: string,
    path: string,
    payload: string | null,
    options: RequestOptions,
  ): Promise<HttpAnswer> =>
    new Promise((resolve) => {
      const limitMs = options.timeoutMs ?? 5_000;
      const maxBytes = options.maxBytes ?? 8 * 1024 * 1024;
      const finish = (answer: HttpAnswer): void => {
        clearTimeout(timer);
        options.signal?.removeEventListener('abort', onAbort);
        resolve(answer);
      };
      const fail = (reason: HttpFailure['reason'], detail: string): void => {
        finish(failure(reason, `${baseUrl} ${detail}`));
        request.destroy();
      };
      const onAbort = (): void => fail('cancelled', 'was not asked: the request was cancelled.');
      const request = send(
        `${baseUrl}${path}`,
        {
          method,
          agent,
          headers:
            payload === null
              ? headers
              : {
                  ...headers,
                  'content-type': 'application/json',
                  'content-length': Buffer.byteLength(payload),
                },
        },
        (response) => {
          const chunks: Buffer[] = [];
          let bytes = 0;
          response.on('data', (chunk: Buffer) => {
            bytes += chunk.length;
            if (bytes > maxBytes) fail('too_big', `answered with more than ${maxBytes} bytes to ${path}.`);
            else if (chunks.push(chunk) > MOST_PIECES)
              fail('too_big', `answered in more than ${MOST_PIECES} pieces to ${path}.`);
          });
          response.on('end', () => finish(answerOf(response, Buffer.concat(chunks).toString('utf8'))));
          response.on('error', (error) => finish(failureOf(baseUrl, error)));
          response.on('aborted', () => fail('cut', 'hung up in the middle of its answer.'));
        },
      );
      const timer = setTimeout(
        () => fail('timed_out', `did not answer ${method} ${path.split('?')[0]} within ${limitMs} ms.`),
        limitMs,
      );
      let interim = 0;
      request.on('information', () => {
        interim += 1;
        if (interim > MOST_INTERIM) fail('too_big', `does not come to its answer to ${path}.`);
      });
      request.on('error', (error) => finish(failureOf(baseUrl, error)));
      if (options.signal?.aborted === true) onAbort();
      else options.signal?.addEventListener('abort', onAbort, { once: true });
      request.end(payload ?? undefined);
    });

  const retrying = async (
    method: string,
    path: string,
    payload: string | null,
    options: RequestOptions = {},
  ): Promise<HttpAnswer> => {
    if (unsendable) return keyFailure();
    const first = await once(method, path, payload, options);
    // A server that restarts hangs up on some; all that we ask is safe to ask twice.
    if (first.kind === 'failed' && first.reason === 'cut') return await once(method, path, payload, options);
    return first;
  };

  return {
    baseUrl,
    get: (path, options) => retrying('GET', path, null, options),
    post: (path, body, options) => retrying('POST', path, JSON.stringify(body), options),
    stream: (path, handlers) =>
      new Promise((resolve) => {
        if (unsendable) {
          resolve(keyFailure());
          return;
        }
        const finish = (end: HttpFailure | null): void => {
          clearTimeout(timer);
          handlers.signal.removeEventListener('abort', onAbort);
          resolve(end);
        };
        const onAbort = (): void => {
          finish(failure('cancelled', `${baseUrl}${path} was closed by us.`));
          request.destroy();
        };
        // Not from the pool: it stays open for days.
        const request = send(
          `${baseUrl}${path}`,
          { agent: false, headers: { ...headers, accept: 'text/event-stream' } },
          (response) => {
            clearTimeout(timer);
            response.setEncoding('utf8');
            handlers.onOpen(response.statusCode ?? 0, response.headers['content-type'] ?? '');
            response.on('data', handlers.onText);
            response.on('end', () => finish(null));
            response.on('error', (error) => finish(failureOf(baseUrl, error)));
          },
        );
        const timer = setTimeout(() => {
          finish(failure('timed_out', `${baseUrl}${path} did not open within the time allowed.`));
          request.destroy();
        }, handlers.openTimeoutMs ?? 5_000);
        request.on('error', (error) => finish(failureOf(baseUrl, error)));
        if (handlers.signal.aborted) onAbort();
        else handlers.signal.addEventListener('abort', onAbort, { once: true });
        request.end();
      }),
    close: () => agent.destroy(),
  };
}

/** Each piece costs some 200 bytes however small it is: an answer byte by byte took gigabytes in seconds. */
const MOST_PIECES = 50_000;
/** 1xx answers before the one that counts; there are hardly ever any. */
const MOST_INTERIM = 100;

/** What node:http refuses in a header's value (RFC 9110 §5.5). */
const NOT_IN_HEADERS = /[^\t\x20-\x7e\x80-\xff]/;

function answerOf(response: IncomingMessage, text: string): HttpAnswer {
  return { kind: 'answer', status: response.statusCode ?? 0, text, json: parseJson(text) };
}

function parseJson(text: string): unknown {
  if (text.length > HARMLESS_CHARS && isDeep(text)) return undefined;
  try {
    // Servers on Windows may begin with a byte order mark.
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    return undefined;
  }
}

/** Shorter texts are parsed in no time and little memory, whatever is in them. */
const HARMLESS_CHARS = 64 * 1024;
const DEEPEST = 100;

/** Lists in lists: eight megabytes of them take a second and half a gigabyte to parse. No server's answer has many. */
function isDeep(json: string): boolean {
  let depth = 0;
  let isText = false;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (isText) {
      if (char === '\\') at += 1;
      else if (char === '"') isText = false;
    } else if (char === '"') isText = true;
    else if (char === '[' || char === '{') depth += 1;
    else if (char === ']' || char === '}') depth -= 1;
    if (depth > DEEPEST) return true;
  }
  return false;
}

function failure(reason: HttpFailure['reason'], message: string): HttpFailure {
  return { kind: 'failed', reason, message: secrets.hide(message) };
}

function failureOf(baseUrl: string, error: Error): HttpFailure {
  const code = 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'ECONNREFUSED':
      return failure(
        'refused',
        `Nothing listens at ${baseUrl}: start the server, or correct the backend's url.`,
      );
    case 'ECONNRESET':
    case 'EPIPE':
    case 'HPE_INVALID_CONSTANT':
      return failure('cut', `${baseUrl} hung up before it had answered.`);
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return failure('unreachable', `The name in ${baseUrl} is not known: correct the backend's url.`);
    default:
      return failure('unreachable', `${baseUrl} can't be reached (${code || error.message}).`);
  }
}

/** The server's own words for an error, where its body has them, without any key that it says back. */
export function saidBy(answer: HttpAnswer): string | null {
  if (answer.kind === 'failed') return answer.message;
  const error = field(answer.json, 'error');
  const message = field(error, 'message') ?? error;
  return typeof message === 'string' && message !== '' ? secrets.hide(message).slice(0, 300) : null;
}

/**
 * What is wrong with an answer that should have been JSON with status 200, in a sentence that says
 * what to do; null when nothing is.
 */
export function objectionTo(answer: HttpAnswer, baseUrl: string, path: string): string | null {
  if (answer.kind === 'failed') return answer.message;
  const { status, text } = answer;
  if (status === 401 || status === 403) {
    return `${baseUrl} wants an API key (status ${status}): name the variable that holds it as the backend's apiKeyEnv.`;
  }
  const isPage = /^\s*</.test(text);
  if (status >= 200 && status < 300) {
    const listed = lengthOf(answer.json);
    if (listed > MOST_LISTED)
      return `${baseUrl}${path} lists ${listed} entries, and more than ${MOST_LISTED} are not watched: another program may have this port; correct the backend's url.`;
    if (answer.json !== undefined && answer.json !== null) return null;
    if (text.trim() === '') return `${baseUrl}${path} answers with nothing: look at the server's log.`;
    if (isPage) {
      return `${baseUrl}${path} answers with a web page instead of JSON: another program may have this port; correct the backend's url.`;
    }
    return `${baseUrl}${path} answers with something that is not JSON: correct the backend's url.`;
  }
  if (status >= 300 && status < 400) {
    return `${baseUrl}${path} sends its callers elsewhere (status ${status}), where no key is taken: write the address it really listens at as the backend's url.`;
  }
  const said = isPage ? 'a web page' : (saidBy(answer) ?? 'no reason');
  return `${baseUrl}${path} answers with status ${status} (${said}).`;
}

/** Hundreds of presets are many; a list of a hundred thousand would keep this process busy with nothing else. */
const MOST_LISTED = 5_000;

/** Of the longest list that a body is, or has under one of its keys. */
function lengthOf(body: unknown): number {
  if (Array.isArray(body)) return body.length;
  if (typeof body !== 'object' || body === null) return 0;
  const lists = Object.values(body).filter((value) => Array.isArray(value));
  return Math.max(0, ...lists.slice(0, 20).map((list) => list.length));
}

/** A member of a JSON value that may be anything. */
export function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;
}
