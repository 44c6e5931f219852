import type { Result } from '../../../shared/errors.ts';

/**
 * The embedded engine as the rest of the runtime sees it: one child process around node-llama-cpp,
 * which may crash in native code without taking the runtime with it.
 *
 *   stopped ─► starting ─► up ─► ended (crash, kill, hang, stop) ─► starting (at the next call)
 *
 * What was in a child that ended is gone: its models and contexts with it, and their ids answer
 * `engine_ended` from then on. Whoever uses the host keeps the tokens and the saved states, and makes
 * contexts anew. A context does one thing at a time, in the order asked; different contexts run side by
 * side, a token each in turn where the cores don't suffice for all.
 */
export interface EngineHost {
  /** Starts a child where none runs; every call does so by itself. Errors: `engine_unavailable`. */
  start(): Promise<Result<EngineFacts>>;
  /** null: no child runs. */
  facts(): EngineFacts | null;
  /** Called each time a child has ended that was not asked to, with why in one sentence. Returns its own undo. */
  onEnded(listener: (why: string) => void): () => void;
  /**
   * Called and waited for before a model is unloaded whoever uses it (`unloadModel`): the last moment to
   * save the states of its contexts. Returns its own undo.
   */
  onUnloading(listener: (modelId: string) => Promise<void>): () => void;

  /**
   * Loaded once a path and number of layers; asking again counts one more user of what is loaded.
   * Errors: `bad_model_file`, `engine_out_of_memory`, `engine_unavailable`, `engine_ended`, `cancelled`.
   */
  loadModel(request: LoadRequest, signal: AbortSignal): Promise<Result<LoadedModel>>;
  /** One user less; with the last the model is unloaded. Its memory is given back when this resolves. */
  releaseModel(modelId: string): Promise<Result<void>>;
  /** Unloads it whoever uses it, its contexts too. Its memory is given back when this resolves; unknown is no error. */
  unloadModel(modelId: string): Promise<Result<void>>;

  /** What a context would take, by a run of llama.cpp that allocates nothing. Errors as for `createContext`. */
  estimateContext(request: ContextRequest): Promise<Result<MemoryUse>>;
  /**
   * One sequence, pinned threads, a constant batch size. A size that can't fit is refused before
   * llama.cpp is asked, which could abort. Errors: `bad_input`, `engine_out_of_memory`, `unknown_model`, `engine_ended`.
   */
  createContext(request: ContextRequest): Promise<Result<LiveContext>>;
  /** Unknown is no error. */
  disposeContext(contextId: string): Promise<Result<void>>;

  /** Tokens of a text as the model reads it; `special`: text such as `<s>` means the token. No begin token is put before. */
  tokenize(modelId: string, text: string, special: boolean): Promise<Result<readonly number[]>>;
  /** Evaluates the pending token and `tokens` after what the context holds, then generates. See {@link Decoded}. */
  decode(
    request: DecodeRequest,
    onToken: (piece: GeneratedPiece) => void,
    signal: AbortSignal,
  ): Promise<Result<Decoded>>;

  /** Writes the context's state aside, syncs and renames it; the record holds what must match to load it again. Errors: `storage_failed`, `engine_ended`. */
  saveState(contextId: string, path: string): Promise<Result<StateRecord>>;
  /**
   * Puts a saved state in the place of what the context holds. The record is checked against the file
   * and the context first, since a truncated file would abort the child: with `state_mismatch` and
   * `state_damaged` the context is as it was. Where loading itself fails (`internal`) the context is
   * made anew under its id, and is empty. A larger context than the state's own is right, a smaller one not.
   */
  restoreState(contextId: string, record: StateRecord): Promise<Result<void>>;
  /** Empties a context in place, its pending token too, for another agent of the same model. */
  clearContext(contextId: string): Promise<Result<void>>;

  /** Reads a model's file into the page cache while nothing is decoded. Answers with the bytes read: 0 where memory is short. */
  readAhead(path: string, signal: AbortSignal): Promise<Result<number>>;
  /** What the child holds, by llama.cpp's own account. */
  memory(): Promise<Result<EngineMemory>>;

  /** Ends the child in order; its memory is given back when this resolves. The next call starts another. */
  stop(): Promise<void>;
}

export interface EngineFacts {
  readonly pid: number;
  readonly gpu: 'cpu' | 'cuda' | 'vulkan' | 'metal';
  /** As the engine names them; empty on the CPU. */
  readonly gpuDevices: readonly string[];
  /** Threads every decode uses: pinned, since another number gives other last bits. */
  readonly threads: number;
  /** Of node-llama-cpp and the llama.cpp in it. */
  readonly version: string;
}

/** null: the engine does not tell. */
export interface MemoryUse {
  readonly deviceBytes: number | null;
  readonly hostBytes: number | null;
}

export interface EngineMemory extends MemoryUse {
  /** Resident bytes of the child, mapped weights among them. */
  readonly residentBytes: number;
}

export interface LoadRequest {
  readonly path: string;
  /** Layers on the device; null: all. None on the CPU whatever is asked. */
  readonly gpuLayers: number | null;
  /** Share done, 0–1. */
  readonly onProgress?: (share: number) => void;
}

export interface LoadedModel extends MemoryUse {
  readonly modelId: string;
  /** Links followed. */
  readonly path: string;
  readonly layers: number;
  readonly gpuLayers: number;
  readonly trainedContextTokens: number | null;
  readonly fileBytes: number;
  /** Of the file's header and size, so that a state of another model is never loaded into it. */
  readonly fingerprint: string;
  /** Of its words alone: two models with the same one read each other's tokens. */
  readonly vocabulary: string;
  /** Put before a conversation's first token; null: the model wants none. */
  readonly beginToken: number | null;
  /** False: it makes embeddings only, and has no chats, texts or agents. */
  readonly generates: boolean;
}

export type CacheType = 'F16' | 'F32' | 'BF16' | 'Q8_0' | 'Q4_0';

export interface ContextRequest {
  readonly modelId: string;
  readonly contextTokens: number;
  /** Prompt tokens read at once, 32–4096; also how often a cancellation is looked for. Default 128 on the CPU, else 512. */
  readonly batchTokens?: number;
  /** Default: on where the model has it. */
  readonly flashAttention?: boolean;
  /** Default F16; V of another type needs flash attention. */
  readonly cacheTypeK?: CacheType;
  readonly cacheTypeV?: CacheType;
}

/** What a saved state must meet again to go on bit for bit. */
export interface ContextShape {
  readonly contextTokens: number;
  readonly batchTokens: number;
  readonly flashAttention: boolean;
  readonly cacheTypeK: CacheType;
  readonly cacheTypeV: CacheType;
  readonly threads: number;
  readonly gpu: string;
  readonly gpuLayers: number;
}

/** Its bytes are those of KV and compute buffers. */
export interface LiveContext extends MemoryUse, ContextShape {
  readonly contextId: string;
  readonly modelId: string;
}

export interface DecodeRequest {
  readonly contextId: string;
  /** What is new: the prompt's tokens, without the pending one that the last decode left. */
  readonly tokens: readonly number[];
  /** 0: only read the prompt; its last token is the pending one then. */
  readonly maxTokens: number;
  /** Greedy at 0, which is the default. */
  readonly temperature?: number;
  /** Of this call; give each call of a conversation its own, or they repeat each other's draws. */
  readonly seed?: number;
  /** What the decode before left untold, where this one goes on in the same text. */
  readonly untold?: readonly number[];
}

export interface GeneratedPiece {
  readonly token: number;
  /** Whole characters only: a cut UTF-8 sequence waits for its rest, so this may be empty. */
  readonly text: string;
}

/**
 * How a decode ended. Reaching the end of the context or a cancellation is an end as any other: what was
 * read and generated until then stands, in the context and here.
 *
 * Errors: `context_full` where the prompt does not fit (nothing of it was read; `numbers` has
 * contextTokens, heldTokens and promptTokens), `bad_input`, `unknown_model`, `engine_ended`.
 */
export interface Decoded {
  readonly stopped: 'eos' | 'limit' | 'context_full' | 'cancelled';
  /** Of the request's tokens, those that were read (the pending one among them where it became that). */
  readonly promptTokens: number;
  /** What was generated, the end token not among them. */
  readonly tokens: readonly number[];
  readonly text: string;
  readonly stoppedOnEos: boolean;
  /** Last of `tokens`, or the end token, or a prompt's last: not in the KV yet, read first at the next decode. null: there is none. */
  readonly pendingToken: number | null;
  /** In the KV now. */
  readonly heldTokens: number;
  /** Last tokens whose text is not told yet, being part of a character. */
  readonly untold: readonly number[];
  readonly promptMs: number;
  readonly generateMs: number;
}

export interface StateRecord extends ContextShape {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly fingerprint: string;
  /** Tokens whose KV is in it. */
  readonly tokens: readonly number[];
  readonly pendingToken: number | null;
}
