/** What a proxy costs that only proxies: undici behind node:http. `node plain-proxy.ts ORIGIN`; prints its port. */
import { createServer } from 'node:http';
import { Agent } from 'undici';

const origin = process.argv[2] ?? '';
const agent = new Agent({ pipelining: 1 });
const server = createServer((request, response) => {
  const { host: _host, connection: _connection, ...headers } = request.headers;
  void agent
    .stream(
      { origin, path: request.url ?? '/', method: 'POST', headers, body: request },
      ({ statusCode, headers: answered }) => {
        const { connection: _hop, 'keep-alive': _alive, 'transfer-encoding': _chunks, ...kept } = answered;
        response.writeHead(statusCode, kept);
        return response;
      },
    )
    .catch(() => response.destroy());
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`);
});
