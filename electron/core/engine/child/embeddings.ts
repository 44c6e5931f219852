import type { LlamaEmbeddingContext, Token } from 'node-llama-cpp';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import type { Embedded, EmbedRequest } from '../engine-chat.ts';
import type { HeldModel } from './models.ts';

/** Longer texts than this are none for a search index, and each context's buffers grow with it. */
const MOST_TOKENS = 8192;

/** A context a model for embeddings, made with the first request and kept with the model. */
export class EmbeddingContexts {
  readonly #threads: number;
  readonly #contexts = new Map<string, Promise<LlamaEmbeddingContext>>();

  constructor(threads: number) {
    this.#threads = threads;
  }

  async embed(held: HeldModel, request: EmbedRequest, signal: AbortSignal): Promise<Result<Embedded>> {
    const { modelId } = held.facts;
    let context: LlamaEmbeddingContext;
    try {
      context = await this.#context(held);
    } catch (thrown) {
      this.#contexts.delete(modelId);
      return fail(
        'engine_out_of_memory',
        `A context for embeddings could not be made (${messageOf(thrown)}).`,
      );
    }
    const most = contextTokens(held);
    const vectors: (readonly number[])[] = [];
    let tokens = 0;
    for (const input of request.inputs) {
      if (signal.aborted) return fail('cancelled', 'The request was cancelled.');
      const what = typeof input === 'string' ? input : ([...input] as Token[]);
      const length = context.calculateInputLength(what);
      if (length > most) {
        return fail('context_full', `An input has ${length} tokens, and the model takes ${most}.`, {
          promptTokens: length,
          contextTokens: most,
        });
      }
      tokens += length;
      vectors.push(length === 0 ? [] : (await context.getEmbeddingFor(what)).vector);
    }
    return ok({ vectors, tokens });
  }

  async disposeOf(modelId: string): Promise<void> {
    const context = this.#contexts.get(modelId);
    this.#contexts.delete(modelId);
    await (await context?.catch(() => undefined))?.dispose();
  }

  #context(held: HeldModel): Promise<LlamaEmbeddingContext> {
    const { modelId } = held.facts;
    const present = this.#contexts.get(modelId);
    if (present !== undefined) return present;
    const size = contextTokens(held);
    const made = held.model.createEmbeddingContext({
      contextSize: size,
      batchSize: size,
      threads: this.#threads,
    });
    this.#contexts.set(modelId, made);
    return made;
  }
}

function contextTokens(held: HeldModel): number {
  return Math.min(MOST_TOKENS, held.facts.trainedContextTokens ?? MOST_TOKENS);
}
