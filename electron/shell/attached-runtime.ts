/**
 * The runtime of another process, through its HTTP API: the same interface as one in here.
 *
 *   opening ──first snapshot──► attached ──stream ends, or says nothing for 45 s──► ended
 *      └──no snapshot within 5 s──► refused
 *
 * An ended one stays ended: whoever attached looks for a runtime anew.
 */

import type { ClientRequest, IncomingMessage } from 'node:http';
import { fail, isErrorCode, messageOf, ok, type Result } from '../../shared/errors.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import { type AnswerOf, type ArgsOf, QUESTIONS, type QuestionName } from '../../shared/ipc-schema.ts';
import { type LandlordState, STATE_SCHEMA } from '../../shared/state.ts';
import { sseParser } from '../core/backends/sse.ts';
import { http } from '../core/node-http.ts';
import type { CommandDone, RuntimeApi } from '../core/runtime-api.ts';
import type { FoundRuntime } from '../core/state-dir/discover-runtime.ts';
import { commandRequest, eventsPath } from './command-request.ts';

/** As much of a runtime as the app shows and commands. */
export type ShownRuntime = Pick<RuntimeApi, 'state' | 'onState' | 'onEvent' | 'events' | 'command' | 'ask'>;

export interface AttachedRuntime extends ShownRuntime {
  readonly url: string;
  /** Called once, when the stream has ended by itself. */
  onEnd(listener: () => void): void;
  close(): void;
}

const FIRST_STATE_MS = 5000;
/** The stream says something every 15 s. */
const SILENCE_MS = 45_000;
const READ_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_STATE_CHARS = 16 * 1024 * 1024;

/** Errors: `no_runtime`, `not_permitted`, `not_supported` (its state has another shape than ours). */
export function attachRuntime(
  found: FoundRuntime,
  limits: { readonly firstStateMs?: number; readonly silenceMs?: number } = {},
): Promise<Result<AttachedRuntime>> {
  const stateListeners = new Set<(state: LandlordState) => void>();
  const eventListeners = new Set<(event: LandlordEvent) => void>();
  const closing = new AbortController();
  let latest: LandlordState | null = null;
  let ended = false;
  let endListener = (): void => {};

  const api = (first: LandlordState): AttachedRuntime => ({
    url: found.url,
    state: () => latest ?? first,
    onState: (listener) => subscribe(stateListeners, listener),
    onEvent: (listener) => subscribe(eventListeners, listener),
    async events(query) {
      const answer = await ask(found, 'GET', eventsPath(query), null, closing.signal);
      if (!answer.ok) return answer;
      const list = Array.isArray(answer.value) ? answer.value.filter(isEvent) : [];
      return ok(list.filter((event) => query.since === undefined || Date.parse(event.at) >= query.since));
    },
    async command(command, signal) {
      const { path, body } = commandRequest(command);
      const either = signal === undefined ? closing.signal : AbortSignal.any([closing.signal, signal]);
      const answer = await ask(found, 'POST', path, body, either);
      return answer.ok ? ok(doneOf(answer.value)) : answer;
    },
    async ask<Name extends QuestionName>(name: Name, args: ArgsOf<Name>): Promise<Result<AnswerOf<Name>>> {
      const answer = await ask(
        found,
        'POST',
        `/api/${QUESTIONS[name]}`,
        Object.fromEntries(Object.entries(args)),
        closing.signal,
      );
      // Both ends come from one schema; another version's answer is refused with its state.
      return answer.ok ? ok(answer.value as AnswerOf<Name>) : answer;
    },
    onEnd(listener) {
      endListener = listener;
      if (ended) listener();
    },
    close: () => closing.abort(),
  });

  return new Promise((resolve) => {
    const end = (why: Result<never>): void => {
      if (ended) return;
      ended = true;
      const mine = closing.signal.aborted;
      closing.abort();
      resolve(why);
      if (!mine) endListener();
    };
    const gone = (why: string): void =>
      end(fail('no_runtime', `The runtime at ${found.url} ${why}. Start it again, or host one in this app.`));
    const silence = watchdog(limits.silenceMs ?? SILENCE_MS, () => gone('has fallen silent'));
    const first = watchdog(limits.firstStateMs ?? FIRST_STATE_MS, () => gone('sends no state'));
    const take = (event: string, data: string): void => {
      const value = parseJson(data);
      if (event === 'event' && isEvent(value)) tell(eventListeners, value);
      if (event !== 'state') return;
      if (!isState(value)) {
        end(
          fail(
            'not_supported',
            `The runtime at ${found.url} is of another version than this app; restart it.`,
          ),
        );
        return;
      }
      first.stop();
      latest = value;
      resolve(ok(api(value)));
      tell(stateListeners, value);
    };
    const stream = send(found, 'GET', '/api/stream', null, closing.signal);
    stream.on('error', (error) => gone(`does not answer (${messageOf(error)})`));
    stream.on('close', () => {
      silence.stop();
      first.stop();
      gone('has ended');
    });
    stream.on('response', (answer) => {
      if (answer.statusCode !== 200) {
        answer.resume();
        end(refused(found, answer.statusCode ?? 0, null));
        return;
      }
      const parser = sseParser(MAX_STATE_CHARS);
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        silence.again();
        for (const { event, data } of parser.push(chunk)) take(event, data);
      });
      answer.on('error', () => gone('broke off its stream'));
      answer.on('end', () => gone('has ended'));
    });
    stream.end();
  });
}

/** Asks a runtime once. A GET is to be answered at once, a command may take as long as a model loads. */
export function ask(
  found: FoundRuntime,
  method: 'GET' | 'POST',
  path: string,
  body: object | null,
  signal: AbortSignal,
): Promise<Result<unknown>> {
  return new Promise((resolve) => {
    const lost = (why: string): void =>
      resolve(
        signal.aborted
          ? fail('cancelled', 'The request was given up.')
          : fail('no_runtime', `The runtime at ${found.url} ${why}; start it again.`),
      );
    const limit = method === 'GET' ? AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]) : signal;
    const request = send(found, method, path, body, limit);
    request.on('error', (error) => lost(`does not answer (${messageOf(error)})`));
    request.on('response', (answer) => collect(answer, resolve, lost, found));
    request.end(body === null ? undefined : JSON.stringify(body));
  });
}

function collect(
  answer: IncomingMessage,
  resolve: (result: Result<unknown>) => void,
  lost: (why: string) => void,
  found: FoundRuntime,
): void {
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  answer.on('data', (part: Buffer) => {
    sizeBytes += part.length;
    if (sizeBytes > MAX_ANSWER_BYTES) answer.destroy(new Error('too long'));
    else parts.push(part);
  });
  answer.on('error', () => lost('broke off its answer'));
  answer.on('end', () => {
    const value = parseJson(Buffer.concat(parts).toString('utf8'));
    const status = answer.statusCode ?? 0;
    resolve(status >= 200 && status < 300 ? ok(value) : refused(found, status, value));
  });
}

function send(
  found: FoundRuntime,
  method: string,
  path: string,
  body: object | null,
  signal: AbortSignal,
): ClientRequest {
  return http.request(`${found.url}${path}`, {
    method,
    agent: false,
    signal,
    headers: {
      authorization: `Bearer ${found.token}`,
      ...(body === null ? {} : { 'content-type': 'application/json' }),
    },
  });
}

/** The runtime's own refusal where it gave one. */
function refused(found: FoundRuntime, status: number, body: unknown): Result<never> {
  const error = fieldOf(body, 'error');
  const message = fieldOf(error, 'message');
  const code = fieldOf(error, 'code');
  const numbers = fieldOf(error, 'numbers');
  if (status === 401) {
    return fail('not_permitted', `The runtime at ${found.url} does not take this user's token; restart it.`);
  }
  const text = typeof message === 'string' ? message : `The runtime at ${found.url} answered ${status}.`;
  return fail(isErrorCode(code) ? code : 'internal', text, isNumbers(numbers) ? numbers : undefined);
}

function doneOf(value: unknown): CommandDone {
  const message = fieldOf(value, 'message');
  const numbers = fieldOf(value, 'numbers');
  const models = fieldOf(value, 'models');
  return {
    message: typeof message === 'string' ? message : 'Done.',
    ...(isNumbers(numbers) ? { numbers } : {}),
    ...(isTexts(models) ? { models } : {}),
  };
}

function subscribe<T>(listeners: Set<(value: T) => void>, listener: (value: T) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function tell<T>(listeners: ReadonlySet<(value: T) => void>, value: T): void {
  for (const listener of listeners) listener(value);
}

function watchdog(limitMs: number, run: () => void): { again(): void; stop(): void } {
  const timer = setTimeout(run, limitMs);
  return { again: () => void timer.refresh(), stop: () => clearTimeout(timer) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function isState(value: unknown): value is LandlordState {
  return (
    fieldOf(value, 'schema') === STATE_SCHEMA &&
    typeof fieldOf(value, 'revision') === 'number' &&
    LISTS.every((name) => Array.isArray(fieldOf(value, name)))
  );
}

/** What the tray and the page go through; an older runtime may lack one. */
const LISTS: readonly (keyof LandlordState)[] = [
  'devices',
  'tenants',
  'models',
  'lanes',
  'agents',
  'backends',
  'notices',
  'restorable',
];

function isEvent(value: unknown): value is LandlordEvent {
  return (
    typeof fieldOf(value, 'id') === 'number' &&
    typeof fieldOf(value, 'kind') === 'string' &&
    typeof fieldOf(value, 'reason') === 'string'
  );
}

function isNumbers(value: unknown): value is Readonly<Record<string, number | null>> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((one) => one === null || typeof one === 'number')
  );
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
