import type { LandlordError } from '../../../../shared/errors.ts';
import type { ChatAnswer, ChatDelta } from '../engine-chat.ts';

/** What every answer says of itself. */
export interface MessageHead {
  /** `msg_…` */
  readonly id: string;
  readonly model: string;
}

/** One event of a streamed answer. */
export interface MessageEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A message of Anthropic's API reference. */
export function wholeMessage(head: MessageHead, answer: ChatAnswer) {
  return {
    ...opening(head),
    content: [
      ...(answer.thought === '' ? [] : [{ type: 'thinking', thinking: answer.thought, signature: '' }]),
      ...(answer.text === '' && answer.calls.length > 0 ? [] : [{ type: 'text', text: answer.text }]),
      ...answer.calls.map((call, index) => ({
        type: 'tool_use',
        id: callId(head, index),
        name: call.name,
        input: JSON.parse(call.arguments),
      })),
    ],
    stop_reason: stopReason(answer),
    stop_sequence: answer.stopSequence,
    usage: usageOf(answer),
  };
}

/** The events of a streamed answer, one block open at a time. */
export class MessageEvents {
  readonly #head: MessageHead;
  #open: string | null = null;
  #index = -1;

  constructor(head: MessageHead) {
    this.#head = head;
  }

  first(): readonly MessageEvent[] {
    const message = { ...opening(this.#head), content: [], stop_reason: null, usage: NO_USAGE };
    return [{ type: 'message_start', message }];
  }

  delta(delta: ChatDelta): readonly MessageEvent[] {
    if (delta.kind === 'call') {
      const block = {
        type: 'tool_use',
        id: callId(this.#head, delta.index),
        name: delta.name,
        input: {},
      };
      const events = this.#in(`call ${delta.index}`, block);
      return delta.arguments === ''
        ? events
        : [...events, this.#told({ type: 'input_json_delta', partial_json: delta.arguments })];
    }
    return delta.kind === 'text'
      ? [
          ...this.#in('text', { type: 'text', text: '' }),
          this.#told({ type: 'text_delta', text: delta.text }),
        ]
      : [
          ...this.#in('thought', { type: 'thinking', thinking: '', signature: '' }),
          this.#told({ type: 'thinking_delta', thinking: delta.text }),
        ];
  }

  last(answer: ChatAnswer): readonly MessageEvent[] {
    return [
      ...this.#close(),
      {
        type: 'message_delta',
        delta: { stop_reason: stopReason(answer), stop_sequence: answer.stopSequence },
        usage: usageOf(answer),
      },
      { type: 'message_stop' },
    ];
  }

  #told(delta: unknown): MessageEvent {
    return { type: 'content_block_delta', index: this.#index, delta };
  }

  /** Into this block: the one before it is closed. */
  #in(name: string, block: unknown): readonly MessageEvent[] {
    if (this.#open === name) return [];
    const closed = this.#close();
    this.#open = name;
    this.#index += 1;
    return [...closed, { type: 'content_block_start', index: this.#index, content_block: block }];
  }

  #close(): readonly MessageEvent[] {
    if (this.#open === null) return [];
    this.#open = null;
    return [{ type: 'content_block_stop', index: this.#index }];
  }
}

/** An error in Anthropic's shape. */
export function messageError(status: number, error: LandlordError): unknown {
  const type =
    status === 404
      ? 'not_found_error'
      : status === 401
        ? 'authentication_error'
        : status < 500
          ? 'invalid_request_error'
          : 'api_error';
  const landlord = error.numbers === undefined ? {} : { landlord: error.numbers };
  return { type: 'error', error: { type, message: error.message, code: error.code, ...landlord } };
}

const NO_USAGE = { input_tokens: 0, output_tokens: 0 };

function opening({ id, model }: MessageHead) {
  return { id, type: 'message', role: 'assistant', model, stop_sequence: null };
}

/** The cached part of a prompt is told beside the rest of it, not within it. */
function usageOf(answer: ChatAnswer) {
  return {
    input_tokens: answer.promptTokens - answer.cachedTokens,
    cache_read_input_tokens: answer.cachedTokens,
    cache_creation_input_tokens: 0,
    output_tokens: answer.generatedTokens,
  };
}

function stopReason({ finish, stopSequence }: ChatAnswer): string {
  if (finish === 'tool_calls') return 'tool_use';
  if (stopSequence !== null) return 'stop_sequence';
  return finish === 'length' ? 'max_tokens' : 'end_turn';
}

function callId(head: MessageHead, index: number): string {
  return `toolu_${head.id.slice(-12)}_${index}`;
}
