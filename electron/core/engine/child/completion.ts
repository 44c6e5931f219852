import type { Token } from 'node-llama-cpp';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import type { ChatAnswer, ChatDelta, CompletionRequest } from '../engine-chat.ts';
import { LEAST_ANSWER_TOKENS, type Library, readPrompt, samplingOf, stopSequenceOf } from './chat.ts';
import type { HeldContext } from './contexts.ts';
import type { Steps } from './steps.ts';

/** Goes on from a text as it is, without a chat's template. */
export async function complete(
  library: Library,
  held: HeldContext,
  request: CompletionRequest,
  tell: (delta: ChatDelta) => void,
  steps: Steps,
  signal: AbortSignal,
): Promise<Result<ChatAnswer>> {
  const { sequence, shape } = held;
  const { model } = held.model;
  held.pendingToken = null;
  const text = model.tokenize(request.prompt, false);
  const { bos, shouldPrependBosToken } = model.tokens;
  const prompt: Token[] = shouldPrependBosToken && bos !== null ? [bos, ...text] : text;
  if (prompt.length === 0) return fail('bad_input', 'The prompt is empty: there is nothing to go on from.');
  const roomTokens = shape.contextTokens - 1 - prompt.length;
  if (roomTokens < LEAST_ANSWER_TOKENS)
    return fail(
      'context_full',
      `The prompt has ${prompt.length} tokens, and the context has ${shape.contextTokens}. Send a shorter one.`,
      { promptTokens: prompt.length, contextTokens: shape.contextTokens },
    );
  const step = steps.begin();
  const completion = new library.LlamaCompletion({ contextSequence: sequence });
  try {
    const cachedTokens = await readPrompt(held, prompt, step, signal);
    if (signal.aborted) return fail('cancelled', 'The request was cancelled.');
    const before = sequence.tokenMeter.getState();
    const { response, metadata } = await completion.generateCompletionWithMeta(text, {
      ...samplingOf(request),
      maxTokens: Math.max(1, Math.min(request.maxTokens ?? roomTokens, roomTokens)),
      customStopTriggers: [...request.stop],
      signal,
      stopOnAbortSignal: true,
      // It never comes to a shift, and keeps this many cells free for one.
      contextShiftSize: 1,
      disableContextShift: true,
      onToken: () => step.again(),
      onTextChunk: (chunk) => {
        if (chunk !== '') tell({ kind: 'text', text: chunk });
      },
    });
    const { stopReason } = metadata;
    return ok({
      text: response,
      thought: '',
      calls: [],
      stopSequence: stopSequenceOf(metadata, held),
      finish: stopReason === 'abort' ? 'cancelled' : stopReason === 'maxTokens' ? 'length' : 'stop',
      promptTokens: prompt.length,
      cachedTokens,
      generatedTokens: sequence.tokenMeter.diff(before).usedOutputTokens,
    });
  } catch (thrown) {
    if (signal.aborted) return fail('cancelled', 'The request was cancelled.');
    return fail('internal', `The model could not go on: ${messageOf(thrown)}`);
  } finally {
    step.end();
    completion.dispose({ disposeSequence: false });
  }
}
