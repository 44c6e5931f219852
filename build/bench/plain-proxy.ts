/**
 * What a proxy costs that only proxies: undici behind node:http. `node plain-proxy.ts ORIGIN request|stream`; prints
 * its port. `request`: the answer's body is piped, as undici's README has it; `stream`: undici's own shortcut for that.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Agent, type Dispatcher } from 'undici';

const [, , origin = '', how = 'request'] = process.argv;
const agent = new Agent({ pipelining: 1 });

function options(request: IncomingMessage): Dispatcher.RequestOptions {
  const { host: _host, connection: _connection, ...headers } = request.headers;
  return { origin, path: request.url ?? '/', method: 'POST', headers, body: request };
}

function begin(
  response: ServerResponse,
  statusCode: number,
  headers: Record<string, string | string[] | undefined>,
): ServerResponse {
  const { connection: _hop, 'keep-alive': _alive, 'transfer-encoding': _chunks, ...kept } = headers;
  return response.writeHead(statusCode, kept);
}

async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (how === 'stream') {
    await agent.stream(options(request), ({ statusCode, headers }) => begin(response, statusCode, headers));
    return;
  }
  const answer = await agent.request(options(request));
  await pipeline(answer.body, begin(response, answer.statusCode, answer.headers));
}

const server = createServer((request, response) => {
  void pass(request, response).catch(() => response.destroy());
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`);
});
