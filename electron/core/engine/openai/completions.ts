import { z } from 'zod';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import type { ChatAnswer, CompletionRequest } from '../engine-chat.ts';
import { type AnswerHead, finishReason, usageOf } from './chat-answer.ts';
import { SAMPLING, samplingOf } from './sampling.ts';
import { unsupported } from './unsupported.ts';

export interface CompletionCall {
  readonly model: string;
  readonly request: Omit<CompletionRequest, 'contextId'>;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

const body = z.looseObject({
  ...SAMPLING,
  model: z.string(),
  prompt: z.union([z.string(), z.array(z.string()).length(1)]),
  best_of: z.literal(1).nullish(),
  echo: z.literal(false).nullish(),
  suffix: z.literal('').nullish(),
});

/** A request of `POST /v1/completions` (OpenAI's API reference). Errors: `bad_input`, `not_supported`. */
export function parseCompletion(raw: unknown): Result<CompletionCall> {
  const parsed = body.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return fail(
      'bad_input',
      `${issue?.path.join('.') || 'The request'}: ${issue?.message ?? 'it is not as it should be'}. The embedded engine goes on from one text, once a request, without a suffix or an echo.`,
    );
  }
  const asked = parsed.data;
  const why = unsupported(asked);
  if (why !== null) return fail('not_supported', why);
  return ok({
    model: asked.model,
    stream: asked.stream === true,
    includeUsage: asked.stream_options?.include_usage === true,
    request: {
      prompt: typeof asked.prompt === 'string' ? asked.prompt : (asked.prompt[0] ?? ''),
      ...samplingOf(asked),
    },
  });
}

/** `text_completion`, whole or a piece of it; `end` null: more comes. */
export function completionObject(head: AnswerHead, text: string, end: ChatAnswer | null): unknown {
  const reason = end === null ? null : finishReason(end);
  return {
    ...head,
    object: 'text_completion',
    choices: [{ index: 0, text, finish_reason: reason, logprobs: null }],
  };
}

export function completionUsage(head: AnswerHead, answer: ChatAnswer): unknown {
  return { ...head, object: 'text_completion', choices: [], usage: usageOf(answer) };
}
