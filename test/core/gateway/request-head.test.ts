import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import {
  BodyTooLarge,
  type HeadRead,
  MAX_BODY_BYTES,
  readHead,
  renamed,
  rest,
  spooledBody,
} from '../../../electron/core/gateway/request-head.ts';
import { listen, rawRequest } from '../../support/upstream.ts';

interface Read {
  readonly read: HeadRead;
  readonly restBytes: number | 'too large';
  /** Of what goes on to the backend, with the model renamed to `other`. */
  readonly sentHash: string;
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function send(body: Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Read> {
  let result: Read | null = null;
  const server = http.createServer((request, response) => {
    void (async () => {
      const read = await readHead(request);
      let restBytes: Read['restBytes'] = 0;
      const sent = createHash('sha256');
      if (read.kind === 'read' && read.head.spool !== null) {
        await using spool = read.head.spool;
        for await (const chunk of spooledBody(request, read.head, spool, 'other').body) {
          restBytes += chunk.length;
          sent.update(chunk);
        }
        result = { read, restBytes, sentHash: sent.digest('hex') };
        response.writeHead(200, { connection: 'close' }).end();
        return;
      }
      if (read.kind === 'read' && !read.head.whole) {
        try {
          for await (const chunk of rest(request, read.head.bytes, read.head.bytes.length))
            restBytes += chunk.length;
        } catch (error) {
          if (!(error instanceof BodyTooLarge)) throw error;
          restBytes = 'too large';
        }
      }
      result = { read, restBytes, sentHash: sent.digest('hex') };
      response.writeHead(200, { connection: 'close' }).end();
    })();
  });
  const port = await listen(server);
  await rawRequest(port, { method: 'POST', headers, body }).catch(() => undefined);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  if (result === null) throw new Error('nothing was read');
  return result;
}

function withImage(bytes: number): Buffer {
  const head = Buffer.from('{"model":"m","stream":true,"image":"');
  const tail = Buffer.from('"}');
  return Buffer.concat([head, Buffer.alloc(bytes - head.length - tail.length, 'A'), tail]);
}

describe('the head of a request', () => {
  it('is the whole of a small body, so that it can be sent again', async () => {
    const { read } = await send(Buffer.from('{"messages":[],"model":"m","user":"u"}'));
    expect(read).toMatchObject({
      kind: 'read',
      head: { whole: true, user: 'u', stream: false, model: { value: 'm' } },
    });
  });

  it('of a small body that came with it is at hand, and the next one of that connection too', async () => {
    const reads: unknown[] = [];
    const server = http.createServer((request, response) => {
      queueMicrotask(() => {
        reads.push(readHead(request));
        response.end('read');
      });
    });
    const port = await listen(server);
    const socket = net.connect(port, '127.0.0.1');
    for (const body of ['{"model":"first"}', '{"model":"ünd"}']) {
      const announced = `content-length: ${Buffer.byteLength(body)}`;
      socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${announced}\r\n\r\n${body}`);
      await once(socket, 'data');
    }
    socket.destroy();
    server.close();
    expect(reads).toMatchObject([
      { kind: 'read', head: { whole: true, model: { value: 'first' } } },
      { kind: 'read', head: { whole: true, model: { value: 'ünd' } } },
    ]);
  });

  it('of 64 MB is only its beginning; the rest goes through as it comes', async () => {
    const body = withImage(MAX_BODY_BYTES);
    const { read, restBytes } = await send(body);
    if (read.kind !== 'read') throw new Error(read.kind);
    expect(read.head.bytes.length).toBeLessThan(1024 * 1024);
    expect(read.head.model?.value).toBe('m');
    expect(restBytes).toBe(MAX_BODY_BYTES);
  });

  it('knows a stream by a word behind a long conversation, as the official clients put it', async () => {
    const body = (bytes: number): Buffer =>
      Buffer.from(`{"model":"m","messages":"${'a'.repeat(bytes)}","stream":true}`);
    const { read } = await send(body(900_000));
    expect(read).toMatchObject({ kind: 'read', head: { stream: true, whole: true } });
    const longer = await send(body(5_000_000));
    if (longer.read.kind !== 'read') throw new Error(longer.read.kind);
    expect(longer.read.head.bytes.length).toBeLessThan(1_200_000);
    expect(longer.restBytes).toBe(body(5_000_000).length);
  });

  it('that names its model last is not held in memory either, and reaches the backend byte for byte', async () => {
    const image = 'A'.repeat(MAX_BODY_BYTES - 1000);
    const body = (model: string): Buffer => Buffer.from(`{"image":"${image}","model":"${model}","n":1}`);
    const { read, sentHash } = await send(body('m'));
    if (read.kind !== 'read') throw new Error(read.kind);
    expect(read.head.model?.value).toBe('m');
    expect(read.head.bytes.length).toBe(0);
    expect(sentHash).toBe(hash(body('other')));
  });

  it('of an upload whose file comes first is found behind it, whatever is cut where', async () => {
    const form = (model: string): Buffer =>
      Buffer.concat([
        Buffer.from('--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'),
        Buffer.alloc(5_000_000, '-'),
        Buffer.from(`\r\n--x\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--x--\r\n`),
      ]);
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const { read, restBytes, sentHash } = await send(form('whisper'), headers);
    if (read.kind !== 'read') throw new Error(read.kind);
    expect(read.head.model?.value).toBe('whisper');
    expect(restBytes).toBe(form('other').length);
    expect(sentHash).toBe(hash(form('other')));
  });

  it.each([
    [
      'an upload that names no model',
      'multipart/form-data; boundary=x',
      '--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n',
    ],
    ['a text that never ends', 'application/json', '{"messages":"'],
  ])(
    'of %s is read to its end and goes on whole: whoever sent it waits for an answer',
    async (_, type, first) => {
      const body = Buffer.concat([Buffer.from(first), Buffer.alloc(6_000_000, 'a')]);
      const { read, restBytes, sentHash } = await send(body, { 'content-type': type });
      expect(read).toMatchObject({ kind: 'read', head: { whole: true, model: null } });
      expect([restBytes, sentHash]).toEqual([body.length, hash(body)]);
    },
  );

  it('is refused by the length it announces, before a byte of it is read', async () => {
    const { read } = await send(withImage(1024), { 'content-length': String(MAX_BODY_BYTES + 1) }).catch(
      () => ({ read: null }),
    );
    expect(read?.kind).toBe('too_large');
  });

  it('is refused on the way where it announces none', async () => {
    const { restBytes } = await send(withImage(MAX_BODY_BYTES + 1), { 'transfer-encoding': 'chunked' });
    expect(restBytes).toBe('too large');
  });
});

describe('another name for the model', () => {
  it('changes that token and no other byte', () => {
    const text = '{ "a" : 1.0,"model"\t:"router/x", "b":"router/x"}';
    const from = text.indexOf('"router/x"');
    const head = {
      model: { value: 'router/x', from, to: from + 10 },
      user: null,
      stream: false,
      bytes: Buffer.from(text),
      spool: null,
      whole: true,
    };
    expect(renamed(head, 'x', true).toString()).toBe('{ "a" : 1.0,"model"\t:"x", "b":"router/x"}');
  });
});
