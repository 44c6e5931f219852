import { realpath, stat } from 'node:fs/promises';
import type { Llama, LlamaModel } from 'node-llama-cpp';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import type { EngineFacts, LoadedModel } from '../engine-host.ts';
import { fingerprintOf } from './fingerprint.ts';
import type { LlamaLog } from './llama-log.ts';
import { generates, vocabularyOf } from './model-facts.ts';

type Library = typeof import('node-llama-cpp');

export interface HeldModel {
  readonly facts: LoadedModel;
  readonly model: LlamaModel;
}

interface Entry {
  readonly modelId: string;
  readonly key: string;
  readonly loading: Promise<Result<HeldModel>>;
  /** Whoever waits for the load, told how far it is. */
  readonly tellers: Set<(share: number) => void>;
  readonly abort: AbortController;
  users: number;
  held: HeldModel | null;
}

/** GGUF files that are loaded, each once a number of layers, and how many use them. */
export class ModelStore {
  readonly #library: Library;
  readonly #llama: Llama;
  readonly #log: LlamaLog;
  readonly #facts: EngineFacts;
  readonly #generation: number;
  readonly #entries = new Map<string, Entry>();
  readonly #leaving = new Map<string, Entry>();
  #nextId = 1;

  constructor(library: Library, llama: Llama, log: LlamaLog, facts: EngineFacts, generation: number) {
    this.#library = library;
    this.#llama = llama;
    this.#log = log;
    this.#facts = facts;
    this.#generation = generation;
  }

  /** One that no longer waits is one user less; the load itself goes on while another waits for it. */
  async load(
    path: string,
    gpuLayers: number | null,
    signal: AbortSignal,
    tell: (share: number) => void,
  ): Promise<Result<LoadedModel>> {
    // By whatever link it is named, it is loaded once.
    const real = await realpath(path).catch(() => path);
    const entry = this.#entry(real, gpuLayers);
    entry.users += 1;
    entry.tellers.add(tell);
    const cancelled = Promise.withResolvers<null>();
    const onAbort = (): void => cancelled.resolve(null);
    signal.addEventListener('abort', onAbort, { once: true });
    const result = await Promise.race([entry.loading, cancelled.promise]);
    signal.removeEventListener('abort', onAbort);
    entry.tellers.delete(tell);
    if (result === null) {
      entry.users -= 1;
      if (entry.users === 0) {
        this.#entries.delete(entry.modelId);
        entry.abort.abort();
        await this.#disposed(entry);
      }
      return fail('cancelled', 'The load was cancelled.');
    }
    if (!result.ok) return result;
    // A small file is loaded before the library has told how far it is.
    tell(1);
    return ok(result.value.facts);
  }

  get(modelId: string): Result<HeldModel> {
    const held = this.#entries.get(modelId)?.held ?? null;
    return held === null ? fail('unknown_model', 'The engine has no such model loaded.') : ok(held);
  }

  /** True: nobody uses it any more, so it is to be unloaded. Unknown is not. */
  release(modelId: string, force: boolean): Result<boolean> {
    const entry = this.#entries.get(modelId);
    if (entry === undefined) return ok(false);
    entry.users = force ? 0 : Math.max(0, entry.users - 1);
    if (entry.users > 0) return ok(false);
    // From here on a load of the same file is a new one.
    this.#entries.delete(modelId);
    this.#leaving.set(modelId, entry);
    return ok(true);
  }

  async unload(modelId: string): Promise<void> {
    const entry = this.#leaving.get(modelId);
    this.#leaving.delete(modelId);
    if (entry !== undefined) await this.#disposed(entry);
  }

  async #disposed(entry: Entry): Promise<void> {
    const result = await entry.loading;
    if (result.ok) await result.value.model.dispose();
  }

  #entry(path: string, gpuLayers: number | null): Entry {
    const key = JSON.stringify([path, gpuLayers]);
    const present = [...this.#entries.values()].find((entry) => entry.key === key);
    if (present !== undefined) return present;
    const modelId = `${this.#generation}.m${this.#nextId}`;
    this.#nextId += 1;
    const abort = new AbortController();
    const tellers = new Set<(share: number) => void>();
    const loading = this.#load(modelId, path, gpuLayers, abort.signal, (share) => {
      for (const tell of tellers) tell(share);
    });
    const entry: Entry = { modelId, key, loading, tellers, abort, users: 0, held: null };
    this.#entries.set(modelId, entry);
    void loading.then((result) => {
      if (result.ok) entry.held = result.value;
      else this.#entries.delete(modelId);
    });
    return entry;
  }

  async #load(
    modelId: string,
    path: string,
    gpuLayers: number | null,
    signal: AbortSignal,
    tell: (share: number) => void,
  ): Promise<Result<HeldModel>> {
    const file = await stat(path).catch(() => null);
    if (file === null || !file.isFile()) {
      return fail('bad_model_file', `${path} is not there, or can't be read. Check the path of the model.`);
    }
    this.#log.forget();
    try {
      const fingerprint = await fingerprintOf(path);
      const model = await this.#llama.loadModel({
        modelPath: path,
        gpuLayers: this.#facts.gpu === 'cpu' ? 0 : (gpuLayers ?? 'max'),
        loadSignal: signal,
        onLoadProgress: tell,
      });
      const { ram, vram } = model.memoryUsage;
      const facts: LoadedModel = {
        modelId,
        path,
        layers: model.fileInsights.totalLayers,
        gpuLayers: model.gpuLayers,
        trainedContextTokens: model.trainContextSize > 0 ? model.trainContextSize : null,
        fileBytes: file.size,
        deviceBytes: this.#facts.gpu === 'cpu' ? null : vram,
        hostBytes: ram,
        fingerprint,
        generates: generates(model),
        vocabulary: vocabularyOf(model),
        beginToken: model.tokens.shouldPrependBosToken ? model.tokens.bos : null,
      };
      return ok({ facts, model });
    } catch (thrown) {
      if (signal.aborted) return fail('cancelled', 'The load was cancelled.');
      const said = messageOf(thrown);
      const why = this.#log.why(said);
      if (thrown instanceof this.#library.InsufficientMemoryError || this.#log.isMemory(said)) {
        return fail(
          'engine_out_of_memory',
          `There is not enough memory for ${path} (${why}). Unload another model, or keep fewer of its layers on the device.`,
          { fileBytes: file.size, gpuLayers },
        );
      }
      return fail('bad_model_file', `${path} can't be loaded (${why}). Is it a whole GGUF file?`, {
        fileBytes: file.size,
      });
    }
  }
}
