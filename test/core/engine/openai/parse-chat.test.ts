import { describe, expect, it } from 'vitest';
import { historyOf } from '../../../../electron/core/engine/child/chat-history.ts';
import { engineSchema } from '../../../../electron/core/engine/child/json-schema.ts';
import { AnswerChunks, wholeAnswer } from '../../../../electron/core/engine/openai/chat-answer.ts';
import { parseCompletion } from '../../../../electron/core/engine/openai/completions.ts';
import { encodeEmbeddings, parseEmbeddings } from '../../../../electron/core/engine/openai/embeddings.ts';
import { httpError } from '../../../../electron/core/engine/openai/http-error.ts';
import { parseChat } from '../../../../electron/core/engine/openai/parse-chat.ts';

const user = { role: 'user', content: 'Hello' };

describe('a chat request', () => {
  it.each([
    ['n', 2],
    ['logprobs', true],
    ['top_logprobs', 5],
    ['logit_bias', { 50256: -100 }],
    ['functions', [{ name: 'lamp' }]],
    ['function_call', 'auto'],
    ['grammar', 'root ::= "yes"'],
    ['json_schema', { type: 'object' }],
    ['modalities', ['text', 'audio']],
    ['audio', { voice: 'alloy' }],
    ['web_search_options', {}],
  ])('is refused by name where it asks for %s, which would be another answer', (field, value) => {
    const asked = { model: 'smol', messages: [user], [field]: value };
    expect(parseChat(asked)).toMatchObject({ error: { code: 'not_supported' } });
    expect(JSON.stringify(parseChat(asked))).toContain(` ${field}:`);
    const text = parseCompletion({ model: 'smol', prompt: 'x', [field]: value });
    expect(text).toMatchObject({ error: { code: 'not_supported' } });
  });

  it('is followed where it says that it asks for none of that', () => {
    const none = { n: 1, logprobs: false, logit_bias: {}, functions: [], grammar: '', modalities: ['text'] };
    expect(parseChat({ model: 'smol', messages: [user], ...none, audio: null }).ok).toBe(true);
    expect(parseCompletion({ model: 'smol', prompt: 'x', ...none }).ok).toBe(true);
  });

  it('has llama-server’s defaults where it does not say', () => {
    expect(parseChat({ model: 'smol', messages: [user] })).toMatchObject({
      ok: true,
      value: {
        model: 'smol',
        stream: false,
        request: { temperature: 0.8, maxTokens: null, tools: [], toolChoice: 'auto', format: null, stop: [] },
      },
    });
  });

  it('has no limit, and draws from all tokens, where it says -1', () => {
    const parsed = parseChat({ model: 'smol', messages: [user], max_tokens: -1, top_k: -1 });
    expect(parsed).toMatchObject({ value: { request: { maxTokens: null, topK: 0 } } });
    const text = parseCompletion({ model: 'smol', prompt: 'x', max_tokens: -1 });
    expect(text).toMatchObject({ value: { request: { maxTokens: null } } });
    const none = parseChat({ model: 'smol', messages: [user], max_completion_tokens: 0 });
    expect(none).toMatchObject({ error: { code: 'bad_input' } });
    expect(JSON.stringify(none)).toContain('-1 for no limit');
  });

  it('is followed in what it says, by old and new names', () => {
    const parsed = parseChat({
      model: 'smol',
      messages: [
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'Be ' },
            { type: 'text', text: 'brief.' },
          ],
        },
        user,
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 5,
      max_tokens: 9,
      temperature: 0,
      stop: 'END',
      tools: [{ type: 'function', function: { name: 'lamp' } }],
      tool_choice: { type: 'function', function: { name: 'lamp' } },
      parallel_tool_calls: false,
      something_new: 1,
    });
    expect(parsed).toMatchObject({
      value: {
        stream: true,
        includeUsage: true,
        request: {
          messages: [
            { role: 'system', text: 'Be brief.' },
            { role: 'user', text: 'Hello' },
          ],
          maxTokens: 5,
          temperature: 0,
          stop: ['END'],
          tools: [{ name: 'lamp', parameters: null }],
          toolChoice: { name: 'lamp' },
          parallelTools: false,
        },
      },
    });
  });

  it.each([
    [{ type: 'text' }, null],
    [{ type: 'json_object' }, 'json'],
    [
      { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
      { schema: { type: 'object' } },
    ],
  ])('asks for a form: %j', (format, wanted) => {
    expect(parseChat({ model: 'm', messages: [user], response_format: format })).toMatchObject({
      value: { request: { format: wanted } },
    });
  });

  it.each([
    [{ messages: [user] }, 'bad_input'],
    [{ model: 'm', messages: [] }, 'bad_input'],
    [{ model: 'm', messages: [user], temperature: 3 }, 'bad_input'],
    [{ model: 'm', messages: [user], n: 2 }, 'not_supported'],
    [{ model: 'm', messages: [user], logprobs: true }, 'not_supported'],
    [
      { model: 'm', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
      'not_supported',
    ],
    [
      {
        model: 'm',
        messages: [user],
        tools: [{ type: 'function', function: { name: 'a' } }],
        response_format: { type: 'json_object' },
      },
      'not_supported',
    ],
  ])('is refused where it can’t be followed: %j', (body, code) => {
    expect(parseChat(body)).toMatchObject({ ok: false, error: { code } });
  });
});

describe('the history of a chat', () => {
  const call = { id: 'c1', name: 'lamp', arguments: '{"on":true}' };

  it('holds what a tool answered in the model’s own turn, in which the model goes on', () => {
    expect(
      historyOf([
        { role: 'user', text: 'Light' },
        { role: 'assistant', text: '', calls: [call] },
        { role: 'tool', callId: 'c1', text: 'done' },
        { role: 'assistant', text: 'It is on.', calls: [] },
      ]),
    ).toEqual({
      ok: true,
      value: [
        { type: 'user', text: 'Light' },
        {
          type: 'model',
          response: [
            { type: 'functionCall', name: 'lamp', params: { on: true }, result: 'done' },
            'It is on.',
          ],
        },
      ],
    });
  });

  it('has no answer to a call that nobody made', () => {
    expect(historyOf([{ role: 'tool', callId: 'c9', text: 'x' }])).toMatchObject({
      error: { code: 'bad_input' },
    });
  });
});

describe('a JSON Schema', () => {
  it('keeps what the grammar knows, and allows more where it knows no word', () => {
    expect(
      engineSchema({
        type: 'object',
        title: 'left out',
        properties: { a: { anyOf: [{ const: 1 }, { type: 'null' }] }, b: { type: 'string', pattern: '^x' } },
        required: ['a'],
        additionalProperties: false,
      }),
    ).toEqual({
      type: 'object',
      properties: { a: { oneOf: [{ const: 1 }, { type: 'null' }] }, b: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    });
    expect(engineSchema({ allOf: [{ enum: ['x'] }] })).toEqual({ enum: ['x'] });
    expect(engineSchema({ definitions: { n: { type: 'number' } }, $ref: '#/definitions/n' })).toMatchObject({
      $defs: { n: { type: 'number' } },
    });
  });
});

describe('an answer', () => {
  const head = { id: 'chatcmpl-0123456789ab', created: 5, model: 'smol' };
  const answer = {
    text: '',
    thought: 'hm',
    calls: [{ name: 'lamp', arguments: '{}' }],
    finish: 'tool_calls',
    stopSequence: null,
    promptTokens: 7,
    cachedTokens: 3,
    generatedTokens: 2,
  } as const;

  it('tells calls, thoughts and usage as OpenAI’s clients read them', () => {
    expect(wholeAnswer(head, answer)).toMatchObject({
      object: 'chat.completion',
      choices: [
        {
          finish_reason: 'tool_calls',
          message: {
            content: null,
            reasoning_content: 'hm',
            tool_calls: [{ type: 'function', function: { name: 'lamp', arguments: '{}' } }],
          },
        },
      ],
      usage: {
        prompt_tokens: 7,
        completion_tokens: 2,
        total_tokens: 9,
        prompt_tokens_details: { cached_tokens: 3 },
      },
    });
  });

  it('names a streamed call once, by the same id as the whole answer', () => {
    const chunks = new AnswerChunks(head);
    const first = chunks.delta({ kind: 'call', index: 0, name: 'lamp', arguments: '{' });
    const second = chunks.delta({ kind: 'call', index: 0, name: 'lamp', arguments: '}' });
    const id = wholeAnswer(head, answer).choices[0]?.message.tool_calls?.[0]?.id;
    expect(first).toMatchObject({
      choices: [{ delta: { tool_calls: [{ index: 0, id, function: { name: 'lamp' } }] } }],
    });
    expect(JSON.stringify(second)).not.toContain('lamp');
    expect(chunks.last(answer)).toMatchObject({ choices: [{ finish_reason: 'tool_calls' }] });
  });

  it('is an error of the client where the messages are too long, and ours where the engine ended', () => {
    expect(httpError({ code: 'context_full', message: 'x' })).toMatchObject({
      status: 400,
      body: { error: { code: 'context_length_exceeded', type: 'invalid_request_error' } },
    });
    expect(httpError({ code: 'engine_ended', message: 'x' }).status).toBe(502);
    expect(httpError({ code: 'internal', message: 'x' }).status).toBe(500);
  });
});

describe('embeddings', () => {
  it.each([
    ['one', ['one']],
    [
      ['one', 'two'],
      ['one', 'two'],
    ],
    [[1, 2], [[1, 2]]],
    [
      [[1], [2, 3]],
      [[1], [2, 3]],
    ],
  ])('are asked for %j', (input, inputs) => {
    expect(parseEmbeddings({ model: 'm', input })).toMatchObject({ value: { inputs, base64: false } });
  });

  it('are refused without an input, and shortened never', () => {
    expect(parseEmbeddings({ model: 'm' })).toMatchObject({ error: { code: 'bad_input' } });
    expect(parseEmbeddings({ model: 'm', input: 'x', dimensions: 5 })).toMatchObject({
      error: { code: 'not_supported' },
    });
  });

  it('go out as the bits of floats where the client asks for that', () => {
    const call = { model: 'm', inputs: ['x'], base64: true };
    const made = encodeEmbeddings(call, { vectors: [[0.5, -2]], tokens: 3 });
    const bytes = Buffer.from(String(made.data[0]?.embedding), 'base64');
    expect([bytes.readFloatLE(0), bytes.readFloatLE(4)]).toEqual([0.5, -2]);
  });
});
