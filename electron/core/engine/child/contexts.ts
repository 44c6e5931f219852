import type { GgmlType, Llama, LlamaContext, LlamaContextSequence } from 'node-llama-cpp';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import type {
  CacheType,
  ContextRequest,
  ContextShape,
  EngineFacts,
  LiveContext,
  MemoryUse,
} from '../engine-host.ts';
import { cacheWidthOf } from './cache-width.ts';
import type { LlamaLog } from './llama-log.ts';
import type { HeldModel, ModelStore } from './models.ts';
import { largestCacheTensorBytes, mostTensorBytes, roomFor, sizesOf } from './sizes.ts';

type Library = typeof import('node-llama-cpp');

/** A live context of one sequence, and what the library does not keep: the token that is not in the KV yet. */
export interface HeldContext {
  readonly contextId: string;
  readonly model: HeldModel;
  readonly shape: ContextShape;
  readonly request: ContextRequest;
  context: LlamaContext;
  sequence: LlamaContextSequence;
  pendingToken: number | null;
  /** What is asked of it, one after the other. */
  turn: Promise<unknown>;
  /** Aborted when it is to go: what runs in it ends within a token. */
  readonly leaving: AbortController;
}

/** Thrown in the place of a context shift, which would drop what was said without a word. */
function refuseShift(): never {
  throw new Error('The context is full.');
}

/** All live contexts of this process. */
export class ContextStore {
  readonly #library: Library;
  readonly #llama: Llama;
  readonly #log: LlamaLog;
  readonly #models: ModelStore;
  readonly #facts: EngineFacts;
  readonly #generation: number;
  readonly #held = new Map<string, HeldContext>();
  #nextId = 1;
  #busy = 0;

  constructor(
    library: Library,
    llama: Llama,
    log: LlamaLog,
    models: ModelStore,
    facts: EngineFacts,
    generation: number,
  ) {
    this.#library = library;
    this.#llama = llama;
    this.#log = log;
    this.#models = models;
    this.#facts = facts;
    this.#generation = generation;
  }

  /** Contexts that do something now. */
  get busy(): number {
    return this.#busy;
  }

  async estimate(request: ContextRequest): Promise<Result<MemoryUse>> {
    const model = this.#models.get(request.modelId);
    if (!model.ok) return model;
    const shape = this.#shape(request, model.value);
    if (!shape.ok) return shape;
    return await this.#estimate(model.value, shape.value);
  }

  async create(request: ContextRequest): Promise<Result<LiveContext>> {
    const model = this.#models.get(request.modelId);
    if (!model.ok) return model;
    const shape = this.#shape(request, model.value);
    if (!shape.ok) return shape;
    const needs = await this.#estimate(model.value, shape.value);
    if (!needs.ok) return needs;
    const room = await roomFor(this.#llama, needs.value);
    if (!room.ok) return room;
    const made = await this.#make(model.value, shape.value);
    if (!made.ok) return made;
    // A model may have been unloaded meanwhile, which had no context to wait for then.
    if (!this.#models.get(request.modelId).ok) {
      await made.value.context.dispose();
      return fail('unknown_model', 'The model was unloaded while its context was made.');
    }
    const contextId = `${this.#generation}.c${this.#nextId}`;
    this.#nextId += 1;
    const { context } = made.value;
    const held: HeldContext = {
      contextId,
      model: model.value,
      request,
      shape: { ...shape.value, contextTokens: context.contextSize },
      ...made.value,
      pendingToken: null,
      turn: Promise.resolve(),
      leaving: new AbortController(),
    };
    this.#held.set(contextId, held);
    const { ram, vram } = context.memoryUsage;
    return ok({
      contextId,
      modelId: request.modelId,
      ...held.shape,
      hostBytes: ram,
      deviceBytes: this.#facts.gpu === 'cpu' ? null : vram,
    });
  }

  /** Does one thing with a context, after what was asked of it before. */
  async use<T>(contextId: string, action: (held: HeldContext) => Promise<Result<T>>): Promise<Result<T>> {
    const held = this.#held.get(contextId);
    if (held === undefined) return unknownContext();
    const before = held.turn;
    const done = Promise.withResolvers<void>();
    held.turn = done.promise;
    await before;
    try {
      if (held.leaving.signal.aborted) return unknownContext();
      this.#busy += 1;
      try {
        return await action(held);
      } finally {
        this.#busy -= 1;
      }
    } finally {
      done.resolve();
    }
  }

  async clear(held: HeldContext): Promise<Result<null>> {
    await held.sequence.clearHistory();
    held.pendingToken = null;
    return ok(null);
  }

  /** Makes a context anew under its id: a load that failed leaves the old one's sequence wedged. */
  async remake(held: HeldContext): Promise<Result<null>> {
    await held.context.dispose();
    held.pendingToken = null;
    const made = await this.#make(held.model, held.shape);
    if (!made.ok) {
      this.#held.delete(held.contextId);
      held.leaving.abort();
      return made;
    }
    held.context = made.value.context;
    held.sequence = made.value.sequence;
    return ok(null);
  }

  async dispose(contextId: string): Promise<void> {
    const held = this.#held.get(contextId);
    if (held === undefined) return;
    this.#held.delete(contextId);
    held.leaving.abort();
    await held.turn;
    await held.context.dispose();
  }

  async disposeOf(modelId: string): Promise<void> {
    const theirs = [...this.#held.values()].filter((held) => held.model.facts.modelId === modelId);
    await Promise.all(theirs.map((held) => this.dispose(held.contextId)));
  }

  #shape(request: ContextRequest, held: HeldModel): Result<ContextShape> {
    const sizes = sizesOf(request, {
      gpu: this.#facts.gpu,
      flashAttentionSupported: held.model.flashAttentionSupported,
    });
    if (!sizes.ok) return sizes;
    const { gpu, gpuDevices } = this.#facts;
    const tensorBytes = largestCacheTensorBytes(cacheWidthOf(held.model), sizes.value) ?? 0;
    const mostBytes =
      held.facts.gpuLayers === 0 ? Number.POSITIVE_INFINITY : mostTensorBytes(gpu, gpuDevices);
    if (tensorBytes > mostBytes) {
      return fail(
        'engine_out_of_memory',
        `A context of ${sizes.value.contextTokens} tokens has a larger cache than ${gpu} takes in one piece. Take a smaller one, or keep the model's layers on the CPU.`,
        { requestedBytes: tensorBytes, mostBytes },
      );
    }
    return ok({
      ...sizes.value,
      threads: this.#facts.threads,
      // Two builds of the CPU's code need not agree in the last bit.
      gpu:
        this.#facts.gpu === 'cpu' && this.#llama.gpu !== false
          ? `cpu of ${this.#llama.gpu}`
          : this.#facts.gpu,
      gpuLayers: held.facts.gpuLayers,
    });
  }

  #ggmlType(type: CacheType): GgmlType {
    return this.#library.GgmlType[type];
  }

  async #estimate(held: HeldModel, shape: ContextShape): Promise<Result<MemoryUse>> {
    this.#log.forget();
    try {
      const { cpuRam, gpuVram } = await held.model.fileInsights.estimateContextResourceRequirementsV2({
        contextSize: shape.contextTokens,
        modelGpuLayers: shape.gpuLayers,
        batchSize: shape.batchTokens,
        flashAttention: shape.flashAttention,
        kvCacheKeyType: this.#ggmlType(shape.cacheTypeK),
        kvCacheValueType: this.#ggmlType(shape.cacheTypeV),
      });
      return ok({ hostBytes: cpuRam, deviceBytes: this.#facts.gpu === 'cpu' ? null : gpuVram });
    } catch (thrown) {
      return this.#refused(shape, messageOf(thrown));
    }
  }

  async #make(
    held: HeldModel,
    shape: ContextShape,
  ): Promise<Result<{ readonly context: LlamaContext; readonly sequence: LlamaContextSequence }>> {
    this.#log.forget();
    try {
      const context = await held.model.createContext({
        sequences: 1,
        contextSize: shape.contextTokens,
        batchSize: shape.batchTokens,
        flashAttention: shape.flashAttention,
        threads: { ideal: shape.threads, min: shape.threads },
        experimentalKvCacheKeyType: shape.cacheTypeK,
        experimentalKvCacheValueType: shape.cacheTypeV,
        failedCreationRemedy: false,
      });
      return ok({ context, sequence: context.getSequence({ contextShift: { strategy: refuseShift } }) });
    } catch (thrown) {
      return this.#refused(shape, messageOf(thrown));
    }
  }

  #refused(shape: ContextShape, thrown: string): Result<never> {
    return fail(
      'engine_out_of_memory',
      `A context of ${shape.contextTokens} tokens could not be made (${this.#log.why(thrown)}). Take a smaller one, or unload another model.`,
      { contextTokens: shape.contextTokens },
    );
  }
}

function unknownContext(): Result<never> {
  return fail('unknown_model', 'The engine has no such context: its model was unloaded. Load it again.');
}
