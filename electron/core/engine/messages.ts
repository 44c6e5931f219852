import type { LandlordError, Result } from '../../../shared/errors.ts';
import type {
  ChatAnswer,
  ChatDelta,
  ChatRequest,
  CompletionRequest,
  Embedded,
  EmbedRequest,
} from './engine-chat.ts';
import type {
  ContextRequest,
  Decoded,
  DecodeRequest,
  EngineFacts,
  EngineMemory,
  GeneratedPiece,
  LiveContext,
  LoadedModel,
  MemoryUse,
  StateRecord,
} from './engine-host.ts';

/**
 * What the runtime and its engine child say to each other, by structured clone.
 *
 *   start ─► up ─► call ─► tell* ─► answer      stop ─► (the child ends)
 *     └──► unavailable   └ cancel ┘             ping ─► pong
 */
export interface EngineOptions {
  readonly gpu: GpuChoice;
  /** Of every decode; null: one less than the machine has cores for arithmetic. */
  readonly threads: number | null;
  /** Begins every id, so that one of a child that ended is told from one of the child that runs. */
  readonly generation: number;
}

export type GpuChoice = 'auto' | 'cpu' | 'cuda' | 'vulkan' | 'metal';

/** Each call once: what it asks, what it tells while it runs, what it answers. */
export interface EngineCalls {
  readonly loadModel: {
    readonly ask: { readonly path: string; readonly gpuLayers: number | null };
    /** Share done. */
    readonly tell: number;
    readonly answer: LoadedModel;
  };
  /** `force`: whoever uses it. Answers whether it is unloaded now. */
  readonly unloadModel: {
    readonly ask: { readonly modelId: string; readonly force: boolean };
    readonly tell: never;
    readonly answer: boolean;
  };
  readonly estimateContext: {
    readonly ask: ContextRequest;
    readonly tell: never;
    readonly answer: MemoryUse;
  };
  readonly createContext: {
    readonly ask: ContextRequest;
    readonly tell: never;
    readonly answer: LiveContext;
  };
  readonly disposeContext: { readonly ask: string; readonly tell: never; readonly answer: null };
  readonly clearContext: { readonly ask: string; readonly tell: never; readonly answer: null };
  readonly tokenize: {
    readonly ask: { readonly modelId: string; readonly text: string; readonly special: boolean };
    readonly tell: never;
    readonly answer: readonly number[];
  };
  readonly decode: {
    readonly ask: DecodeRequest;
    readonly tell: GeneratedPiece;
    readonly answer: Decoded;
  };
  readonly saveState: {
    readonly ask: { readonly contextId: string; readonly path: string };
    readonly tell: never;
    readonly answer: StateRecord;
  };
  readonly restoreState: {
    readonly ask: { readonly contextId: string; readonly record: StateRecord };
    readonly tell: never;
    readonly answer: null;
  };
  readonly chat: { readonly ask: ChatRequest; readonly tell: ChatDelta; readonly answer: ChatAnswer };
  readonly complete: {
    readonly ask: CompletionRequest;
    readonly tell: ChatDelta;
    readonly answer: ChatAnswer;
  };
  readonly openEmbeddings: { readonly ask: string; readonly tell: never; readonly answer: MemoryUse };
  readonly embed: { readonly ask: EmbedRequest; readonly tell: never; readonly answer: Embedded };
  readonly readAhead: { readonly ask: string; readonly tell: never; readonly answer: number };
  readonly memory: { readonly ask: null; readonly tell: never; readonly answer: EngineMemory };
}

export type EngineOp = keyof EngineCalls;

export type CallMessage<Op extends EngineOp = EngineOp> = {
  readonly [One in Op]: {
    readonly type: 'call';
    readonly id: number;
    readonly op: One;
    readonly ask: EngineCalls[One]['ask'];
  };
}[Op];

export type ToEngine =
  | { readonly type: 'start'; readonly options: EngineOptions }
  | CallMessage
  /** The call still answers: with `cancelled`, or with what was done until then. */
  | { readonly type: 'cancel'; readonly id: number }
  | { readonly type: 'ping' }
  | { readonly type: 'stop' };

export type FromEngine =
  | { readonly type: 'up'; readonly facts: EngineFacts }
  | { readonly type: 'unavailable'; readonly error: LandlordError }
  | { readonly type: 'tell'; readonly id: number; readonly told: unknown }
  | { readonly type: 'answer'; readonly id: number; readonly result: Result<unknown> }
  /** `stepMs`: how long the longest piece of native work that runs now has been going on. */
  | { readonly type: 'pong'; readonly stepMs: number };

/** A running call, as its handler in the child sees it. */
export interface RunningCall<Op extends EngineOp> {
  readonly signal: AbortSignal;
  tell(told: EngineCalls[Op]['tell']): void;
}

export type EngineHandlers = {
  readonly [Op in EngineOp]: (
    ask: EngineCalls[Op]['ask'],
    call: RunningCall<Op>,
  ) => Promise<Result<EngineCalls[Op]['answer']>>;
};
