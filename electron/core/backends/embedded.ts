import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { ModelStatus } from '../../../shared/state.ts';
import type { Clock } from '../clock.ts';
import type { ChatEngine } from '../engine/engine-chat.ts';
import type { EngineHost, LiveContext, LoadedModel, MemoryUse } from '../engine/engine-host.ts';
import type { EmbeddedModels } from '../engine/openai/server.ts';
import type { Backend, BackendChange, BackendSnapshot, BusyAnswer, ObservedModel } from './backend.ts';

export interface EmbeddedBackendOptions {
  readonly name: string;
  /** Where the gateway reaches it. */
  readonly url: string;
  /** Name → GGUF file. */
  readonly models: Readonly<Record<string, string>>;
  readonly engine: EngineHost & ChatEngine;
  readonly clock: Clock;
  /** Of the same name, under the settings before: what it has loaded and these name too stays loaded. */
  readonly before?: EmbeddedBackend | null;
  /** All of this engine: their models share the weights of one file. Default: this one alone. */
  readonly all?: () => Iterable<EmbeddedBackend>;
}

/** Of a chat; a model trained for less has less. */
const CHAT_TOKENS = 8_192;

/** One model of the config, and what of it is loaded. */
interface Slot {
  readonly name: string;
  readonly path: string;
  status: ModelStatus;
  sinceMs: number;
  lastBusyAtMs: number | null;
  progress: number | null;
  failure: string | null;
  loaded: {
    readonly model: LoadedModel;
    readonly context: LiveContext | null;
    /** What its context for embeddings takes; null: there is none yet. */
    embedding: MemoryUse | null;
  } | null;
  /** Of a load that is on its way. */
  load: { readonly abort: AbortController; readonly done: Promise<Result<void>> } | null;
}

/** The embedded engine as a backend: its models come and go as those of any server do. */
export class EmbeddedBackend implements Backend, EmbeddedModels {
  readonly kind = 'embedded';
  readonly name: string;
  readonly url: string;
  readonly #engine: EngineHost & ChatEngine;
  readonly #clock: Clock;
  readonly #slots: Map<string, Slot>;
  readonly #all: () => Iterable<EmbeddedBackend>;
  #undo: (() => void)[] = [];
  #onChange: (change: BackendChange) => void = () => {};
  #sinceMs: number | null = null;

  constructor(options: EmbeddedBackendOptions) {
    this.name = options.name;
    this.url = options.url;
    this.#engine = options.engine;
    this.#clock = options.clock;
    this.#all = options.all ?? (() => [this]);
    const nowMs = options.clock.monotonicMs();
    this.#slots = new Map(
      Object.entries(options.models).map(([name, path]) => [
        name,
        options.before?.handOver(name, path) ?? emptySlot(name, path, nowMs),
      ]),
    );
  }

  start(onChange: (change: BackendChange) => void): void {
    this.#onChange = onChange;
    this.#sinceMs = this.#clock.monotonicMs();
    this.#undo = [
      this.#engine.onEnded((why) => this.#ended(why)),
      this.#engine.onUse((modelId, busy) => this.#used(modelId, busy)),
    ];
    this.#tell(null, 'up');
  }

  async stop(): Promise<void> {
    this.#onChange = () => {};
    for (const undo of this.#undo) undo();
    this.#undo = [];
    // A backend of the same name under other settings may come right now, and take what it names.
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([...this.#slots.values()].map((slot) => this.#leaveAlone(slot)));
  }

  snapshot(): BackendSnapshot {
    return {
      name: this.name,
      kind: this.kind,
      url: this.url,
      status: this.#sinceMs === null ? 'unknown' : 'up',
      sinceMs: this.#sinceMs,
      error: null,
      version: this.#engine.facts()?.version ?? null,
      models: [...this.#slots.values()].map((slot) => this.#observed(slot)),
      takenAtMs: this.#clock.monotonicMs(),
      tellsBusy: true,
      notes: [],
    };
  }

  /** Whether this very file is loaded as one of its models. */
  holds(path: string): boolean {
    return [...this.#slots.values()].some((slot) => slot.loaded?.model.path === path);
  }

  names(): readonly string[] {
    return [...this.#slots.keys()];
  }

  load(model: string, _signal: AbortSignal): Promise<Result<void>> {
    const slot = this.#slots.get(model);
    if (slot === undefined) return Promise.resolve(this.#unknown(model));
    if (slot.status === 'stopping') {
      return Promise.resolve(fail('model_busy', `${model} is being unloaded; ask again in a moment.`));
    }
    this.#begin(slot);
    return Promise.resolve(ok(undefined));
  }

  unload(model: string, _signal: AbortSignal): Promise<Result<void>> {
    const slot = this.#slots.get(model);
    if (slot === undefined) return Promise.resolve(this.#unknown(model));
    void this.#leave(slot);
    return Promise.resolve(ok(undefined));
  }

  async confirmIdle(model: string, _signal: AbortSignal): Promise<BusyAnswer> {
    const slot = this.#slots.get(model);
    if (slot === undefined) return { busy: null, why: `${this.name} has no model ${model}` };
    return this.#isBusy(slot) ? { busy: true, detail: 'it is answering' } : { busy: false };
  }

  async refresh(): Promise<void> {}

  /** Loads what is not there; who asks is the gateway, which has booked it. */
  async ready(
    model: string,
    purpose: 'text' | 'embeddings',
    signal: AbortSignal,
  ): Promise<Result<{ readonly modelId: string; readonly contextId: string | null }>> {
    const slot = this.#slots.get(model);
    if (slot === undefined) return this.#unknown(model);
    if (slot.status === 'stopping')
      return fail('model_busy', `${model} is being unloaded; ask again in a moment.`);
    if (slot.loaded === null) {
      const done = await this.#begin(slot);
      if (!done.ok) return done;
    }
    if (signal.aborted) return fail('cancelled', 'The client left.');
    const { loaded } = slot;
    if (loaded === null) return fail('engine_ended', `${model} was unloaded meanwhile; ask again.`);
    if (purpose === 'embeddings' && loaded.embedding === null) {
      const opened = await this.#engine.openEmbeddings(loaded.model.modelId);
      if (!opened.ok) return opened;
      for (const one of this.#sharing(slot)) if (one.loaded !== null) one.loaded.embedding = opened.value;
    }
    return ok({ modelId: loaded.model.modelId, contextId: loaded.context?.contextId ?? null });
  }

  /** What is loaded of this file under this name, which is then another's; null: nothing. */
  handOver(name: string, path: string): Slot | null {
    const slot = this.#slots.get(name);
    if (slot === undefined || slot.path !== path || slot.load !== null || slot.status !== 'loaded')
      return null;
    this.#slots.delete(name);
    return slot;
  }

  /** Idempotent: a load that is on its way is joined. */
  #begin(slot: Slot): Promise<Result<void>> {
    if (slot.load !== null) return slot.load.done;
    if (slot.loaded !== null) return Promise.resolve(ok(undefined));
    const abort = new AbortController();
    const begun = Promise.withResolvers<Result<void>>();
    slot.load = { abort, done: begun.promise };
    slot.progress = 0;
    slot.failure = null;
    this.#set(slot, 'loading', 'loading');
    void this.#load(slot, abort.signal).then((result) => {
      slot.load = null;
      slot.progress = null;
      if (result.ok) this.#set(slot, 'loaded', 'loaded');
      else if (result.error.code === 'cancelled') this.#set(slot, 'unloaded', 'unloaded');
      else {
        slot.failure = result.error.message;
        this.#set(slot, 'failed', 'load_failed');
      }
      begun.resolve(result);
    });
    return begun.promise;
  }

  async #load(slot: Slot, signal: AbortSignal): Promise<Result<void>> {
    const model = await this.#engine.loadModel(
      {
        path: slot.path,
        gpuLayers: null,
        onProgress: (share) => {
          slot.progress = share;
        },
      },
      signal,
    );
    if (!model.ok) return model;
    const { modelId, generates, trainedContextTokens } = model.value;
    let context: LiveContext | null = null;
    let embedding: MemoryUse | null = null;
    if (generates) {
      const contextTokens = Math.min(CHAT_TOKENS, trainedContextTokens ?? CHAT_TOKENS);
      const made = await this.#engine.createContext({ modelId, contextTokens });
      if (!made.ok) {
        await this.#engine.releaseModel(modelId);
        return made;
      }
      context = made.value;
    } else {
      const opened = await this.#engine.openEmbeddings(modelId);
      if (!opened.ok) {
        await this.#engine.releaseModel(modelId);
        return opened;
      }
      embedding = opened.value;
    }
    if (signal.aborted) {
      if (context !== null) await this.#engine.disposeContext(context.contextId);
      await this.#engine.releaseModel(modelId);
      return fail('cancelled', 'The load was cancelled.');
    }
    slot.loaded = { model: model.value, context, embedding };
    return ok(undefined);
  }

  /**
   * Whatever it does: a request in it ends within a token, agents of the same model are put away first. What
   * has the same file under another name leaves with it: memory is only back when the weights are.
   */
  async #leave(slot: Slot): Promise<void> {
    if (slot.load !== null) {
      slot.load.abort.abort();
      await slot.load.done;
    }
    const { loaded } = slot;
    if (loaded === null || slot.status === 'stopping') return;
    const { modelId } = loaded.model;
    const backends = this.#everyone();
    for (const backend of backends) backend.#markAll(modelId, 'stopping');
    await this.#engine.unloadModel(modelId);
    for (const backend of backends) backend.#markAll(modelId, 'unloaded');
  }

  /** As `#leave`, but what other names have of the same file stays. */
  async #leaveAlone(slot: Slot): Promise<void> {
    const { loaded } = slot;
    if (loaded === null || this.#sharing(slot).length === 1) return await this.#leave(slot);
    slot.loaded = null;
    if (loaded.context !== null) await this.#engine.disposeContext(loaded.context.contextId);
    await this.#engine.releaseModel(loaded.model.modelId);
  }

  #markAll(modelId: string, status: 'stopping' | 'unloaded'): void {
    for (const slot of this.#slots.values()) {
      if (slot.loaded?.model.modelId !== modelId) continue;
      if (status === 'unloaded') slot.loaded = null;
      this.#set(slot, status, status === 'stopping' ? 'busy' : 'unloaded');
    }
  }

  /** Slots whose model is this one's, itself among them. */
  #sharing(slot: Slot): readonly Slot[] {
    const modelId = slot.loaded?.model.modelId;
    return [...this.#everyone()]
      .flatMap((backend) => [...backend.#slots.values()])
      .filter((one) => one.loaded?.model.modelId === modelId);
  }

  /** One that the settings no longer have is not among the others. */
  #everyone(): ReadonlySet<EmbeddedBackend> {
    return new Set([...this.#all(), this]);
  }

  /** Weights count with the first of those that share them. */
  #countsWeights(slot: Slot): boolean {
    return this.#sharing(slot)[0] === slot;
  }

  #ended(why: string): void {
    for (const slot of this.#slots.values()) {
      // A load that was on its way fails by itself.
      if (slot.loaded === null) continue;
      slot.loaded = null;
      if (slot.status === 'stopping') continue;
      slot.failure = `the engine ended (${why}); it is started again with the next request`;
      this.#set(slot, 'failed', 'crashed');
    }
  }

  #used(modelId: string, busy: boolean): void {
    for (const slot of this.#slots.values()) {
      if (slot.loaded?.model.modelId !== modelId) continue;
      slot.lastBusyAtMs = this.#clock.monotonicMs();
      this.#tell(slot.name, busy ? 'busy' : 'idle');
    }
  }

  #isBusy(slot: Slot): boolean {
    return slot.loaded !== null && this.#engine.isBusy(slot.loaded.model.modelId);
  }

  #set(slot: Slot, status: ModelStatus, what: BackendChange['what']): void {
    slot.status = status;
    slot.sinceMs = this.#clock.monotonicMs();
    this.#tell(slot.name, what);
  }

  #tell(model: string | null, what: BackendChange['what']): void {
    this.#onChange({ backend: this.name, model, what, atMs: this.#clock.monotonicMs() });
  }

  #observed(slot: Slot): ObservedModel {
    const busy = this.#isBusy(slot);
    if (busy) slot.lastBusyAtMs = this.#clock.monotonicMs();
    const bytes = countedBytes(slot, this.#countsWeights(slot), this.#engine.facts()?.gpu ?? null);
    return {
      name: slot.name,
      aliases: [],
      status: slot.status,
      busy,
      lastBusyAtMs: slot.lastBusyAtMs,
      sinceMs: slot.sinceMs,
      args: this.#args(slot),
      modelPath: slot.path,
      port: null,
      process: null,
      processNote:
        'Its process is the engine, which holds other models too, so it is unloaded and never killed.',
      contextTokens: slot.loaded?.context?.contextTokens ?? null,
      loadProgress: slot.progress,
      reportedBytes: bytes,
      countedBytes: bytes,
      weightsBytes: slot.loaded?.model.fileBytes ?? null,
      stopTimeoutMs: 0,
      failure: slot.failure,
    };
  }

  /** As llama-server would be told the same, so that the estimate is of what is going to be loaded. */
  #args(slot: Slot): readonly string[] {
    const onCpu = this.#engine.facts()?.gpu === 'cpu';
    const tokens = slot.loaded?.context?.contextTokens ?? CHAT_TOKENS;
    return [
      '--ctx-size',
      String(tokens),
      '--parallel',
      '1',
      '--ubatch-size',
      onCpu ? '128' : '512',
      ...(onCpu ? ['--n-gpu-layers', '0'] : []),
    ];
  }

  #unknown(model: string): Result<never> {
    return fail('unknown_model', `${this.name} has no model ${model}; add it with \`landlord engine add\`.`);
  }
}

function emptySlot(name: string, path: string, sinceMs: number): Slot {
  return {
    name,
    path,
    status: 'unloaded',
    sinceMs,
    lastBusyAtMs: null,
    progress: null,
    failure: null,
    loaded: null,
    load: null,
  };
}

/** By llama.cpp's own account: on the device where there is one, else in main memory. */
function countedBytes(slot: Slot, withWeights: boolean, gpu: string | null): number | null {
  if (slot.loaded === null) return null;
  const { model, context, embedding } = slot.loaded;
  const of = (use: MemoryUse | null): number =>
    use === null ? 0 : ((gpu === 'cpu' ? use.hostBytes : use.deviceBytes) ?? 0);
  return (withWeights ? of(model) + of(embedding) : 0) + of(context);
}
