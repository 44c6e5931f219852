import type { LlamaEmbeddingContext, Token } from 'node-llama-cpp';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import type { Embedded, EmbedRequest } from '../engine-chat.ts';
import type { MemoryUse } from '../engine-host.ts';
import { vocabularySize } from './model-facts.ts';
import type { HeldModel } from './models.ts';
import type { Steps } from './steps.ts';

/** Longer texts than this are none for a search index, and each context's buffers grow with it. */
const MOST_TOKENS = 8192;

/** A context a model for embeddings, made when it is first wanted and kept with the model. */
export class EmbeddingContexts {
  readonly #threads: number;
  readonly #steps: Steps;
  readonly #contexts = new Map<string, Promise<LlamaEmbeddingContext>>();

  constructor(threads: number, steps: Steps) {
    this.#threads = threads;
    this.#steps = steps;
  }

  /** What its context takes; made here where it is not. Errors: `engine_out_of_memory`. */
  async open(held: HeldModel): Promise<Result<MemoryUse>> {
    const context = await this.#opened(held);
    return context.ok ? ok(memoryOf(context.value, held)) : context;
  }

  async embed(held: HeldModel, request: EmbedRequest, signal: AbortSignal): Promise<Result<Embedded>> {
    const opened = await this.#opened(held);
    if (!opened.ok) return opened;
    const context = opened.value;
    const most = contextTokens(held);
    const words = vocabularySize(held.model);
    const vectors: (readonly number[])[] = [];
    let tokens = 0;
    for (const input of request.inputs) {
      if (signal.aborted) return fail('cancelled', 'The request was cancelled.');
      if (input.length === 0) return fail('bad_input', 'An input is empty: there is nothing to embed.');
      const stranger = typeof input === 'string' ? undefined : input.find((token) => token >= words);
      if (stranger !== undefined)
        return fail('bad_input', `The model has no token ${stranger}; its last is ${words - 1}.`);
      const what = typeof input === 'string' ? input : ([...input] as Token[]);
      const length = context.calculateInputLength(what);
      if (length >= most) {
        return fail('context_full', `An input has ${length} tokens, and the model takes ${most - 1}.`, {
          promptTokens: length,
          contextTokens: most,
        });
      }
      tokens += length;
      vectors.push((await this.#steps.during(() => context.getEmbeddingFor(what))).vector);
    }
    return ok({ vectors, tokens });
  }

  async disposeOf(modelId: string): Promise<void> {
    const context = this.#contexts.get(modelId);
    this.#contexts.delete(modelId);
    await (await context?.catch(() => undefined))?.dispose();
  }

  async #opened(held: HeldModel): Promise<Result<LlamaEmbeddingContext>> {
    const { modelId } = held.facts;
    try {
      return ok(await this.#context(held));
    } catch (thrown) {
      this.#contexts.delete(modelId);
      return fail(
        'engine_out_of_memory',
        `A context for embeddings could not be made (${messageOf(thrown)}).`,
      );
    }
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

/** The library tells it of the context inside only. */
function memoryOf(context: LlamaEmbeddingContext, held: HeldModel): MemoryUse {
  const inner: unknown = Reflect.get(context, '_llamaContext');
  const use: unknown = typeof inner === 'object' && inner !== null ? Reflect.get(inner, 'memoryUsage') : null;
  const bytes = (name: 'ram' | 'vram'): number | null => {
    const value: unknown = typeof use === 'object' && use !== null ? Reflect.get(use, name) : null;
    return typeof value === 'number' ? value : null;
  };
  return {
    hostBytes: bytes('ram'),
    deviceBytes: held.facts.deviceBytes === null ? null : bytes('vram'),
  };
}
