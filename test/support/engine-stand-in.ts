import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import type {
  ContextRequest,
  ContextShape,
  Decoded,
  DecodeRequest,
  EngineFacts,
  EngineHost,
  EngineMemory,
  GeneratedPiece,
  LiveContext,
  LoadedModel,
  LoadRequest,
  MemoryUse,
  StateRecord,
} from '../../electron/core/engine/engine-host.ts';
import { fail, ok, type Result } from '../../shared/errors.ts';

const FACTS: EngineFacts = { pid: 1, gpu: 'cpu', gpuDevices: [], threads: 1, version: 'stand-in' };
const EOS = 2;
const LETTERS = 'etaoinshrdlu cm';

interface Model extends LoadedModel {
  users: number;
}

interface Context extends LiveContext {
  held: number[];
  pending: number | null;
}

export interface StandInOptions {
  /** Of a context's tokens and its file: what a context takes. */
  readonly contextBytes?: number;
  readonly weightsBytes?: (path: string) => number;
  /** Waited for before each token. */
  readonly pace?: () => Promise<void>;
  readonly beginToken?: number | null;
  /** One token in so many is the end token; 0, the default: none. */
  readonly endsEvery?: number;
}

/**
 * An engine without a model: what comes next is worked out from every token so far, so that one token
 * lost or doubled anywhere in a conversation changes all that follows. States are real files.
 */
export class StandInEngine implements EngineHost {
  readonly #options: StandInOptions;
  readonly #models = new Map<string, Model>();
  readonly #contexts = new Map<string, Context>();
  readonly #ended = new Set<(why: string) => void>();
  readonly #unloading = new Set<(modelId: string) => Promise<void>>();
  readonly asked: string[] = [];
  /** A path that can't be loaded. */
  badPath: string | null = null;
  /** Of what is loaded from now on. */
  vocabulary = 'letters';
  /** The next decode fails half way, as where a device is lost for a moment. */
  failsOnce = false;
  #generation = 1;
  #next = 1;
  #up = false;

  constructor(options: StandInOptions = {}) {
    this.#options = options;
  }

  get liveContexts(): number {
    return this.#contexts.size;
  }

  get loadedModels(): number {
    return this.#models.size;
  }

  /** As if it had been killed. */
  crash(why: string): void {
    this.#generation += 1;
    this.#models.clear();
    this.#contexts.clear();
    this.#up = false;
    for (const listener of this.#ended) listener(why);
  }

  async start(): Promise<Result<EngineFacts>> {
    this.#up = true;
    return ok(FACTS);
  }

  facts(): EngineFacts | null {
    return this.#up ? FACTS : null;
  }

  onEnded(listener: (why: string) => void): () => void {
    this.#ended.add(listener);
    return () => this.#ended.delete(listener);
  }

  onUnloading(listener: (modelId: string) => Promise<void>): () => void {
    this.#unloading.add(listener);
    return () => this.#unloading.delete(listener);
  }

  async loadModel({ path, gpuLayers }: LoadRequest): Promise<Result<LoadedModel>> {
    this.asked.push(`load ${path}`);
    await later();
    if (path === this.badPath) return fail('bad_model_file', `${path} is no model.`);
    this.#up = true;
    const there = [...this.#models.values()].find((model) => model.path === path);
    if (there !== undefined) {
      there.users += 1;
      return ok(there);
    }
    const bytes = this.#options.weightsBytes?.(path) ?? 0;
    const model: Model = {
      modelId: this.#id('m'),
      path,
      layers: 2,
      gpuLayers: gpuLayers ?? 2,
      trainedContextTokens: 4096,
      fileBytes: bytes,
      fingerprint: path,
      vocabulary: this.vocabulary,
      beginToken: this.#options.beginToken ?? 1,
      generates: !path.includes('embedding'),
      deviceBytes: bytes,
      hostBytes: 0,
      users: 1,
    };
    this.#models.set(model.modelId, model);
    return ok(model);
  }

  async releaseModel(modelId: string): Promise<Result<void>> {
    const model = this.#models.get(modelId);
    if (model === undefined) return fail('engine_ended', 'It ended.');
    model.users -= 1;
    if (model.users === 0) this.#drop(modelId);
    return ok(undefined);
  }

  async unloadModel(modelId: string): Promise<Result<void>> {
    for (const listener of this.#unloading) await listener(modelId);
    this.#drop(modelId);
    return ok(undefined);
  }

  async estimateContext(): Promise<Result<MemoryUse>> {
    return ok({ deviceBytes: this.#options.contextBytes ?? 0, hostBytes: 0 });
  }

  async createContext(request: ContextRequest): Promise<Result<LiveContext>> {
    this.asked.push('create');
    const model = this.#models.get(request.modelId);
    if (model === undefined) return fail('engine_ended', 'It ended.');
    await later();
    const context: Context = {
      ...shapeOf(request.contextTokens),
      contextId: this.#id('c'),
      modelId: request.modelId,
      deviceBytes: this.#options.contextBytes ?? 0,
      hostBytes: 0,
      held: [],
      pending: null,
    };
    if (!this.#models.has(request.modelId)) return fail('engine_ended', 'It ended.');
    this.#contexts.set(context.contextId, context);
    return ok(context);
  }

  async disposeContext(contextId: string): Promise<Result<void>> {
    this.#contexts.delete(contextId);
    return ok(undefined);
  }

  async tokenize(_modelId: string, text: string): Promise<Result<readonly number[]>> {
    return ok([...text].map((letter) => letter.codePointAt(0) ?? 0));
  }

  async decode(
    request: DecodeRequest,
    onToken: (piece: GeneratedPiece) => void,
    signal: AbortSignal,
  ): Promise<Result<Decoded>> {
    const generation = this.#generation;
    const context = this.#contexts.get(request.contextId);
    if (context === undefined) return fail('engine_ended', 'It ended.');
    if (signal.aborted) return fail('cancelled', 'It was cancelled before it began.');
    const all = context.pending === null ? [...request.tokens] : [context.pending, ...request.tokens];
    if (all.length === 0) return fail('bad_input', 'Nothing to go on from.');
    if (context.held.length + all.length > context.contextTokens) return fail('context_full', 'It is full.');
    const tokens: number[] = [];
    let stopped: Decoded['stopped'] = 'limit';
    if (request.maxTokens === 0) {
      this.asked.push(`read ${request.tokens.length}`);
      context.pending = all.pop() ?? null;
      context.held.push(...all);
    } else {
      context.held.push(...all);
      context.pending = null;
      for (;;) {
        await (this.#options.pace?.() ?? later());
        if (generation !== this.#generation) return fail('engine_ended', 'The engine ended (it was killed).');
        if (signal.aborted) {
          stopped = 'cancelled';
          break;
        }
        if (this.failsOnce && tokens.length === 2) {
          this.failsOnce = false;
          return fail('internal', 'Eval has failed.');
        }
        const token = nextToken(context.held, this.#options.endsEvery ?? 0);
        context.pending = token;
        if (token === EOS) stopped = 'eos';
        if (token === EOS) break;
        tokens.push(token);
        onToken({ token, text: letterOf(token) });
        if (tokens.length >= request.maxTokens) break;
        if (context.held.length + 1 >= context.contextTokens) {
          stopped = 'context_full';
          break;
        }
        context.held.push(token);
        context.pending = null;
      }
    }
    if (context.pending === null && stopped === 'cancelled') context.pending = context.held.pop() ?? null;
    return ok({
      stopped,
      promptTokens: request.tokens.length,
      tokens,
      text: tokens.map(letterOf).join(''),
      stoppedOnEos: stopped === 'eos',
      pendingToken: context.pending,
      heldTokens: context.held.length,
      untold: [],
      promptMs: 1,
      generateMs: 1 + tokens.length,
    });
  }

  async saveState(contextId: string, path: string): Promise<Result<StateRecord>> {
    this.asked.push('save');
    const context = this.#contexts.get(contextId);
    if (context === undefined) return fail('engine_ended', 'It ended.');
    const text = JSON.stringify(context.held);
    try {
      await writeFile(path, text);
    } catch {
      return fail('storage_failed', `${path} can't be written.`);
    }
    return ok({
      ...shapeOf(context.contextTokens),
      path,
      bytes: text.length,
      sha256: sum(text),
      fingerprint: this.#models.get(context.modelId)?.path ?? '',
      tokens: [...context.held],
      pendingToken: context.pending,
    });
  }

  async restoreState(contextId: string, record: StateRecord): Promise<Result<void>> {
    this.asked.push('restore');
    const context = this.#contexts.get(contextId);
    if (context === undefined) return fail('engine_ended', 'It ended.');
    const text = await readFile(record.path, 'utf8').catch(() => '');
    if (sum(text) !== record.sha256) return fail('state_damaged', 'The file is not what was saved.');
    if (record.fingerprint !== this.#models.get(context.modelId)?.path)
      return fail('state_mismatch', 'It is of another model.');
    const held: number[] = JSON.parse(text);
    context.held = held;
    context.pending = record.pendingToken;
    return ok(undefined);
  }

  async clearContext(contextId: string): Promise<Result<void>> {
    const context = this.#contexts.get(contextId);
    if (context === undefined) return fail('engine_ended', 'It ended.');
    context.held = [];
    context.pending = null;
    return ok(undefined);
  }

  async readAhead(path: string): Promise<Result<number>> {
    this.asked.push(`read ahead ${path}`);
    return ok(1);
  }

  async memory(): Promise<Result<EngineMemory>> {
    return ok({ deviceBytes: null, hostBytes: null, residentBytes: 0 });
  }

  async stop(): Promise<void> {
    this.#models.clear();
    this.#contexts.clear();
    this.#up = false;
    this.asked.push('stop');
  }

  #id(kind: string): string {
    this.#next += 1;
    return `${this.#generation}.${kind}${this.#next}`;
  }

  #drop(modelId: string): void {
    this.#models.delete(modelId);
    for (const [id, context] of this.#contexts) if (context.modelId === modelId) this.#contexts.delete(id);
  }
}

/** What the stand-in says after these tokens, in one piece; its end token is part of the conversation. */
export function expectedWords(
  said: readonly number[],
  count: number,
  endsEvery = 0,
): { text: string; tokens: number[] } {
  const held = [...said];
  const tokens: number[] = [];
  while (tokens.length < count) {
    const token = nextToken(held, endsEvery);
    held.push(token);
    tokens.push(token);
    if (token === EOS) break;
  }
  const words = tokens.filter((token) => token !== EOS);
  return { text: words.map(letterOf).join(''), tokens };
}

function nextToken(held: readonly number[], endsEvery: number): number {
  let state = 7;
  for (const token of held) state = (state * 31 + token * 17 + 11) % 1_000_003;
  // Now and then it has said what there was to say.
  return endsEvery > 0 && state % endsEvery === 0 ? EOS : 100 + (state % 900);
}

function letterOf(token: number): string {
  return LETTERS[token % LETTERS.length] ?? ' ';
}

function shapeOf(contextTokens: number): ContextShape {
  return {
    contextTokens,
    batchTokens: 128,
    flashAttention: true,
    cacheTypeK: 'F16',
    cacheTypeV: 'F16',
    threads: 1,
    gpu: 'cpu',
    gpuLayers: 2,
  };
}

function sum(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** A turn of the event loop, in which others go on. */
function later(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
