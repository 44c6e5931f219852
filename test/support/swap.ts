import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { freePort, type RunningServer, startLlamaServer } from './llama-server.ts';
import { until } from './router.ts';

export interface TestSwap extends AsyncDisposable {
  readonly url: string;
  /** Of everything that was asked, as `GET /running`. */
  readonly asked: readonly string[];
}

/** What llama-swap does with one model, over a real llama-server: started with the first use, ended when asked. */
export async function startSwap(name: string, args: readonly string[]): Promise<TestSwap> {
  const port = await freePort();
  let child: RunningServer | null = null;
  let starting: Promise<void> | null = null;
  const asked: string[] = [];
  const start = (): Promise<void> => {
    starting ??= (async () => {
      if (child !== null) return;
      const started = await startLlamaServer(args, { port });
      const isReady = async (): Promise<boolean> => (await fetch(`${started.url}/health`)).status === 200;
      await until(isReady, 30_000, 'the model');
      child = started;
    })().finally(() => {
      starting = null;
    });
    return starting;
  };
  const state = (): string => (starting !== null ? 'starting' : child === null ? 'stopped' : 'ready');
  const cmd = ['llama-server', '--port', String(port), ...args].join(' ');
  const pass = async (request: IncomingMessage, response: ServerResponse, path: string): Promise<void> => {
    await start();
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const init = { method: request.method ?? 'GET', headers: { 'content-type': 'application/json' } };
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, body === '' ? init : { ...init, body });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const what = `${request.method} ${request.url}`;
    asked.push(what);
    const say = (body: unknown, status = 200): void => {
      response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    if (what === 'GET /running') {
      const one = { model: name, state: state(), cmd, proxy: `http://127.0.0.1:${port}`, ttl: 0 };
      return say({ running: state() === 'stopped' ? [] : [one] });
    }
    if (what === 'GET /v1/models') return say({ object: 'list', data: [{ id: name, object: 'model' }] });
    if (what === 'GET /api/version') return say({ version: '217' });
    if (what === `POST /api/models/unload/${name}`) {
      await child?.end();
      child = null;
      return say('OK');
    }
    const upstream = new RegExp(`^/upstream/${name}(/.*)$`).exec(request.url ?? '')?.[1];
    if (upstream !== undefined) return await pass(request, response, upstream);
    if (what === 'POST /v1/chat/completions') return await pass(request, response, '/v1/chat/completions');
    say('404 page not found', 404);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.writeHead(502).end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the system gave no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    asked,
    async [Symbol.asyncDispose]() {
      await child?.end();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
