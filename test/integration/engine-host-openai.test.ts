import { readFile } from 'node:fs/promises';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { must, TALKER_SHAPE } from '../support/engine.ts';
import { type EngineLandlord, startEngineLandlord } from '../support/engine-landlord.ts';
import { gguf, LARGE_SHAPE } from '../support/gguf.ts';
import { until } from '../support/router.ts';

const CHATML =
  "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** Engine processes that this one has started. */
async function enginePids(): Promise<number[]> {
  const text = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8');
  const found: number[] = [];
  for (const pid of text.trim().split(' ').map(Number)) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes('engine-child')) found.push(pid);
  }
  return found;
}

/** The official client before the gateway, the engine behind it. */
describe('the engine behind the gateway', () => {
  let landlord: EngineLandlord;
  let client: OpenAI;
  beforeAll(async () => {
    landlord = await startEngineLandlord({
      smol: await gguf({ ...TALKER_SHAPE, seed: 21, chatTemplate: CHATML }),
      big: await gguf(LARGE_SHAPE),
    });
    client = new OpenAI({ baseURL: `${landlord.runtime.url}/v1`, apiKey: 'none', maxRetries: 0 });
    await until(() => landlord.runtime.state().models.length === 2, 30_000, 'the models to be listed');
  });
  afterAll(() => landlord[Symbol.asyncDispose]());

  const ask = { model: 'embedded/smol', temperature: 0, max_tokens: 12 } as const;
  const hello = [{ role: 'user' as const, content: 'Hello there' }];

  it('lists its models unloaded, and loads one with the first request, booked', async () => {
    const list = await client.models.list();
    expect(list.data.map((model) => model.id).sort()).toEqual(['big', 'smol']);
    expect(landlord.model('smol').status).toBe('unloaded');
    const answer = await client.chat.completions.create({ ...ask, messages: hello });
    expect(answer.choices[0]?.message.role).toBe('assistant');
    expect(answer.usage?.completion_tokens).toBeGreaterThan(0);
    expect(['length', 'stop']).toContain(answer.choices[0]?.finish_reason);
    const model = landlord.model('smol');
    expect(model).toMatchObject({ status: 'loaded', pid: null });
    expect(model.predictedBytes).toBeGreaterThan(0);
    // Weights, cache and buffers, by the engine's own account.
    expect(model.measuredBytes).toBeGreaterThan(2_500_000);
    await until(() => landlord.model('smol').busy === false, 10_000, 'it to be idle');
  });

  it('streams what it answers whole, and tells the usage', async () => {
    const whole = await client.chat.completions.create({ ...ask, messages: hello });
    const stream = await client.chat.completions.create({
      ...ask,
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let finish: string | null = null;
    let tokens = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      finish = chunk.choices[0]?.finish_reason ?? finish;
      tokens = chunk.usage?.completion_tokens ?? tokens;
    }
    expect(text).toBe(whole.choices[0]?.message.content);
    expect(finish).toBe(whole.choices[0]?.finish_reason);
    expect(tokens).toBe(whole.usage?.completion_tokens);
  });

  it('reads a conversation on from where the last request of it ended', async () => {
    const first = await client.chat.completions.create({ ...ask, messages: hello });
    const more = await client.chat.completions.create({
      ...ask,
      messages: [
        ...hello,
        { role: 'assistant', content: first.choices[0]?.message.content ?? '' },
        { role: 'user', content: 'And then?' },
      ],
    });
    expect(more.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan(10);
  });

  it('answers in the JSON that a schema asks for', async () => {
    const answer = await client.chat.completions.create({
      ...ask,
      max_tokens: 200,
      messages: hello,
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'mood',
          schema: {
            type: 'object',
            properties: { mood: { enum: ['glad', 'sad'] }, sure: { type: 'boolean' } },
            required: ['mood', 'sure'],
            additionalProperties: false,
          },
        },
      },
    });
    const made = JSON.parse(answer.choices[0]?.message.content ?? '');
    expect(['glad', 'sad']).toContain(made.mood);
    expect(typeof made.sure).toBe('boolean');
    expect(Object.keys(made)).toHaveLength(2);
  });

  it('draws anew for each request, or the same with the same seed', async () => {
    const answers = async (seed?: number): Promise<number> => {
      const texts = new Set<string | null | undefined>();
      for (let times = 0; times < 4; times += 1) {
        const answer = await client.chat.completions.create({
          ...ask,
          ...(seed === undefined ? {} : { seed }),
          temperature: 2,
          messages: hello,
        });
        texts.add(answer.choices[0]?.message.content);
      }
      return texts.size;
    };
    expect(await answers()).toBe(4);
    expect(await answers(-1)).toBe(4);
    expect(await answers(7)).toBe(1);
  });

  it('answers in JSON where any will do', async () => {
    const answer = await client.chat.completions.create({
      ...ask,
      max_tokens: 60,
      messages: hello,
      response_format: { type: 'json_object' },
    });
    const [choice] = answer.choices;
    // A model of random weights may not come to an end; what it has said is the beginning of an object.
    if (choice?.finish_reason === 'stop') JSON.parse(choice.message.content ?? '');
    expect(choice?.message.content?.trimStart().slice(0, 1)).toBe('{');
  });

  it('calls the tool it must call, with arguments of its schema, and reads what the tool said', async () => {
    const tools: OpenAI.ChatCompletionTool[] = [
      {
        type: 'function',
        function: {
          name: 'lamp',
          description: 'Switches the lamp',
          parameters: {
            type: 'object',
            properties: { on: { type: 'boolean' }, room: { anyOf: [{ const: 'hall' }, { const: 'attic' }] } },
            required: ['on', 'room'],
          },
        },
      },
    ];
    const asked = { ...ask, max_tokens: 200, messages: hello, tools, tool_choice: 'required' as const };
    const answer = await client.chat.completions.create(asked);
    const call = answer.choices[0]?.message.tool_calls?.[0];
    if (call?.type !== 'function') throw new Error('no call was made');
    expect(answer.choices[0]?.finish_reason).toBe('tool_calls');
    expect(call.function.name).toBe('lamp');
    const made = JSON.parse(call.function.arguments);
    expect(['hall', 'attic']).toContain(made.room);
    expect(typeof made.on).toBe('boolean');

    let streamed = '';
    for await (const chunk of await client.chat.completions.create({ ...asked, stream: true }))
      streamed += chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? '';
    expect(JSON.parse(streamed)).toEqual(made);

    const next = await client.chat.completions.create({
      ...ask,
      tools,
      messages: [
        ...hello,
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: call.id, content: '{"done":true}' },
      ],
    });
    expect(next.usage?.prompt_tokens).toBeGreaterThan(answer.usage?.prompt_tokens ?? 0);
  });

  it('makes embeddings, the same for the same text', async () => {
    const made = await client.embeddings.create({ model: 'embedded/smol', input: ['one', 'two', 'one'] });
    expect(made.data).toHaveLength(3);
    expect(made.data[0]?.embedding).toHaveLength(TALKER_SHAPE.width);
    expect(made.data[2]?.embedding).toEqual(made.data[0]?.embedding);
    expect(made.data[1]?.embedding).not.toEqual(made.data[0]?.embedding);
    expect(made.usage.prompt_tokens).toBeGreaterThan(0);
  });

  it('is asked by nobody but the gateway, so that nobody goes past admission', async () => {
    const url = landlord.runtime.state().backends?.find((backend) => backend.name === 'embedded')?.url;
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/embedded$/);
    const refused = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer guessed' },
      body: JSON.stringify({ ...ask, messages: hello }),
    });
    expect(refused.status).toBe(401);
  });

  it('says when messages are too long, in the words that clients look for', async () => {
    const long = [{ role: 'user' as const, content: 'word '.repeat(5000) }];
    const refused = client.chat.completions.create({ ...ask, messages: long });
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' });
    const wrong = client.chat.completions.create({ ...ask, n: 2, messages: hello });
    await expect(wrong).rejects.toMatchObject({ status: 400 });
  });

  it('ends with its client, in the middle of a long answer', async () => {
    await client.chat.completions.create({ ...ask, model: 'embedded/big', messages: hello });
    const abort = new AbortController();
    const stream = await client.chat.completions.create(
      { ...ask, model: 'embedded/big', max_tokens: 4000, messages: hello, stream: true },
      { signal: abort.signal },
    );
    for await (const _ of stream) {
      expect(landlord.model('big').busy).toBe(true);
      abort.abort();
      break;
    }
    await until(() => landlord.model('big').busy === false, 10_000, 'it to be idle again');
  });

  it('tells an answer that an unload cut as an error, whole and streamed, never as one that has ended', async () => {
    const long = { ...ask, model: 'embedded/big', max_tokens: 4000 };
    const cut = async (prompt: string): Promise<void> => {
      await until(() => landlord.model('big').busy === true, 30_000, `the answer to ${prompt} to begin`);
      must(await landlord.runtime.command({ type: 'unload', model: 'embedded/big', force: true }));
    };
    const whole = client.chat.completions.create({ ...long, messages: hello }).then(
      () => 'answered',
      (error: unknown) => String(error),
    );
    await cut('a whole one');
    expect(await whole).toMatch(/unloaded in the middle/);
    const pieces = async (): Promise<string> => {
      try {
        for await (const _ of await client.chat.completions.create({
          ...long,
          messages: hello,
          stream: true,
        }));
        return 'answered';
      } catch (error) {
        return String(error);
      }
    };
    const streamed = pieces();
    await cut('a streamed one');
    expect(await streamed).toMatch(/unloaded in the middle/);
  });

  it('unloads as any backend does, one model and not the other', async () => {
    const { runtime } = landlord;
    await landlord.is('smol', 'loaded');
    must(await runtime.command({ type: 'unload', model: 'embedded/big', force: true }));
    await landlord.is('big', 'unloaded');
    expect(landlord.model('smol').status).toBe('loaded');
    must(await runtime.command({ type: 'drain' }));
    await landlord.is('smol', 'unloaded');
    const answer = await client.chat.completions.create({ ...ask, messages: hello });
    expect(answer.choices).toHaveLength(1);
  });

  it('comes back after a crash with the next request', async () => {
    await landlord.is('smol', 'loaded');
    const pids = await enginePids();
    expect(pids).toHaveLength(1);
    process.kill(pids[0] ?? 0, 'SIGKILL');
    await landlord.is('smol', 'failed');
    const answer = await client.chat.completions.create({ ...ask, messages: hello });
    expect(answer.choices).toHaveLength(1);
    await landlord.is('smol', 'loaded');
  });
});
