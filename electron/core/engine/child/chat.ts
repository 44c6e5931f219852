import { randomInt } from 'node:crypto';
import type {
  ChatHistoryItem,
  ChatModelFunctions,
  ChatWrapper,
  LlamaChatResponseChunk,
  LlamaGrammar,
  LlamaModel,
  Token,
} from 'node-llama-cpp';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import type { ChatAnswer, ChatDelta, ChatRequest, Sampling } from '../engine-chat.ts';
import { functionsOf, historyOf } from './chat-history.ts';
import type { HeldContext } from './contexts.ts';
import { wholeSchema } from './json-schema.ts';
import type { Step, Steps } from './steps.ts';

export type Library = typeof import('node-llama-cpp');

/** What a chat must keep free for its answer, or it is refused. */
export const LEAST_ANSWER_TOKENS = 8;
/** In one answer. */
const MOST_CALLS = 16;
/** A shift of the context drops the oldest messages without a word: the request is bounded so that none comes. */
function refuseShift(): never {
  throw new Error('The context is full.');
}

export async function chat(
  library: Library,
  held: HeldContext,
  request: ChatRequest,
  tell: (delta: ChatDelta) => void,
  steps: Steps,
  signal: AbortSignal,
): Promise<Result<ChatAnswer>> {
  const history = historyOf(request.messages);
  if (!history.ok) return history;
  if (history.value.length === 0) return fail('bad_input', 'The request has no messages.');
  held.pendingToken = null;
  const must = mustCall(request);
  const functions =
    must || request.toolChoice === 'none' || request.tools.length === 0
      ? undefined
      : functionsOf(request.tools);
  const grammar = await grammarOf(held, request, must);
  if (!grammar.ok) return grammar;
  const talk = new library.LlamaChat({
    contextSequence: held.sequence,
    chatWrapper: wrapperOf(library, held),
  });
  const step = steps.begin();
  try {
    const prompt = promptTokens(held, talk, history.value, functions);
    const roomTokens = held.shape.contextTokens - 1 - prompt.length;
    if (roomTokens < LEAST_ANSWER_TOKENS) {
      return fail(
        'context_full',
        `The messages have ${prompt.length} tokens, and the context has ${held.shape.contextTokens}. Send fewer or shorter ones.`,
        { promptTokens: prompt.length, contextTokens: held.shape.contextTokens },
      );
    }
    const cachedTokens = await readPrompt(held, prompt, step, signal);
    if (signal.aborted) return fail('cancelled', 'The request was cancelled.');
    const before = held.sequence.tokenMeter.getState();
    const seen = { text: '', thought: '' };
    const wish = request.maxTokens ?? roomTokens;
    const shared = {
      ...samplingOf(request),
      maxTokens: Math.max(1, Math.min(wish, roomTokens)),
      customStopTriggers: [...request.stop],
      signal,
      stopOnAbortSignal: true,
      contextShift: { strategy: refuseShift },
      onToken: () => step.again(),
      onResponseChunk(chunk: LlamaChatResponseChunk) {
        if (chunk.text === '') return;
        const kind = chunk.type === 'segment' ? 'thought' : 'text';
        seen[kind] += chunk.text;
        // A forced call is JSON of ours until it is whole.
        if (!must) tell({ kind, text: chunk.text });
      },
    };
    const result =
      functions === undefined
        ? await talk.generateResponse(history.value, {
            ...shared,
            ...(grammar.value === null ? {} : { grammar: grammar.value }),
          })
        : await talk.generateResponse<ChatModelFunctions>(history.value, {
            ...shared,
            functions,
            documentFunctionParams: true,
            maxParallelFunctionCalls: request.parallelTools ? MOST_CALLS : 1,
            onFunctionCallParamsChunk: (chunk) =>
              tell({
                kind: 'call',
                index: chunk.callIndex,
                name: chunk.functionName,
                arguments: chunk.paramsChunk,
              }),
          });
    const used = held.sequence.tokenMeter.diff(before);
    const { stopReason } = result.metadata;
    const base = {
      stopSequence: stopSequenceOf(result.metadata, held),
      thought: seen.thought,
      promptTokens: prompt.length,
      cachedTokens,
      generatedTokens: used.usedOutputTokens,
    };
    if (must && stopReason !== 'abort')
      return forcedCall(result.response, stopReason === 'maxTokens', base, tell);
    const made: readonly { readonly functionName: string; readonly params: unknown }[] =
      result.functionCalls ?? [];
    const calls = made.map((call) => ({
      name: call.functionName,
      arguments: JSON.stringify(call.params ?? {}),
    }));
    return ok({
      ...base,
      text: result.response,
      calls,
      finish:
        stopReason === 'abort'
          ? 'cancelled'
          : calls.length > 0
            ? 'tool_calls'
            : stopReason === 'maxTokens'
              ? 'length'
              : 'stop',
    });
  } catch (thrown) {
    if (signal.aborted) return fail('cancelled', 'The request was cancelled.');
    return fail('internal', `The model could not answer: ${messageOf(thrown)}`);
  } finally {
    step.end();
    talk.dispose({ disposeSequence: false });
  }
}

/** What stopped it of what the request named, as text. */
export function stopSequenceOf(
  metadata: { readonly stopReason: string; readonly customStopTrigger?: readonly (string | Token)[] },
  held: HeldContext,
): string | null {
  if (metadata.customStopTrigger === undefined) return null;
  return metadata.customStopTrigger
    .map((part) => (typeof part === 'string' ? part : held.model.model.detokenize([part])))
    .join('');
}

/** Finding the wrapper that fits a template tries a dozen of them on it: once a model. */
const wrappers = new WeakMap<LlamaModel, ChatWrapper>();

function wrapperOf(library: Library, held: HeldContext): ChatWrapper {
  const { model } = held.model;
  const wrapper = wrappers.get(model) ?? library.resolveChatWrapper(model);
  wrappers.set(model, wrapper);
  return wrapper;
}

function mustCall(request: ChatRequest): boolean {
  return (
    request.tools.length > 0 && (request.toolChoice === 'required' || typeof request.toolChoice === 'object')
  );
}

/** The tokens that the library will find itself, so that all but the last can be read before, where a cancellation gets through. */
function promptTokens(
  held: HeldContext,
  talk: InstanceType<Library['LlamaChat']>,
  history: readonly ChatHistoryItem[],
  functions: ChatModelFunctions | undefined,
): Token[] {
  const last = history.at(-1);
  const chatHistory =
    last?.type === 'model' ? history : [...history, { type: 'model' as const, response: [] }];
  const { contextText } = talk.chatWrapper.generateContextState({
    chatHistory,
    ...(functions === undefined ? {} : { availableFunctions: functions, documentFunctionParams: true }),
  });
  return contextText.tokenize(held.model.model.tokenizer);
}

/** Reads the prompt but for its last token, in batches; answers with the tokens that were there already. */
export async function readPrompt(
  held: HeldContext,
  prompt: readonly Token[],
  step: Step,
  signal: AbortSignal,
): Promise<number> {
  const { sequence } = held;
  const wanted = prompt.slice(0, -1);
  await sequence.adaptStateToTokens(wanted, false);
  const cached = sequence.nextTokenIndex;
  for (let at = cached; at < wanted.length && !signal.aborted; at += held.shape.batchTokens) {
    step.again();
    await sequence.evaluateWithoutGeneratingNewTokens(wanted.slice(at, at + held.shape.batchTokens));
  }
  return cached;
}

async function grammarOf(
  held: HeldContext,
  request: ChatRequest,
  must: boolean,
): Promise<Result<LlamaGrammar | null>> {
  const { llama } = held.model.model;
  try {
    if (must) {
      const { toolChoice, tools } = request;
      const named =
        typeof toolChoice === 'object' ? tools.filter((tool) => tool.name === toolChoice.name) : tools;
      if (named.length === 0)
        return fail('bad_input', 'The tool that must be called is not among the tools.');
      const one = named.map((tool) => ({
        type: 'object',
        properties: {
          name: { const: tool.name },
          arguments: tool.parameters ?? { type: 'object', properties: {} },
        },
        required: ['name', 'arguments'],
        additionalProperties: false,
      }));
      return ok(await llama.createGrammarForJsonSchema(wholeSchema({ oneOf: one })));
    }
    if (request.format === 'json') return ok(await llama.getGrammarFor('json'));
    if (request.format !== null)
      return ok(await llama.createGrammarForJsonSchema(wholeSchema(request.format.schema)));
    return ok(null);
  } catch (thrown) {
    return fail('bad_input', `The JSON Schema can't be followed: ${messageOf(thrown)}`);
  }
}

export function samplingOf(request: Sampling) {
  const { temperature, topP, topK, minP, seed, frequencyPenalty, presencePenalty } = request;
  return {
    temperature,
    ...(topP === null ? {} : { topP }),
    ...(topK === null ? {} : { topK }),
    ...(minP === null ? {} : { minP }),
    // Without one node-llama-cpp takes the second of the clock: all that is asked within it would draw the same.
    seed: seed ?? randomInt(2 ** 32),
    repeatPenalty:
      frequencyPenalty === 0 && presencePenalty === 0
        ? (false as const)
        : { penalty: 1, frequencyPenalty, presencePenalty },
  };
}

/** The JSON that the grammar made, as the call it stands for. */
function forcedCall(
  text: string,
  isCut: boolean,
  base: Omit<ChatAnswer, 'text' | 'calls' | 'finish'>,
  tell: (delta: ChatDelta) => void,
): Result<ChatAnswer> {
  let made: unknown;
  try {
    made = JSON.parse(text);
  } catch {
    return ok({ ...base, text: '', calls: [], finish: isCut ? 'length' : 'stop' });
  }
  const name = String(Reflect.get(Object(made), 'name'));
  const call = { name, arguments: JSON.stringify(Reflect.get(Object(made), 'arguments') ?? {}) };
  tell({ kind: 'call', index: 0, ...call });
  return ok({ ...base, text: '', calls: [call], finish: 'tool_calls' });
}
