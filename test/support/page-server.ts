/**
 * Serves the built page on loopback over a scenario: the routes it uses, and no runtime behind them.
 * What the page posts is recorded; its connection can be cut and given back.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { contentSecurityPolicy, SAFE_HEADERS } from '../../electron/core/http/headers.ts';
import { readPageFile } from '../../electron/core/http/static-page.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import { QUESTIONS } from '../../shared/ipc-schema.ts';
import type { LandlordState } from '../../shared/state.ts';
import type { Scenario } from './states.ts';

export const pageDir = fileURLToPath(new URL('../../out/renderer', import.meta.url));

export interface Posted {
  readonly path: string;
  readonly body: unknown;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export interface PageServer {
  readonly url: string;
  readonly posted: readonly Posted[];
  /** Questions that the page asked, which change nothing; answered by `answer`, else refused. */
  readonly asked: readonly Posted[];
  /** Goes over to another scenario, and marks its arrival with an event of the returned id. */
  show(scenario: Scenario): number;
  sendState(state: LandlordState): void;
  sendEvent(event: LandlordEvent): void;
  /** How the next posts to a path are answered; 200 otherwise. */
  answer(path: string, answer: Answer): void;
  /** Cuts all streams and refuses new ones with this status until `restore`. */
  cut(status: number): void;
  restore(): void;
  close(): Promise<void>;
}

const NO_ANSWER: Answer = {
  status: 501,
  body: { error: { code: 'not_supported', message: 'No answer to this is set.' } },
};

export async function startPageServer(first: Scenario): Promise<PageServer> {
  let scenario = first;
  let refusal: number | null = null;
  let shown = 0;
  const streams = new Set<ServerResponse>();
  const posted: Posted[] = [];
  const asked: Posted[] = [];
  const questions = new Set<string>(Object.values(QUESTIONS).map((path) => `/api/${path}`));
  const answers = new Map<string, Answer>();

  const sendJson = (response: ServerResponse, status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  const frame = (event: string, data: unknown): string =>
    `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

  const openStream = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write(frame('state', scenario.state));
    streams.add(response);
    response.on('close', () => streams.delete(response));
  };
  const record = async (request: IncomingMessage, path: string): Promise<Answer> => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const entry = { path, body: text === '' ? null : JSON.parse(text) };
    if (questions.has(path)) {
      asked.push(entry);
      return answers.get(path) ?? NO_ANSWER;
    }
    posted.push(entry);
    return answers.get(path) ?? { status: 200, body: { message: 'Done.' } };
  };
  const servePage = async (response: ServerResponse, path: string): Promise<void> => {
    const file = await readPageFile(pageDir, path);
    if (file === null) {
      response.writeHead(404).end();
      return;
    }
    response
      .writeHead(200, {
        ...SAFE_HEADERS,
        'content-security-policy': contentSecurityPolicy(null),
        'content-type': file.contentType,
      })
      .end(file.content);
  };

  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    if (refusal !== null && path.startsWith('/api/')) {
      sendJson(response, refusal, { error: { code: 'unauthorized', message: 'Refused.' } });
    } else if (request.method === 'POST') {
      void record(request, path).then(({ status, body }) => sendJson(response, status, body));
    } else if (path === '/api/stream') openStream(response);
    else if (path === '/api/events') {
      const limit = Number(new URL(request.url ?? '/', 'http://localhost').searchParams.get('limit') ?? 200);
      sendJson(response, 200, scenario.events.slice(-limit));
    } else if (path === '/api/state') sendJson(response, 200, scenario.state);
    else void servePage(response, path);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  const broadcast = (text: string): void => {
    for (const stream of streams) stream.write(text);
  };
  return {
    url: `http://127.0.0.1:${address.port}/`,
    posted,
    asked,
    show(next) {
      shown += 1;
      const id = 1_000_000 + shown;
      scenario = { ...next, state: { ...next.state, revision: 1_000_000 + shown } };
      broadcast(frame('state', scenario.state));
      const { at } = next.state;
      broadcast(frame('event', { id, at, kind: 'resumed', reason: `Scenario ${shown}.`, numbers: {} }));
      return id;
    },
    sendState: (state) => broadcast(frame('state', state)),
    sendEvent: (event) => broadcast(frame('event', event)),
    answer: (path, answer) => void answers.set(path, answer),
    cut(status) {
      refusal = status;
      for (const stream of streams) stream.destroy();
    },
    restore() {
      refusal = null;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
