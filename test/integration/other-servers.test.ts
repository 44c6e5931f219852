import { expect, it } from 'vitest';
import type { Asked, Script, StagedModel, StagedServer } from '../core/backends/servers/server.ts';
import { serve } from '../core/backends/servers/server.ts';
import { SUBJECTS } from '../core/backends/subjects.ts';
import { startLandlordBench } from '../support/landlord-runtime.ts';
import { until } from '../support/router.ts';

/** The gateway before servers that are no llama.cpp, each played as its kind answers. */
const GB = 1_000_000_000;
const OTHERS = SUBJECTS.filter((subject) => subject.kind !== 'llama.cpp');

/** The server itself, and its answer to a chat: what it was asked. */
function chatting(script: Script): Script {
  return (stage, asked) =>
    asked.method === 'POST' && asked.path.endsWith('/v1/chat/completions')
      ? { body: { id: 'x', object: 'chat.completion', choices: [], asked: asked.body } }
      : script(stage, asked);
}

it('a request for a model of any of them has it loaded and booked, and reaches it under the name it knows', async () => {
  const servers = new Map<string, StagedServer>();
  await using stack = new AsyncDisposableStack();
  const lines: string[] = [];
  for (const [index, subject] of OTHERS.entries()) {
    const server = stack.use(await serve(chatting(subject.script), subject.notFound));
    const model: StagedModel = { name: nameOf(index), state: 'unloaded', bytes: GB };
    server.put(model);
    servers.set(subject.title, server);
    lines.push(`  - { name: b${index}, kind: ${subject.kind}, url: "${server.url}" }`);
  }
  const landlord = stack.use(
    await startLandlordBench({
      routerUrl: '',
      routerPid: () => null,
      totalBytes: 48 * GB,
      footprints: {},
      backend: lines.join('\n'),
      config: OTHERS.map((_, index) => `  "b${index}/${nameOf(index)}": ${GB}`).join('\n'),
    }),
  );
  await landlord.seen();
  for (const [index, subject] of OTHERS.entries()) {
    const server = servers.get(subject.title);
    if (server === undefined) throw new Error(subject.title);
    await until(
      () => landlord.runtime.state().models.some((model) => model.id === `b${index}/${nameOf(index)}`),
      15_000,
      `the model of ${subject.title}`,
    );
    // The way a person would write it: Ollama's own tag need not be said.
    const wanted = nameOf(index).replace(/:latest$/, '');
    const answer = await fetch(`${landlord.runtime.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: wanted, messages: [{ role: 'user', content: 'hi' }] }),
    });
    const body: { asked?: { model?: string } } = JSON.parse(await answer.text());
    expect({ title: subject.title, status: answer.status, model: body.asked?.model }).toEqual({
      title: subject.title,
      status: 200,
      model: wanted,
    });
    expect(answer.headers.get('x-landlord-backend')).toBe(`b${index}`);
    const orders = server.asked.filter((asked) => !subject.isPassive(asked)).map(path);
    const loads = orders.slice(0, -1);
    expect(loads, subject.title).toHaveLength(subject.canLoad ? 1 : 0);
    expect(orders.at(-1)).toBe('POST /v1/chat/completions');
  }
  expect(landlord.events.filter((event) => event.kind === 'load_failed')).toEqual([]);
});

function nameOf(index: number): string {
  return index === 1 ? 'gemma3:latest' : `maker/m${index}`;
}

function path(asked: Asked): string {
  return `${asked.method} ${asked.path}`;
}
