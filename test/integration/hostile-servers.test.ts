import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { figure } from '../support/figures.ts';
import { TINY_SHAPE } from '../support/gguf.ts';
import { startRouter, until } from '../support/router.ts';
import { startServeProcess } from '../support/serve-process.ts';

const MB = 1_000_000;
/** Eight megabytes may be read of each, and 48 ask at once. Answers byte by byte took 2 GB in ten seconds. */
const MAY_GROW_BYTES = 500 * MB;
const KINDS = ['openai', 'llama.cpp', 'ollama', 'lemonade'];

const head = (more: string): string => `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;
const chunked = (bytes: string): string => `${bytes.length.toString(16)}\r\n${bytes}\r\n`;
const CHUNKED = head('transfer-encoding: chunked');

/** What each server says first, and then again and again; null: it hangs up. */
const SERVERS: Readonly<Record<string, readonly [string, string | null]>> = {
  'a gigabyte': [head('content-length: 1000000000'), ' '.repeat(65_536)],
  'chunks without end': [CHUNKED, chunked(' '.repeat(65_536))],
  'byte by byte': [CHUNKED, chunked('a').repeat(4_096)],
  'lists in lists': [head('content-length: 8000000'), '['.repeat(65_536)],
  'events of nothing': [
    'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n',
    'data:\n'.repeat(10_000),
  ],
  'a head without end': ['HTTP/1.1 200 OK\r\n', `x-a: ${'b'.repeat(1_000)}\r\n`.repeat(60)],
  'beginnings without end': ['', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(1_000)],
  nonsense: ['', '\0\xff\xfe'.repeat(20_000)],
  half: [`${head('content-length: 1000')}{"data":[`, null],
  'less than it says': [head('content-length: 1000'), null],
  'more than it says': [head('content-length: 2'), '{"data":[{"id":"x"}]}'.repeat(1_000)],
  'somewhere else': [
    'HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n',
    null,
  ],
};

function answer(socket: Socket, [first, more]: readonly [string, string | null]): void {
  socket.write(first, 'latin1');
  if (more === null) {
    socket.end();
    return;
  }
  const block = Buffer.from(more, 'latin1');
  const go = (): void => {
    while (socket.writable && socket.write(block));
  };
  socket.on('drain', go);
  go();
}

const open: { close(): void }[] = [];
afterAll(() => {
  for (const one of open) one.close();
});

async function listen(said: readonly [string, string | null]): Promise<number> {
  const server = createServer((socket) => {
    open.push({ close: () => socket.destroy() });
    socket.on('error', () => undefined);
    socket.once('data', () => answer(socket, said));
  });
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

it('servers that answer without end, or with nonsense, cost no memory, and the others are watched and served', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'landlord-hostile-servers-'));
  await using router = await startRouter({ models: { tiny: { shape: TINY_SHAPE } } });
  const lines: string[] = [];
  for (const said of Object.values(SERVERS))
    for (const kind of KINDS)
      lines.push(
        `  - { name: hostile-${lines.length}, kind: ${kind}, url: "http://127.0.0.1:${await listen(said)}" }`,
      );
  const config = (backends: readonly string[]): string =>
    `devices:\n  - { kind: system }\nbackends:\n  - { name: router, kind: llama.cpp, url: "${router.url}" }\n${backends.join('\n')}\n`;
  let honestBytes = 0;
  {
    await using honest = await startServeProcess({ folder, config: config([]) });
    honestBytes = await honest.residentBytes();
  }
  await using served = await startServeProcess({ folder, config: config(lines) });
  const aTurn = async (): Promise<boolean> => {
    const asked = await served.post('/v1/chat/completions', {
      model: 'router/tiny',
      messages: [{ role: 'user', content: 'abc' }],
      max_tokens: 4,
    });
    return (await asked.text()).includes('choices');
  };
  let mostBytes = 0;
  for (let look = 0; look < 30; look += 1) {
    expect(await aTurn()).toBe(true);
    mostBytes = Math.max(mostBytes, await served.residentBytes());
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  figure(
    `${lines.length} hostile servers`,
    `resident memory at most ${((mostBytes - honestBytes) / MB).toFixed(0)} MB above ${(honestBytes / MB).toFixed(0)} MB`,
  );
  expect(mostBytes - honestBytes).toBeLessThan(MAY_GROW_BYTES);
  const isTold = async (): Promise<boolean> =>
    (await served.state()).backends.every(({ name, error }) => name === 'router' || error !== null);
  await until(isTold, 60_000, 'what is wrong with each to be told');
  const { backends } = await served.state();
  expect(backends.find(({ name }) => name === 'router')?.status).toBe('up');
  expect(served.err()).toBe('');
  expect(await served.end()).toBe(0);
  await rm(folder, { recursive: true, force: true });
}, 180_000);
