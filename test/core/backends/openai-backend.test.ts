import http from 'node:http';
import { afterEach, expect, it } from 'vitest';
import type { Backend } from '../../../electron/core/backends/backend.ts';
import { openAiBackend } from '../../../electron/core/backends/openai-backend.ts';
import { systemClock } from '../../../electron/core/clock.ts';
import { until } from '../../support/router.ts';
import { listen } from '../../support/upstream.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

interface Far {
  readonly url: string;
  readonly asked: { readonly path: string; readonly key: string | undefined; readonly atMs: number }[];
  answer: (response: http.ServerResponse) => void;
}

async function far(): Promise<Far> {
  const one: Far = {
    url: '',
    asked: [],
    answer: (response) =>
      response.end('{"object":"list","data":[{"id":"qwen"},{"id":"org/gemma"},{"id":7},null,{"id":"qwen"}]}'),
  };
  const server = http.createServer((request, response) => {
    one.asked.push({ path: request.url ?? '', key: request.headers.authorization, atMs: performance.now() });
    response.setHeader('content-type', 'application/json');
    one.answer(response);
  });
  const port = await listen(server);
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(one, { url: `http://127.0.0.1:${port}` });
}

function watch(url: string): { backend: Backend; whats: string[] } {
  const backend = openAiBackend({
    name: 'far',
    url,
    clock: systemClock,
    apiKey: 'secret',
    timings: { pollMs: 40, firstBackoffMs: 20, lastBackoffMs: 80 },
  });
  const whats: string[] = [];
  ends.push(() => backend.stop());
  backend.start((change) => whats.push(change.what));
  return { backend, whats };
}

it('lists what the server names, with its key, and knows nothing more of it', async () => {
  const server = await far();
  const { backend } = watch(server.url);
  await until(() => backend.snapshot().status === 'up', 20_000, 'it to answer');
  const { models, tellsBusy } = backend.snapshot();
  expect(models.map((model) => [model.name, model.status, model.busy, model.isElsewhere])).toEqual([
    ['qwen', 'loaded', null, true],
    ['org/gemma', 'loaded', null, true],
  ]);
  expect(tellsBusy).toBe(false);
  const signal = new AbortController().signal;
  expect(await backend.unload('qwen', signal)).toMatchObject({ ok: false, error: { code: 'not_supported' } });
  expect(await backend.confirmIdle('qwen', signal)).toMatchObject({ busy: null });
  expect(new Set(server.asked.map(({ path, key }) => `${path} ${key}`))).toEqual(
    new Set(['/v1/models Bearer secret']),
  );
});

it('has none where it names none, and what is no list is no answer', async () => {
  const server = await far();
  server.answer = (response) => response.end('{"object":"list","data":null}');
  const { backend } = watch(server.url);
  await until(() => backend.snapshot().status === 'up', 20_000, 'it to answer');
  expect(backend.snapshot().models).toEqual([]);
  for (const body of ['{"object":"list"}', '[]', '{"data":"qwen"}', '<html>']) {
    server.answer = (response) => response.end(body);
    await until(() => backend.snapshot().status === 'down', 20_000, 'it to be no answer');
    server.answer = (response) => response.end('{"data":[]}');
    await until(() => backend.snapshot().status === 'up', 20_000, 'it to be back');
  }
});

it('is asked less and less often while it does not answer, and is back when it does', async () => {
  const server = await far();
  const well = server.answer;
  server.answer = (response) => response.writeHead(503).end('{"error":"starting"}');
  const { backend, whats } = watch(server.url);
  await until(() => server.asked.length >= 5, 20_000, 'five questions');
  expect(backend.snapshot()).toMatchObject({ status: 'down', error: expect.stringMatching(/status 503/) });
  const [first, second, , , fifth] = server.asked;
  // 20 ms, then 40, 80, 80: never sooner.
  expect((fifth?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(200);
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(15);
  server.answer = well;
  await until(() => backend.snapshot().status === 'up', 20_000, 'it to be back');
  expect(whats).toEqual(['down', 'up', 'list']);
});

it('what answers otherwise is said to be no such server', async () => {
  const server = await far();
  server.answer = (response) => response.end('{"models":[]}');
  const { backend } = watch(server.url);
  await until(() => backend.snapshot().status === 'down', 20_000, 'it to be told');
  expect(backend.snapshot().error).toMatch(/gives no list of models/);
});
