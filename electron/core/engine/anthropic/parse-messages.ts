import { z } from 'zod';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import type { ChatMessage, ChatRequest, ChatTool } from '../engine-chat.ts';

/** A request of `POST /v1/messages`, as far as the engine follows it (Anthropic's API reference). */
export interface MessagesCall {
  readonly model: string;
  readonly request: Omit<ChatRequest, 'contextId'>;
  readonly stream: boolean;
}

const textBlock = z.looseObject({ type: z.literal('text'), text: z.string() });
const toolUse = z.looseObject({
  type: z.literal('tool_use'),
  id: z.string(),
  name: z.string(),
  input: z.unknown(),
});
const toolResult = z.looseObject({
  type: z.literal('tool_result'),
  tool_use_id: z.string(),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
});
/** What a model thought in an earlier turn is not said again. */
const thought = z.looseObject({ type: z.enum(['thinking', 'redacted_thinking']) });
const block = z.discriminatedUnion('type', [textBlock, toolUse, toolResult, thought]);
type Block = z.infer<typeof block>;
const blocks = z.union([z.string(), z.array(block)]);
const body = z.looseObject({
  model: z.string(),
  max_tokens: z.int().positive(),
  messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant']), content: blocks })).min(1),
  system: z.union([z.string(), z.array(textBlock)]).nullish(),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().min(0).nullish(),
  stop_sequences: z.array(z.string()).max(16).nullish(),
  tools: z
    .array(z.looseObject({ name: z.string(), description: z.string().nullish(), input_schema: z.unknown() }))
    .nullish(),
  tool_choice: z
    .looseObject({
      type: z.enum(['auto', 'any', 'tool', 'none']),
      name: z.string().nullish(),
      disable_parallel_tool_use: z.boolean().nullish(),
    })
    .nullish(),
});

/** As llama-server has it, where a request does not say. */
const TEMPERATURE = 0.8;

/** Errors: `bad_input`, naming what is wrong; images and documents among it, which the engine can't read. */
export function parseMessages(raw: unknown): Result<MessagesCall> {
  const parsed = body.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue?.path.join('.') || 'The request';
    return fail(
      'bad_input',
      `${where}: ${issue?.message ?? 'it is not as it should be'}. The embedded engine reads text, tools and what they answer.`,
    );
  }
  const asked = parsed.data;
  const messages: ChatMessage[] = [];
  const system = typeof asked.system === 'string' ? asked.system : textOf(asked.system ?? []);
  if (system !== '') messages.push({ role: 'system', text: system });
  for (const { role, content } of asked.messages) {
    const parts: readonly Block[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    messages.push(...(role === 'user' ? fromUser(parts) : [fromModel(parts)]));
  }
  const choice = asked.tool_choice ?? null;
  return ok({
    model: asked.model,
    stream: asked.stream === true,
    request: {
      messages,
      tools: (asked.tools ?? []).map(
        (tool): ChatTool => ({
          name: tool.name,
          description: tool.description ?? null,
          parameters: tool.input_schema ?? null,
        }),
      ),
      toolChoice: choiceOf(choice),
      parallelTools: choice?.disable_parallel_tool_use !== true,
      format: null,
      maxTokens: asked.max_tokens,
      temperature: asked.temperature ?? TEMPERATURE,
      topP: asked.top_p ?? null,
      topK: asked.top_k ?? null,
      minP: null,
      seed: null,
      frequencyPenalty: 0,
      presencePenalty: 0,
      stop: asked.stop_sequences ?? [],
    },
  });
}

/** What tools answered comes before what the user says with it. */
function fromUser(parts: readonly Block[]): ChatMessage[] {
  const answers = parts.flatMap((part): ChatMessage[] =>
    part.type === 'tool_result'
      ? [{ role: 'tool', callId: part.tool_use_id, text: resultText(part.content) }]
      : [],
  );
  const text = textOf(parts);
  return text === '' && answers.length > 0 ? answers : [...answers, { role: 'user', text }];
}

function fromModel(parts: readonly Block[]): ChatMessage {
  const calls = parts.flatMap((part) =>
    part.type === 'tool_use'
      ? [{ id: part.id, name: part.name, arguments: JSON.stringify(part.input ?? {}) }]
      : [],
  );
  return { role: 'assistant', text: textOf(parts), calls };
}

function textOf(parts: readonly { readonly type: string }[]): string {
  return parts
    .flatMap((part) => ('text' in part && typeof part.text === 'string' ? [part.text] : []))
    .join('');
}

function resultText(content: z.infer<typeof toolResult>['content']): string {
  if (content == null) return '';
  return typeof content === 'string' ? content : textOf(content);
}

function choiceOf(choice: z.infer<typeof body>['tool_choice']): ChatRequest['toolChoice'] {
  if (choice == null || choice.type === 'auto') return 'auto';
  if (choice.type === 'none') return 'none';
  return choice.type === 'tool' && choice.name != null ? { name: choice.name } : 'required';
}
