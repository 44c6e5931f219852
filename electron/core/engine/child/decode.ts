import type { Token } from 'node-llama-cpp';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import type { Decoded, DecodeRequest, GeneratedPiece } from '../engine-host.ts';
import type { HeldContext } from './contexts.ts';
import type { Steps } from './steps.ts';
import { TextPieces } from './text-pieces.ts';

/** Tokens before the new ones that a tokenizer looks at to put the space between words. */
const LOOK_BACK = 8;

/**
 * Reads the prompt in whole batches, which is exact (llama.cpp would cut it there by itself) and lets a
 * cancellation through between them, then generates token by token.
 */
export async function decode(
  held: HeldContext,
  request: DecodeRequest,
  tell: (piece: GeneratedPiece) => void,
  steps: Steps,
  signal: AbortSignal,
): Promise<Result<Decoded>> {
  const { sequence, model, shape } = held;
  const { maxTokens, temperature = 0, seed } = request;
  const pendingBefore = held.pendingToken;
  const prompt = pendingBefore === null ? request.tokens : [pendingBefore, ...request.tokens];
  if (prompt.length === 0) return fail('bad_input', 'There is nothing to go on from: give a prompt.');
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 0) {
    return fail('bad_input', 'The number of tokens to generate is 0 or more.', { maxTokens });
  }
  // The library keeps one cell free.
  const roomTokens = shape.contextTokens - 1;
  const heldTokens = sequence.nextTokenIndex;
  const readTokens = maxTokens === 0 ? prompt.length - 1 : prompt.length;
  if (heldTokens + readTokens > roomTokens) {
    return fail(
      'context_full',
      `The prompt does not fit: the context has ${roomTokens} tokens, of which ${heldTokens} are in use. Start anew, or take a larger context.`,
      { contextTokens: roomTokens, heldTokens, promptTokens: prompt.length },
    );
  }

  const startedAtMs = performance.now();
  let promptEndAtMs: number | null = null;
  let read = 0;
  const tokens: number[] = [];
  let text = '';
  // Where something new was said, the half character before it stays half.
  const untold = request.tokens.length === 0 ? (request.untold ?? []) : [];
  const all = [...sequence.contextTokens.slice(-2 * LOOK_BACK), ...prompt].map(Number);
  const pieces = new TextPieces(
    (some, told) => model.model.detokenize(some as Token[], false, told as Token[]),
    all.slice(0, Math.max(0, all.length - untold.length)).slice(-LOOK_BACK),
    untold,
  );
  const end = (stopped: Decoded['stopped']): Result<Decoded> => {
    const nowMs = performance.now();
    return ok({
      stopped,
      promptTokens: Math.max(0, read - (pendingBefore === null ? 0 : 1)),
      tokens,
      text,
      stoppedOnEos: stopped === 'eos',
      pendingToken: held.pendingToken,
      heldTokens: sequence.nextTokenIndex,
      untold: pieces.held,
      promptMs: (promptEndAtMs ?? nowMs) - startedAtMs,
      generateMs: promptEndAtMs === null ? 0 : nowMs - promptEndAtMs,
    });
  };

  const cancelled = (): boolean => signal.aborted;
  const step = steps.begin();
  try {
    return await readAndGenerate();
  } finally {
    step.end();
  }

  async function readAndGenerate(): Promise<Result<Decoded>> {
    while (readTokens - read > shape.batchTokens || (maxTokens === 0 && read < readTokens)) {
      if (cancelled()) return end('cancelled');
      step.again();
      const chunk = prompt.slice(read, Math.min(readTokens, read + shape.batchTokens));
      await sequence.evaluateWithoutGeneratingNewTokens(chunk as Token[]);
      read += chunk.length;
      held.pendingToken = null;
    }
    if (maxTokens === 0) {
      held.pendingToken = prompt.at(-1) ?? null;
      read = prompt.length;
      promptEndAtMs = performance.now();
      return end('limit');
    }
    if (cancelled()) return end('cancelled');

    const last = prompt.slice(read);
    const stream = sequence.evaluate(last as Token[], {
      temperature,
      ...(seed === undefined ? {} : { seed }),
      yieldEogToken: true,
    });
    try {
      while (true) {
        step.again();
        const next = await stream.next();
        if (next.done === true) return fail('internal', 'The model gave no token.');
        if (promptEndAtMs === null) {
          promptEndAtMs = performance.now();
          read = prompt.length;
        }
        const token = Number(next.value);
        held.pendingToken = token;
        if (model.model.isEogToken(next.value)) return end('eos');
        tokens.push(token);
        const piece = pieces.take(token);
        text += piece;
        tell({ token, text: piece });
        if (tokens.length >= maxTokens) return end('limit');
        if (cancelled()) return end('cancelled');
        if (sequence.nextTokenIndex + 1 > roomTokens) return end('context_full');
      }
    } finally {
      await stream.return();
    }
  }
}
