import { createServer, type IncomingHttpHeaders } from 'node:http';

/** A server elsewhere that keeps with which headers it was asked. */
export interface UpstreamEcho {
  readonly url: string;
  readonly asked: readonly IncomingHttpHeaders[];
  close(): Promise<void>;
}

export async function startUpstreamEcho(): Promise<UpstreamEcho> {
  const asked: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    asked.push(request.headers);
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
