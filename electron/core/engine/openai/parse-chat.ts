import { z } from 'zod';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import type { ChatMessage, ChatRequest, ChatTool } from '../engine-chat.ts';
import { SAMPLING, samplingOf, TOKEN_LIMIT, tokenLimitOf } from './sampling.ts';
import { unsupported } from './unsupported.ts';

/** A request of `POST /v1/chat/completions`, as far as the engine follows it (OpenAI's API reference). */
export interface ChatCall {
  readonly model: string;
  readonly request: Omit<ChatRequest, 'contextId'>;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

const textPart = z.looseObject({ type: z.literal('text'), text: z.string() });
const otherPart = z.looseObject({ type: z.string() });
const content = z.union([z.string(), z.array(z.union([textPart, otherPart])), z.null()]).optional();
const toolCall = z.looseObject({
  id: z.string(),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});
const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.enum(['system', 'developer', 'user']), content }),
  z.looseObject({ role: z.literal('assistant'), content, tool_calls: z.array(toolCall).nullish() }),
  z.looseObject({ role: z.literal('tool'), content, tool_call_id: z.string() }),
]);
const tool = z.looseObject({
  type: z.literal('function'),
  function: z.looseObject({
    name: z.string(),
    description: z.string().nullish(),
    parameters: z.unknown().optional(),
  }),
});
const body = z.looseObject({
  ...SAMPLING,
  model: z.string(),
  messages: z.array(message).min(1),
  tools: z.array(tool).nullish(),
  tool_choice: z
    .union([
      z.enum(['auto', 'none', 'required']),
      z.looseObject({ function: z.looseObject({ name: z.string() }) }),
    ])
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: z
    .union([
      z.looseObject({ type: z.literal('text') }),
      z.looseObject({ type: z.literal('json_object'), schema: z.unknown().optional() }),
      z.looseObject({
        type: z.literal('json_schema'),
        json_schema: z.looseObject({ schema: z.unknown().optional() }),
      }),
    ])
    .nullish(),
  max_completion_tokens: TOKEN_LIMIT,
});

/** Errors: `bad_input`, naming what is wrong; `not_supported` for what the engine can't do. */
export function parseChat(raw: unknown): Result<ChatCall> {
  const parsed = body.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return fail(
      'bad_input',
      `${issue?.path.join('.') || 'The request'}: ${issue?.message ?? 'it is not as it should be'}.`,
    );
  }
  const asked = parsed.data;
  const why = unsupported(asked);
  if (why !== null) return fail('not_supported', why);
  const messages: ChatMessage[] = [];
  for (const one of asked.messages) {
    const text = textOf(one.content);
    if (text === null) {
      return fail('not_supported', 'The embedded engine reads text only; send no images, sound or files.');
    }
    if (one.role === 'tool') messages.push({ role: 'tool', callId: one.tool_call_id, text });
    else if (one.role === 'assistant') {
      const calls = (one.tool_calls ?? []).map((call) => ({
        id: call.id,
        name: call.function.name,
        arguments: call.function.arguments,
      }));
      messages.push({ role: 'assistant', text, calls });
    } else messages.push({ role: one.role === 'developer' ? 'system' : one.role, text });
  }
  const tools = (asked.tools ?? []).map(
    (one): ChatTool => ({
      name: one.function.name,
      description: one.function.description ?? null,
      parameters: one.function.parameters ?? null,
    }),
  );
  const choice = asked.tool_choice ?? 'auto';
  const format = asked.response_format ?? null;
  if (tools.length > 0 && format !== null && format.type !== 'text') {
    return fail(
      'not_supported',
      'The embedded engine follows either tools or a response format, not both at once.',
    );
  }
  return ok({
    model: asked.model,
    stream: asked.stream === true,
    includeUsage: asked.stream_options?.include_usage === true,
    request: {
      messages,
      tools,
      toolChoice: typeof choice === 'string' ? choice : { name: choice.function.name },
      parallelTools: asked.parallel_tool_calls !== false,
      format: formatOf(format),
      ...samplingOf(asked),
      maxTokens: tokenLimitOf(asked.max_completion_tokens ?? asked.max_tokens),
    },
  });
}

/** null: it holds something else than text. */
function textOf(value: z.infer<typeof content>): string | null {
  if (value == null) return '';
  if (typeof value === 'string') return value;
  const texts = value.map((part) => ('text' in part && typeof part.text === 'string' ? part.text : null));
  return texts.includes(null) ? null : texts.join('');
}

function formatOf(format: z.infer<typeof body>['response_format'] | null): ChatRequest['format'] {
  if (format == null || format.type === 'text') return null;
  if (format.type === 'json_schema') {
    const { json_schema: named } = format;
    return typeof named === 'object' && named !== null && 'schema' in named
      ? { schema: named.schema }
      : 'json';
  }
  return 'schema' in format && format.schema !== undefined ? { schema: format.schema } : 'json';
}
