import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { ProcessFacts } from '../../electron/core/process/identity.ts';
import type { ServerInspector } from '../../electron/core/process/proof.ts';

export interface FakeAnswer {
  readonly status?: number;
  readonly body: unknown;
}

/** An HTTP server that answers as a llama.cpp router would, from a table that the test changes. */
export interface FakeLlama extends AsyncDisposable {
  readonly url: string;
  /** Every request so far: `GET /models`. */
  readonly asked: string[];
  /** By `GET /path?query`, then by `GET /path`; a string is sent as it is. Anything else is 404. */
  readonly answers: Map<string, FakeAnswer>;
  /** Sends an event to every open stream. */
  send(event: unknown): void;
  /** Cuts every open stream. */
  cut(): void;
  streams(): number;
}

export const ROUTER_PROPS = {
  role: 'router',
  build_info: 'b11669-test',
  default_generation_settings: { n_ctx: 0 },
};

/** One entry of a router's list. */
export function entry(id: string, value: string, args: readonly string[] = []) {
  return {
    id,
    aliases: [`${id}-alias`],
    status: { value, args: ['llama-server', ...args], preset: `[${id}]\n` },
  };
}

/** `events`: `hang` takes the request for the stream and never answers. `onStream` is called as each event stream opens, before anything is sent on it. */
export async function fakeLlama(
  options: { readonly events?: boolean | 'hang'; readonly onStream?: () => void } = {},
): Promise<FakeLlama> {
  const asked: string[] = [];
  const streams = new Set<ServerResponse>();
  const answers = new Map<string, FakeAnswer>([
    ['GET /props', { body: ROUTER_PROPS }],
    ['GET /models', { body: { data: [] } }],
  ]);
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const target = `${request.method} ${request.url}`;
    asked.push(target);
    if (target === 'GET /models/sse' && options.events === 'hang') return;
    if (target === 'GET /models/sse' && options.events !== false) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      streams.add(response);
      options.onStream?.();
      response.on('close', () => streams.delete(response));
      return;
    }
    const answer = answers.get(target) ?? answers.get(target.split('?')[0] ?? '');
    const { status, body } = answer ?? {
      status: 404,
      body: { error: { message: 'File Not Found', code: 404 } },
    };
    request.resume();
    request.on('end', () => {
      response.writeHead(status ?? 200).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  };
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the system gave no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    asked,
    answers,
    send(event) {
      for (const stream of streams) stream.write(`data: ${JSON.stringify(event)}\n\n`);
    },
    cut() {
      for (const stream of streams) stream.destroy();
    },
    streams: () => streams.size,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Knows only the processes it is given; a test may change them. */
export function fakeInspector(processes: ProcessFacts[] = []): ServerInspector & { finds: number } {
  return {
    finds: 0,
    async find(query) {
      this.finds += 1;
      return processes.filter(
        (process) =>
          process.listeningPorts?.includes(query.port) === true ||
          process.command?.includes(String(query.port)) === true,
      );
    },
    facts: async (pids) =>
      processes
        .filter((process) => pids.includes(process.pid))
        .map((process) => ({ ...process, firstThreadMs: process.cpuMs })),
  };
}
