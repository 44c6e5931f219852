import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TALKER_SHAPE } from '../support/engine.ts';
import { type EngineLandlord, startEngineLandlord } from '../support/engine-landlord.ts';
import { gguf } from '../support/gguf.ts';
import { until } from '../support/router.ts';

const CHATML =
  "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const WEATHER = {
  name: 'weather',
  description: 'The weather of a town',
  input_schema: {
    type: 'object' as const,
    properties: { town: { enum: ['Ulm', 'Bonn'] } },
    required: ['town'],
  },
};

/** The official clients before the gateway, the engine behind it. */
describe('the engine behind the gateway', () => {
  let landlord: EngineLandlord;
  let anthropic: Anthropic;
  let openai: OpenAI;
  beforeAll(async () => {
    landlord = await startEngineLandlord({
      smol: await gguf({ ...TALKER_SHAPE, seed: 21, chatTemplate: CHATML }),
    });
    const { url } = landlord.runtime;
    anthropic = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
    openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
    await until(() => landlord.runtime.state().models.length === 1, 30_000, 'the model to be listed');
  });
  afterAll(() => landlord[Symbol.asyncDispose]());

  const ask = { model: 'embedded/smol', temperature: 0, max_tokens: 12 } as const;
  const hello = [{ role: 'user' as const, content: 'Hello there' }];

  it('answers a message, whole and streamed alike', async () => {
    const whole = await anthropic.messages.create({ ...ask, system: 'Be brief.', messages: hello });
    expect(whole).toMatchObject({ type: 'message', role: 'assistant', model: 'smol' });
    const [first] = whole.content;
    expect(first?.type).toBe('text');
    expect(['max_tokens', 'end_turn']).toContain(whole.stop_reason);
    expect(whole.usage.input_tokens + (whole.usage.cache_read_input_tokens ?? 0)).toBeGreaterThan(10);
    expect(whole.usage.output_tokens).toBeGreaterThan(0);
    const pieces: string[] = [];
    const stream = anthropic.messages.stream({ ...ask, system: 'Be brief.', messages: hello });
    stream.on('text', (text) => pieces.push(text));
    const streamed = await stream.finalMessage();
    expect(streamed.content).toEqual(whole.content);
    expect(pieces.join('')).toBe(first?.type === 'text' ? first.text : '');
    expect(streamed.stop_reason).toBe(whole.stop_reason);
    expect(streamed.usage.output_tokens).toBe(whole.usage.output_tokens);
    // The same beginning is not read twice.
    expect(streamed.usage.cache_read_input_tokens).toBeGreaterThan(10);
  });

  it('says which of the words that it was to stop at ended it', async () => {
    const whole = await anthropic.messages.create({ ...ask, messages: hello });
    const [first] = whole.content;
    const text = first?.type === 'text' ? first.text : '';
    const word = text.slice(2, 4);
    expect(word).toHaveLength(2);
    const asked = { ...ask, messages: hello, stop_sequences: ['never said at all', word] };
    const stopped = await anthropic.messages.create(asked);
    expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: word });
    const [before] = stopped.content;
    expect(before?.type === 'text' && text.slice(0, text.indexOf(word)).startsWith(before.text)).toBe(true);
    const streamed = await anthropic.messages.stream(asked).finalMessage();
    expect(streamed).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: word });
    expect((await anthropic.messages.create({ ...ask, messages: hello })).stop_sequence).toBeNull();
  });

  it('calls a tool that must be called, whole and streamed, and takes what it answered', async () => {
    const request = {
      ...ask,
      max_tokens: 300,
      messages: hello,
      tools: [WEATHER],
      tool_choice: { type: 'tool' as const, name: 'weather' },
    };
    const whole = await anthropic.messages.create(request);
    expect(whole.stop_reason).toBe('tool_use');
    const call = whole.content.find((block) => block.type === 'tool_use');
    expect(call).toMatchObject({ name: 'weather', input: { town: expect.stringMatching(/^(Ulm|Bonn)$/) } });
    const streamed = await anthropic.messages.stream(request).finalMessage();
    expect(streamed.content.map((block) => (block.type === 'tool_use' ? block.input : null))).toEqual([
      call?.input,
    ]);
    const after = await anthropic.messages.create({
      ...ask,
      tools: [WEATHER],
      tool_choice: { type: 'none' },
      messages: [
        ...hello,
        { role: 'assistant', content: whole.content },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: call?.id ?? '', content: [{ type: 'text', text: 'rain' }] },
          ],
        },
      ],
    });
    expect(after.content[0]?.type).toBe('text');
  });

  it('refuses in the shape of the dialect', async () => {
    await expect(
      anthropic.messages.create({ ...ask, messages: [{ role: 'user', content: 'x'.repeat(20_000) }] }),
    ).rejects.toMatchObject({
      status: 400,
      error: { type: 'error', error: { type: 'invalid_request_error', code: 'context_full' } },
    });
    const image = {
      type: 'image' as const,
      source: { type: 'base64' as const, media_type: 'image/png' as const, data: 'AA' },
    };
    await expect(
      anthropic.messages.create({ ...ask, messages: [{ role: 'user', content: [image] }] }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining('reads text') });
  });

  it('goes on from a text as it is, whole and streamed alike', async () => {
    const prompt = 'Once upon a time';
    const whole = await openai.completions.create({ ...ask, prompt });
    expect(whole).toMatchObject({ object: 'text_completion', usage: { completion_tokens: 12 } });
    // No template is put around it: a begin token and the bytes.
    expect(whole.usage?.prompt_tokens).toBe(prompt.length + 2);
    const stream = await openai.completions.create({
      ...ask,
      prompt,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let total = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.text ?? '';
      total += chunk.usage?.completion_tokens ?? 0;
    }
    expect(text).toBe(whole.choices[0]?.text);
    expect(total).toBe(12);
    await expect(openai.completions.create({ ...ask, prompt: 'x'.repeat(20_000) })).rejects.toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    });
  });
});
