import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answerWithin, connectionLimit, refuseNonsense } from '../../../electron/core/http/crowd.ts';
import { RawClient } from '../../support/raw-client.ts';

const LIMIT_MS = 20_000;

let server: Server;
let port = 0;
let clients: RawClient[] = [];
/** Answers when told to. */
let answers: (() => void)[] = [];

beforeEach(async () => {
  answers = [];
  clients = [];
  server = createServer();
  server.on('clientError', refuseNonsense);
  const isWebSocket = answerWithin(
    server,
    (request, response) => {
      if (request.url?.startsWith('/now') === true) response.end(request.url.slice(1));
      else answers.push(() => response.end('later'));
    },
    4,
  );
  server.on('upgrade', (request, socket) => {
    isWebSocket(request.socket);
    const end = (): void => void socket.destroy();
    socket.on('error', end).on('end', end).resume();
    socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
});
afterEach(async () => {
  for (const client of clients) client[Symbol.dispose]();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function open(text = ''): Promise<RawClient> {
  const client = new RawClient(port);
  clients.push(client);
  await new Promise((resolve) => client.socket.once('connect', resolve));
  if (text !== '') client.send(text);
  return client;
}

const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;

async function isServed(): Promise<void> {
  const client = await open(ask('/now'));
  expect(await client.until((text) => text.endsWith('now'), LIMIT_MS)).toBe(true);
  expect(client.text).toContain('200 OK');
}

describe('more connections than a listener holds', () => {
  it('one that asks nothing makes way, the longest quiet first', async () => {
    const quiet = [await open(), await open(ask('/now')), await open('GET / HT')];
    await quiet[1]?.until((text) => text.endsWith('now'), LIMIT_MS);
    await isServed();
    await isServed();
    expect(await quiet[0]?.until(() => false, LIMIT_MS)).toBe(true);
    expect(quiet[1]?.isOver).toBe(false);
    await isServed();
    expect(await quiet[2]?.until(() => false, LIMIT_MS)).toBe(true);
  });

  it('one that is being answered never makes way, but one that still sends its body does', async () => {
    const asked = [await open(ask('/later')), await open(ask('/later'))];
    const slow = await open('POST /later HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc');
    const last = await open(ask('/later'));
    while (answers.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    await isServed();
    expect(await slow.until(() => false, LIMIT_MS)).toBe(true);
    const more = await open(ask('/later'));
    while (answers.length < 5) await new Promise((resolve) => setTimeout(resolve, 5));
    // Now all four are waited for: the newcomer itself goes.
    const fifth = await open(ask('/now'));
    expect(await fifth.until(() => false, LIMIT_MS)).toBe(true);
    for (const answer of answers) answer();
    for (const client of [...asked, last, more])
      expect(await client.until((text) => text.endsWith('later'), LIMIT_MS)).toBe(true);
  });

  it('a websocket never makes way, though nothing is asked on it any more', async () => {
    const joined = await open(
      'GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    );
    expect(await joined.until((text) => text.includes(' 101 '), LIMIT_MS)).toBe(true);
    const quiet = [await open(ask('/now')), await open(ask('/now')), await open(ask('/now'))];
    for (const client of quiet) await client.until((text) => text.endsWith('now'), LIMIT_MS);
    await isServed();
    expect(await quiet[0]?.until(() => false, LIMIT_MS)).toBe(true);
    expect(joined.isOver).toBe(false);
  });

  it('one that has its answer and goes on sending is cut off, and can read the answer', async () => {
    const client = await open('POST /now HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000000\r\n\r\n');
    expect(await client.until((text) => text.endsWith('now'), LIMIT_MS)).toBe(true);
    const sent = await client.pour(new Uint8Array(1024 * 1024), 4_000_000_000);
    expect(await client.until(() => false, LIMIT_MS)).toBe(true);
    expect(sent).toBeLessThan(2_000_000_000);
  });

  it('is some of the files that may be open, and never none', () => {
    expect(connectionLimit(null)).toBe(256);
    expect(connectionLimit(1_048_576)).toBe(2_000);
    expect(connectionLimit(1_024)).toBe(128);
    expect(connectionLimit(4_096)).toBe(1_698);
    expect(connectionLimit(20)).toBe(16);
  });
});

describe('requests that a client sends ahead', () => {
  it('are answered in order, one after the other, bodies too', async () => {
    const post = 'POST /now3 HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc';
    const client = await open(ask('/later') + ask('/now1') + ask('/later') + post + ask('/now4'));
    while (answers.length < 1) await new Promise((resolve) => setTimeout(resolve, 5));
    await isServed();
    expect([answers.length, client.text]).toEqual([1, '']);
    answers[0]?.();
    while (answers.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await client.until((text) => text.endsWith('now1'), LIMIT_MS)).toBe(true);
    answers[1]?.();
    expect(await client.until((text) => text.endsWith('now4'), LIMIT_MS)).toBe(true);
    expect(client.text.match(/later|now\d/g)).toEqual(['later', 'now1', 'later', 'now3', 'now4']);
    client.send(ask('/now5'));
    expect(await client.until((text) => text.endsWith('now5'), LIMIT_MS)).toBe(true);
  });

  it('end the connection where they are more than anybody sends, and begin nothing', async () => {
    const client = await open(ask('/later').repeat(2_000));
    expect(await client.until(() => false, LIMIT_MS)).toBe(true);
    expect(answers).toHaveLength(1);
    for (const answer of answers) answer();
    await isServed();
  });
});

describe('what is no HTTP', () => {
  it('is answered and let go, though the other side stays open', async () => {
    const client = await open('\x16\x03\x01 hello\r\n\r\n');
    expect(await client.until(() => false, LIMIT_MS)).toBe(true);
    expect(client.text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    const wide = await open(`GET / HTTP/1.1\r\nhost: x\r\na: ${'b'.repeat(40_000)}\r\n\r\n`);
    expect(await wide.until(() => false, LIMIT_MS)).toBe(true);
    expect(wide.text === '' || wide.text.startsWith('HTTP/1.1 431 ')).toBe(true);
    const count = await new Promise((resolve) => server.getConnections((_error, found) => resolve(found)));
    expect(count).toBeLessThanOrEqual(2);
  });
});
