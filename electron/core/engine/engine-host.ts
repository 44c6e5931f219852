import type { Result } from '../../../shared/errors.ts';

/**
 * The embedded engine as the rest of the runtime sees it: one child process around node-llama-cpp,
 * which may crash in native code without taking the runtime with it.
 *
 *   stopped ─► starting ─► up ─► ended (crash, kill, stop) ─► starting (at the next call)
 *
 * What was in a child that ended is gone: its models and contexts with it. Whoever uses the host keeps
 * the tokens and the saved states, and makes contexts anew.
 */
export interface EngineHost {
  /** Forgets nothing that is loaded; starts a child where none runs. Errors: `engine_unavailable`. */
  start(): Promise<Result<EngineFacts>>;
  /** null: no child runs. */
  facts(): EngineFacts | null;
  /** Called each time a child has ended that was not asked to, with why in one sentence. Returns its own undo. */
  onEnded(listener: (why: string) => void): () => void;

  /** Once a path, layers and device: asking again for what is loaded answers with it. Errors: `bad_model_file`, `engine_out_of_memory`, `engine_ended`, `cancelled`. */
  loadModel(request: LoadRequest, signal: AbortSignal): Promise<Result<LoadedModel>>;
  /** Ends its contexts too. Memory is given back when this resolves. */
  unloadModel(modelId: string): Promise<Result<void>>;

  /** One sequence, pinned threads, a constant batch size. Errors: `engine_out_of_memory`, `unknown_model`, `engine_ended`. */
  createContext(request: ContextRequest): Promise<Result<LiveContext>>;
  disposeContext(contextId: string): Promise<Result<void>>;

  /** Tokens of a text as the model reads it. */
  tokenize(modelId: string, text: string, special: boolean): Promise<Result<readonly number[]>>;
  /**
   * Evaluates `tokens` after what the context holds, then generates. Cancelled within a token, also
   * while a long prompt is read (it goes in chunks). Errors: `context_full`, `engine_ended`, `cancelled`
   * (with what was generated up to then told through `onToken`).
   */
  decode(
    request: DecodeRequest,
    onToken: (piece: GeneratedPiece) => void,
    signal: AbortSignal,
  ): Promise<Result<Decoded>>;

  /** Writes the context's state aside, syncs and renames it; the record holds what must match to load it again. */
  saveState(contextId: string, path: string): Promise<Result<StateRecord>>;
  /**
   * Checks the record against the file and the context first: a truncated file would abort the child.
   * Errors: `state_mismatch`, `state_damaged` (then the context is as it was), `engine_ended`.
   */
  restoreState(contextId: string, record: StateRecord): Promise<Result<void>>;
  /** Empties a context in place, for another agent's state of the same model. */
  clearContext(contextId: string): Promise<Result<void>>;

  /** Reads a model's file into the page cache, in idle time. */
  readAhead(path: string, signal: AbortSignal): Promise<Result<void>>;

  /** Ends the child in order; its memory is given back when this resolves. */
  stop(): Promise<void>;
}

export interface EngineFacts {
  readonly pid: number;
  /** `cpu`, `vulkan`, `cuda`, `metal`. */
  readonly gpu: string;
  /** As the engine names them; empty on the CPU. */
  readonly gpuDevices: readonly string[];
  /** Threads every decode uses: pinned, since another number gives other last bits. */
  readonly threads: number;
  readonly version: string;
}

export interface LoadRequest {
  readonly path: string;
  /** Layers on the device; null: all. 0 on the CPU. */
  readonly gpuLayers: number | null;
  readonly onProgress?: (share: number) => void;
}

export interface LoadedModel {
  readonly modelId: string;
  readonly path: string;
  readonly layers: number;
  readonly gpuLayers: number;
  readonly trainedContextTokens: number | null;
  readonly fileBytes: number;
  /** As the engine counts them; null: it does not tell. */
  readonly deviceBytes: number | null;
  readonly hostBytes: number | null;
  /** Of the file's header and size, so that a state of another model is never loaded into it. */
  readonly fingerprint: string;
}

export interface ContextRequest {
  readonly modelId: string;
  readonly contextTokens: number;
  /** Default 512. */
  readonly batchTokens?: number;
}

export interface LiveContext {
  readonly contextId: string;
  readonly modelId: string;
  readonly contextTokens: number;
  /** KV and compute buffers, as the engine counts them; null: it does not tell. */
  readonly deviceBytes: number | null;
  readonly hostBytes: number | null;
}

export interface DecodeRequest {
  readonly contextId: string;
  /** What is new: the prompt's tokens, after the pending one that the last decode left. */
  readonly tokens: readonly number[];
  readonly maxTokens: number;
  /** Greedy at 0, which is the default. */
  readonly temperature?: number;
  readonly seed?: number;
}

export interface GeneratedPiece {
  readonly token: number;
  /** Whole characters only: a cut UTF-8 sequence waits for its rest. */
  readonly text: string;
}

export interface Decoded {
  readonly promptTokens: number;
  /** What was generated, the end token not among them. */
  readonly tokens: readonly number[];
  readonly text: string;
  readonly stoppedOnEos: boolean;
  /** The last token is not in the KV yet: it goes first at the next decode. null: there is none. */
  readonly pendingToken: number | null;
  readonly promptMs: number;
  readonly generateMs: number;
}

export interface StateRecord {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly fingerprint: string;
  /** Tokens whose KV is in it. */
  readonly tokens: readonly number[];
  readonly pendingToken: number | null;
  readonly contextTokens: number;
  readonly batchTokens: number;
  readonly flashAttention: boolean;
  readonly cacheTypeK: string;
  readonly cacheTypeV: string;
  readonly threads: number;
  readonly gpu: string;
  readonly gpuLayers: number;
}
