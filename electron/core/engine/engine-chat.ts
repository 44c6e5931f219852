import type { Result } from '../../../shared/errors.ts';
import type { MemoryUse } from './engine-host.ts';

/** What the engine offers beside agents' conversations: one-off chats and embeddings, as an inference server does. */
export interface ChatEngine {
  /**
   * Answers a chat in a context, with the model's own template. What the context holds of the same
   * beginning is used again; whatever else it holds is dropped.
   * Errors: `context_full`, `bad_input`, `unknown_model`, `engine_ended`, `cancelled`.
   */
  chat(
    request: ChatRequest,
    onDelta: (delta: ChatDelta) => void,
    signal: AbortSignal,
  ): Promise<Result<ChatAnswer>>;
  /** Goes on from a text. Errors as for `chat`. */
  complete(
    request: CompletionRequest,
    onDelta: (delta: ChatDelta) => void,
    signal: AbortSignal,
  ): Promise<Result<ChatAnswer>>;
  /** Makes the model's context for embeddings, where it is not there yet; answers with what it takes. Errors: `engine_out_of_memory`, `unknown_model`, `engine_ended`. */
  openEmbeddings(modelId: string): Promise<Result<MemoryUse>>;
  /** Errors: `bad_input`, `context_full`, `not_supported`, `unknown_model`, `engine_out_of_memory`, `engine_ended`, `cancelled`. */
  embed(request: EmbedRequest, signal: AbortSignal): Promise<Result<Embedded>>;
  /** Whether anything is asked of the model or its contexts now, by whomever. */
  isBusy(modelId: string): boolean;
  /** Called when a model begins to be asked something, and when it no longer is. Returns its own undo. */
  onUse(listener: (modelId: string, busy: boolean) => void): () => void;
}

export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly text: string }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly ChatCall[] }
  | { readonly role: 'tool'; readonly callId: string; readonly text: string };

export interface ChatCall {
  readonly id: string;
  readonly name: string;
  /** JSON. */
  readonly arguments: string;
}

export interface ChatTool {
  readonly name: string;
  readonly description: string | null;
  /** A JSON Schema; null: it takes nothing. */
  readonly parameters: unknown;
}

/** How the next token is chosen, and where to stop. */
export interface Sampling {
  /** null: as many as the context has room for. */
  readonly maxTokens: number | null;
  readonly temperature: number;
  readonly topP: number | null;
  readonly topK: number | null;
  readonly minP: number | null;
  /** null: another one each time. */
  readonly seed: number | null;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly stop: readonly string[];
}

/** A text to go on from, without a chat's template. */
export interface CompletionRequest extends Sampling {
  readonly contextId: string;
  readonly prompt: string;
}

export interface ChatRequest extends Sampling {
  readonly contextId: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ChatTool[];
  /** `required`: one of them must be called; a name: this one. */
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string };
  readonly parallelTools: boolean;
  /** A JSON Schema the answer must meet; `json`: any JSON; null: plain text. */
  readonly format: 'json' | { readonly schema: unknown } | null;
}

export type ChatDelta =
  | { readonly kind: 'text' | 'thought'; readonly text: string }
  | { readonly kind: 'call'; readonly index: number; readonly name: string; readonly arguments: string };

export interface ChatAnswer {
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  /** `cancelled`: its model was unloaded, or whoever asked has left. */
  readonly finish: 'stop' | 'length' | 'tool_calls' | 'cancelled';
  /** Of the request's `stop`, the one that ended it; null: none did. */
  readonly stopSequence: string | null;
  readonly promptTokens: number;
  /** Of those, not read again. */
  readonly cachedTokens: number;
  readonly generatedTokens: number;
}

export interface EmbedRequest {
  readonly modelId: string;
  readonly inputs: readonly (string | readonly number[])[];
}

export interface Embedded {
  readonly vectors: readonly (readonly number[])[];
  readonly tokens: number;
}
