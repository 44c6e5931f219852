import { createHash } from 'node:crypto';
import http from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { until } from '../../support/router.ts';
import { forwardingProxy, listen, rawRequest, rawUpstream } from '../../support/upstream.ts';

/** Upstreams that do what real ones do on a bad day; the client must see just what they did. */
const OK = 'HTTP/1.1 200 OK\r\n';
const STREAM = `${OK}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n`;

function chunk(part: string | Buffer): Buffer {
  const bytes = Buffer.from(part);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

describe('forward', () => {
  it('keeps the bytes where chunks end inside a letter and inside a field of an event', async () => {
    const text = Buffer.from('event: mess\u00e4ge\ndata: {"t":"\u{1f600} \u4e2d"}\n\ndata: [DONE]\n\n');
    await using upstream = await rawUpstream((socket) => {
      socket.write(STREAM);
      let at = 0;
      const next = (): void => {
        if (at >= text.length) {
          socket.end('0\r\n\r\n');
          return;
        }
        socket.write(chunk(text.subarray(at, at + 1)));
        at += 1;
        setImmediate(next);
      };
      next();
    });
    await using proxy = await forwardingProxy(upstream.port);
    const answer = await rawRequest(proxy.port);
    expect(answer.whole).toBe(true);
    expect(answer.body.equals(text)).toBe(true);
    expect(answer.headers['content-type']).toBe('text/event-stream');
    expect(answer.headers['x-landlord-route']).toBe('local');
  });

  it.each(['n\u00e3o', '\u4e2d\u6587', 'a\u0001b', ''])(
    'passes on an answer whose reason is %j',
    async (reason) => {
      await using upstream = await rawUpstream((socket) => {
        socket.end(`HTTP/1.1 404 ${reason}\r\nContent-Length: 2\r\n\r\nab`);
      });
      await using proxy = await forwardingProxy(upstream.port);
      const answer = await rawRequest(proxy.port);
      expect(answer.status).toBe(404);
      expect(answer.body.toString()).toBe('ab');
    },
  );

  it('passes on what stands behind the body', async () => {
    await using upstream = await rawUpstream((socket) => {
      socket.write(STREAM);
      socket.write(Buffer.concat([chunk('ab'), Buffer.from('0\r\nX-Sum: 7\r\nX-Sum: 8\r\n\r\n')]));
    });
    await using proxy = await forwardingProxy(upstream.port);
    const answer = await rawRequest(proxy.port, { headers: { te: 'trailers' } });
    expect(answer.body.toString()).toBe('ab');
    expect(answer.trailers).toEqual(['X-Sum', '7', 'X-Sum', '8']);
  });

  it('passes gzip on unopened', async () => {
    const packed = gzipSync('{"a":1}');
    await using upstream = await rawUpstream((socket) => {
      socket.write(
        `${OK}Content-Encoding: gzip\r\nContent-Length: ${packed.length}\r\nX-Two: 1\r\nX-Two: 2\r\n\r\n`,
      );
      socket.write(packed);
    });
    await using proxy = await forwardingProxy(upstream.port);
    const answer = await rawRequest(proxy.port, { headers: { 'accept-encoding': 'gzip' } });
    expect(answer.body.equals(packed)).toBe(true);
    expect(answer.headers['content-encoding']).toBe('gzip');
    expect(answer.headers['content-length']).toBe(String(packed.length));
    expect(answer.headers['x-two']).toBe('1, 2');
    expect(upstream.received[0]?.toLowerCase()).toContain('accept-encoding: gzip');
  });

  it('takes an answer that ends with its connection, as HTTP/1.0 has it', async () => {
    await using upstream = await rawUpstream((socket) => {
      socket.end('HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold but whole');
    });
    await using proxy = await forwardingProxy(upstream.port);
    const answer = await rawRequest(proxy.port);
    expect(answer.body.toString()).toBe('old but whole');
    expect(answer.whole).toBe(true);
  });

  it('passes a 500 with HTML on as it is', async () => {
    const page = '<html><body>Internal Server Error</body></html>';
    await using upstream = await rawUpstream((socket) => {
      socket.write(
        `HTTP/1.1 500 Oh Dear\r\nContent-Type: text/html\r\nContent-Length: ${page.length}\r\n\r\n${page}`,
      );
    });
    await using proxy = await forwardingProxy(upstream.port);
    const answer = await rawRequest(proxy.port);
    expect(answer.status).toBe(500);
    expect(answer.headers['content-type']).toBe('text/html');
    expect(answer.body.toString()).toBe(page);
  });

  it('breaks the answer off where the upstream is reset in the middle, never ends it well', async () => {
    await using upstream = await rawUpstream((socket) => {
      socket.write(STREAM);
      socket.write(chunk('data: half\n\n'));
      setTimeout(() => socket.resetAndDestroy(), 30);
    });
    await using proxy = await forwardingProxy(upstream.port);
    const answer = await rawRequest(proxy.port);
    expect(answer.body.toString()).toBe('data: half\n\n');
    expect(answer.whole).toBe(false);
    await until(() => proxy.ends.length === 1, 2_000, 'the end');
    expect(proxy.ends[0]?.kind).toBe('broken');
  });

  it('says refused, and sends nothing, where the upstream is gone before its first byte', async () => {
    await using upstream = await rawUpstream((socket) => socket.resetAndDestroy());
    await using proxy = await forwardingProxy(upstream.port);
    expect((await rawRequest(proxy.port)).status).toBe(502);
    expect(proxy.ends[0]?.kind).toBe('refused');
  });

  it('shows the head at once where the body takes its time', async () => {
    let release = (): void => undefined;
    await using upstream = await rawUpstream((socket) => {
      socket.write(STREAM);
      release = () => socket.end(Buffer.concat([chunk('late'), Buffer.from('0\r\n\r\n')]));
    });
    await using proxy = await forwardingProxy(upstream.port);
    const seen = await new Promise<string>((resolve, reject) => {
      const request = http.get({ host: '127.0.0.1', port: proxy.port, path: '/', agent: false }, (answer) => {
        // The head is here though no byte of the body has been sent.
        release();
        let text = '';
        answer.on('data', (part) => {
          text += part;
        });
        answer.on('end', () => resolve(text));
      });
      request.on('error', reject);
    });
    expect(seen).toBe('late');
  });

  it('cuts the upstream off at once when the client leaves before the first byte', async () => {
    await using upstream = await rawUpstream(() => undefined);
    await using proxy = await forwardingProxy(upstream.port);
    const request = http.get({ host: '127.0.0.1', port: proxy.port, path: '/', agent: false });
    request.on('error', () => undefined);
    await until(() => upstream.received.length === 1, 2_000, 'the request');
    request.destroy();
    await until(() => upstream.closed() === 1, 2_000, 'the upstream to be cut off');
    expect(proxy.ends[0]?.kind).toBe('gone');
  });

  it('cuts a stalled stream off at once when the client leaves in the middle', async () => {
    await using upstream = await rawUpstream((socket) => {
      socket.write(STREAM);
      socket.write(chunk('data: 1\n\n'));
    });
    await using proxy = await forwardingProxy(upstream.port);
    await rawRequest(proxy.port, { onData: (_chunk, request) => request.destroy() });
    await until(() => upstream.closed() === 1, 2_000, 'the upstream to be cut off');
    expect(proxy.ends[0]?.kind).toBe('gone');
  });

  it('takes 100 000 small chunks, in order and whole', async () => {
    const sent = createHash('sha256');
    const server = http.createServer((_request, response) => {
      let index = 0;
      const more = (): void => {
        while (index < 100_000) {
          const part = `data: ${index}\n\n`;
          sent.update(part);
          index += 1;
          if (!response.write(part)) {
            response.once('drain', more);
            return;
          }
        }
        response.end();
      };
      more();
    });
    const port = await listen(server);
    await using proxy = await forwardingProxy(port);
    const answer = await rawRequest(proxy.port);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect(createHash('sha256').update(answer.body).digest('hex')).toBe(sent.digest('hex'));
  });

  it('holds the upstream back while the client takes nothing', async () => {
    let written = 0;
    const server = http.createServer((_request, response) => {
      const block = Buffer.alloc(64 * 1024, 'x');
      const more = (): void => {
        while (written < 256 * 1024 * 1024) {
          written += block.length;
          if (!response.write(block)) {
            response.once('drain', more);
            return;
          }
        }
        response.end();
      };
      more();
    });
    const port = await listen(server);
    await using proxy = await forwardingProxy(port);
    const request = http.get({ host: '127.0.0.1', port: proxy.port, path: '/', agent: false }, (answer) => {
      answer.pause();
    });
    request.on('error', () => undefined);
    let before = -1;
    // It stands still once every buffer between is full.
    await until(
      async () => {
        const now = written;
        await new Promise((resolve) => setTimeout(resolve, 200));
        const still = now > 0 && now === written && now === before;
        before = written;
        return still;
      },
      10_000,
      'the upstream to be held back',
    );
    expect(written).toBeLessThan(64 * 1024 * 1024);
    request.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('says that the upstream is done before the client can see it', async () => {
    await using upstream = await rawUpstream((socket) => {
      socket.write(`${OK}Content-Length: 2\r\n\r\nok`);
    });
    await using proxy = await forwardingProxy(upstream.port);
    await rawRequest(proxy.port);
    expect(proxy.endedAfter).toEqual([false]);
  });

  it('takes off what speaks of one connection only, both ways, and keeps the rest', async () => {
    await using upstream = await rawUpstream((socket) => {
      socket.write(
        `${OK}Connection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\nX-Hop: a\r\nX-Kept: b\r\nContent-Length: 2\r\n\r\nok`,
      );
    });
    await using proxy = await forwardingProxy(upstream.port);
    const answer = await rawRequest(proxy.port, {
      method: 'POST',
      headers: {
        connection: 'close, x-mine',
        'x-mine': '1',
        'X-Other': '2',
        te: 'trailers',
        'x-landlord-session': 's',
      },
      body: 'hello',
    });
    expect(answer.headers['x-hop']).toBeUndefined();
    expect(answer.headers['x-kept']).toBe('b');
    const sent = upstream.received[0] ?? '';
    expect(sent).not.toMatch(/x-mine|x-landlord|^te:/im);
    expect(sent).toMatch(/X-Other: 2/);
    expect(sent.endsWith('hello')).toBe(true);
  });
});
