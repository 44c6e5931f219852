import { createServer, type RequestListener, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpClient, httpClient, objectionTo, saidBy } from '../../../electron/core/backends/http.ts';

const open: { server: Server; client: HttpClient }[] = [];

async function serve(listener: RequestListener, apiKey: string | null = null): Promise<HttpClient> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const client = httpClient(`http://127.0.0.1:${address.port}`, apiKey);
  open.push({ server, client });
  return client;
}

afterEach(async () => {
  for (const { server, client } of open.splice(0)) {
    client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** The sentence for `GET /models`. */
async function objection(client: HttpClient, options = {}): Promise<string | null> {
  return objectionTo(await client.get('/models', options), client.baseUrl, '/models');
}

describe('every way a server can answer wrongly is a sentence', () => {
  it('a list longer than any is, which would keep us busy with nothing else', async () => {
    const listOf = (length: number): Promise<HttpClient> =>
      serve((_, response) =>
        response.end(
          JSON.stringify({ object: 'list', data: Array.from({ length }, (_one, at) => ({ id: `${at}` })) }),
        ),
      );
    expect(await objection(await listOf(5_000))).toBeNull();
    expect(await objection(await listOf(5_001))).toContain('lists 5001 entries');
  });

  it('nothing is wrong with JSON and 200', async () => {
    const client = await serve((_, response) => response.end('{"data":[]}'));
    expect(await objection(client)).toBeNull();
  });

  it.each<[string, number, string, RegExp]>([
    [
      'a web page',
      200,
      '<!doctype html><title>x</title>',
      /web page instead of JSON.*correct the backend's url/,
    ],
    ['nothing', 200, '', /answers with nothing/],
    ['plain text', 200, 'hello', /not JSON/],
    ['null', 200, 'null', /not JSON/],
    ['a demand for a key', 401, '{"error":{"message":"no"}}', /API key.*apiKeyEnv/],
    ["the server's own words", 500, '{"error":{"message":"out of memory"}}', /status 500 \(out of memory\)/],
    ['another address to ask', 302, '', /sends its callers elsewhere \(status 302\).*no key is taken/],
    ['an error page', 502, '<html>', /status 502 \(a web page\)/],
  ])('%s', async (_, status, body, expected) => {
    const client = await serve((__, response) => response.writeHead(status).end(body));
    expect(await objection(client)).toMatch(expected);
  });

  it('nobody listening', async () => {
    const client = await serve(() => undefined);
    await new Promise((resolve) => open[0]?.server.close(resolve));
    const answer = await client.get('/models');
    expect(answer).toMatchObject({ kind: 'failed', reason: 'refused' });
    expect(saidBy(answer)).toMatch(/Nothing listens at .*: start the server/);
  });

  it('an answer that does not come, or stops half way', async () => {
    const silent = await serve(() => undefined);
    expect(await objection(silent, { timeoutMs: 50 })).toMatch(/within 50 ms/);
    const half = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"data":');
    });
    expect(await half.get('/models', { timeoutMs: 50 })).toMatchObject({ reason: 'timed_out' });
  });

  it('a connection that is cut, after one more try', async () => {
    let tries = 0;
    const client = await serve((request) => {
      tries += 1;
      request.socket.destroy();
    });
    expect(await client.get('/models')).toMatchObject({ kind: 'failed', reason: 'cut' });
    expect(tries).toBe(2);
  });

  it('more than is read', async () => {
    const client = await serve((_, response) => response.end('x'.repeat(10_000)));
    expect(await client.get('/models', { maxBytes: 1_000 })).toMatchObject({ reason: 'too_big' });
  });

  it('an answer byte by byte, which would take gigabytes long before it is too long', async () => {
    const client = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const bytes = '1\r\na\r\n'.repeat(4_096);
      const go = (): void => {
        while (response.socket?.writable === true && response.socket.write(bytes));
      };
      response.flushHeaders();
      response.socket?.on('drain', go);
      go();
    });
    const answer = await client.get('/models', { timeoutMs: 25_000 });
    expect(answer).toMatchObject({ reason: 'too_big' });
    expect(answer.kind === 'failed' && answer.message).toContain('pieces');
  });

  it('beginnings of an answer without end', async () => {
    const client = await serve((_, response) => {
      const timer = setInterval(() => response.writeProcessing(), 1);
      response.on('close', () => clearInterval(timer));
    });
    expect(await client.get('/models', { timeoutMs: 25_000 })).toMatchObject({ reason: 'too_big' });
  });

  it.each([
    ['lists in lists', '[', ']'],
    ['objects in objects', '{"a":', '}'],
  ])('%s that take half a gigabyte to parse: they are no JSON here', async (_, opening, closing) => {
    const deep = `${opening.repeat(500_000)}1${closing.repeat(500_000)}`;
    const client = await serve((__, response) => response.end(deep));
    expect(await objection(client)).toMatch(/not JSON/);
  });

  it('a long answer with brackets in its texts is JSON all the same', async () => {
    const value = { data: [{ id: '["{'.repeat(40_000), more: 'a\\"[' }] };
    const client = await serve((_, response) => response.end(JSON.stringify(value)));
    expect(await client.get('/models')).toMatchObject({ json: value });
  });

  it('a caller that gives up', async () => {
    const client = await serve(() => undefined);
    expect(await client.get('/models', { signal: AbortSignal.timeout(20) })).toMatchObject({
      reason: 'cancelled',
    });
    expect(await client.get('/models', { signal: AbortSignal.abort() })).toMatchObject({
      reason: 'cancelled',
    });
  });
});

describe('requests', () => {
  it('carry the key only where there is one', async () => {
    const seen: (string | undefined)[] = [];
    const listener: RequestListener = (request, response) => {
      seen.push(request.headers.authorization);
      response.end('{}');
    };
    await (await serve(listener)).get('/x');
    await (await serve(listener, 'secret')).get('/x');
    expect(seen).toEqual([undefined, 'Bearer secret']);
  });

  it('a stream is open through silence and ends in order or by us', async () => {
    const client = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: é\n\n');
      setTimeout(() => response.end(), 80);
    });
    let text = '';
    const end = await client.stream('/sse', {
      signal: new AbortController().signal,
      openTimeoutMs: 40,
      onOpen: () => undefined,
      onText: (chunk) => {
        text += chunk;
      },
    });
    expect([end, text]).toEqual([null, 'data: é\n\n']);
    const closing = new AbortController();
    const cancelled = await client.stream('/sse', {
      signal: closing.signal,
      onOpen: () => closing.abort(),
      onText: () => undefined,
    });
    expect(cancelled).toMatchObject({ reason: 'cancelled' });
  });
});
