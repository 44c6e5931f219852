import type { ChatAnswer, ChatDelta } from '../engine-chat.ts';

/** What every object of one answer says. */
export interface AnswerHead {
  readonly id: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly model: string;
}

export function usageOf(answer: ChatAnswer) {
  return {
    prompt_tokens: answer.promptTokens,
    completion_tokens: answer.generatedTokens,
    total_tokens: answer.promptTokens + answer.generatedTokens,
    prompt_tokens_details: { cached_tokens: answer.cachedTokens },
  };
}

/** `chat.completion` of OpenAI's API reference; a model's thoughts as llama-server tells them. */
export function wholeAnswer(head: AnswerHead, answer: ChatAnswer) {
  return {
    ...head,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: answer.text === '' && answer.calls.length > 0 ? null : answer.text,
          refusal: null,
          ...(answer.thought === '' ? {} : { reasoning_content: answer.thought }),
          ...(answer.calls.length === 0
            ? {}
            : {
                tool_calls: answer.calls.map((call, index) => ({
                  id: callId(head, index),
                  type: 'function',
                  function: { name: call.name, arguments: call.arguments },
                })),
              }),
        },
        finish_reason: finishReason(answer),
        logprobs: null,
      },
    ],
    usage: usageOf(answer),
  };
}

/** The chunks of a streamed answer, one after the other. */
export class AnswerChunks {
  readonly #head: AnswerHead;
  readonly #begun = new Set<number>();

  constructor(head: AnswerHead) {
    this.#head = head;
  }

  first(): unknown {
    return this.#chunk({ role: 'assistant', content: '' }, null);
  }

  delta(delta: ChatDelta): unknown {
    if (delta.kind !== 'call') {
      const field = delta.kind === 'text' ? 'content' : 'reasoning_content';
      return this.#chunk({ [field]: delta.text }, null);
    }
    const { index, name, arguments: text } = delta;
    const opened = this.#begun.has(index);
    this.#begun.add(index);
    const start = opened ? {} : { id: callId(this.#head, index), type: 'function' };
    const call = { index, ...start, function: opened ? { arguments: text } : { name, arguments: text } };
    return this.#chunk({ tool_calls: [call] }, null);
  }

  last(answer: ChatAnswer): unknown {
    return this.#chunk({}, finishReason(answer));
  }

  usage(answer: ChatAnswer): unknown {
    return { ...this.#head, object: 'chat.completion.chunk', choices: [], usage: usageOf(answer) };
  }

  #chunk(delta: unknown, reason: string | null): unknown {
    return {
      ...this.#head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason: reason, logprobs: null }],
    };
  }
}

export function finishReason(answer: ChatAnswer): string {
  return answer.finish === 'cancelled' ? 'stop' : answer.finish;
}

function callId(head: AnswerHead, index: number): string {
  return `call_${head.id.slice(-12)}_${index}`;
}
