import type { Result } from '../../../shared/errors.ts';
import type { BackendKind } from '../../../shared/settings.ts';
import type { ModelStatus } from '../../../shared/state.ts';
import type { ProcessIdentity } from '../process/identity.ts';
import type { OwnProcess } from './own/supervisor.ts';
import type { SlotKeeper } from './router-slots.ts';

/**
 * One inference server, watched without touching it (rule 12) and acted on only when asked.
 *
 *   unloaded ─► loading ─► loaded ⇄ sleeping
 *       ▲          │          │        │
 *       └──────────┴─ stopping ◄───────┘      failed: a load that ended badly, or a crash we saw
 */
export interface ObservedModel {
  /** The backend's own name for it. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly status: ModelStatus;
  /** A request is running or waiting on it; null: can't be told without disturbing it. */
  readonly busy: boolean | null;
  /** Monotonic ms of the last moment it was seen busy, or found to have been used (so: not before the end of its last request); null: never seen. */
  readonly lastBusyAtMs: number | null;
  /** Monotonic ms since when it is in `status`; when we first saw it, if it was so before. */
  readonly sinceMs: number;
  /** Command line it runs with, as the backend tells; null: not told. */
  readonly args: readonly string[] | null;
  /** Path of its weights, where the command line or the backend names it. */
  readonly modelPath: string | null;
  readonly port: number | null;
  /** Its process, once proven; null: not proven, so no signal and no per-process figure. */
  readonly process: ProcessIdentity | null;
  /** Why `process` is null while it is loaded, in a sentence. */
  readonly processNote: string | null;
  readonly contextTokens: number | null;
  readonly loadProgress: number | null;
  /** Memory the backend itself claims for it: its own estimate, never a measurement. */
  readonly reportedBytes: number | null;
  /** Bytes it holds by an exact account of every buffer, as only our own engine keeps one. Left out or null: none. */
  readonly countedBytes?: number | null;
  /** Its weights on disk, where the backend tells them: less than it takes. Left out or null: not told. */
  readonly weightsBytes?: number | null;
  /** Monotonic ms at which its backend lets it go unless it is used again. Left out or null: not told, or never. */
  readonly expiresAtMs?: number | null;
  /** Seconds → ms the backend waits before it force-stops a busy one (`stop-timeout`, default 10 s); null: unknown. */
  readonly stopTimeoutMs: number | null;
  /** On another machine, or nowhere that can be told: no device here is its. Left out: here. */
  readonly isElsewhere?: boolean;
  /** Its server can't let it go on request. Left out: it can. */
  readonly isFixed?: boolean;
  /** Its server serves nothing else, whatever a request calls it. Left out: it may. */
  readonly isOnly?: boolean;
  /** Why it failed, where `status` is failed. */
  readonly failure: string | null;
}

export interface BackendSnapshot {
  readonly name: string;
  readonly kind: BackendKind;
  readonly url: string;
  readonly status: 'up' | 'down' | 'unknown';
  readonly sinceMs: number | null;
  /** A sentence: what answered wrongly, and what to do. */
  readonly error: string | null;
  readonly version: string | null;
  readonly models: readonly ObservedModel[];
  /** Models list as of this monotonic time. */
  readonly takenAtMs: number;
  /** Whether busy can be told without disturbing a model. */
  readonly tellsBusy: boolean;
  /** What this backend does not tell, in sentences. */
  readonly notes: readonly string[];
  /** A server of one model, which is there for as long as its server runs. Left out: of many, or not known. */
  readonly isSingle?: boolean;
  /** Its server's process, where that is ours to run. */
  readonly own?: OwnProcess;
}

/** Why `onChange` was called: lets the loop react to a loading model at once and not on its tick. */
export interface BackendChange {
  readonly backend: string;
  readonly model: string | null;
  readonly what:
    | 'up'
    | 'down'
    | 'loading'
    | 'loaded'
    | 'sleeping'
    | 'unloaded'
    /** A load ended badly, or stopped moving. */
    | 'load_failed'
    /** A loaded one ended badly and nobody here had asked for it. */
    | 'crashed'
    | 'busy'
    | 'idle'
    | 'list';
  readonly atMs: number;
}

/** `detail` and `why` are clauses without a full stop. Used since it was last looked at counts as busy: it is not idle yet. */
export type BusyAnswer =
  | { readonly busy: false }
  | { readonly busy: true; readonly detail: string }
  | { readonly busy: null; readonly why: string };

export interface Backend {
  readonly name: string;
  readonly kind: BackendKind;
  readonly url: string;
  start(onChange: (change: BackendChange) => void): void;
  stop(): Promise<void>;
  snapshot(): BackendSnapshot;
  /** Resolves when the backend has accepted the load, not when it is loaded. */
  load(model: string, signal: AbortSignal): Promise<Result<void>>;
  /** Resolves when the backend has accepted the unload, not when memory is back. */
  unload(model: string, signal: AbortSignal): Promise<Result<void>>;
  /** Asked only just before an eviction: it may reset the model's own sleep timer. */
  confirmIdle(model: string, signal: AbortSignal): Promise<BusyAnswer>;
  /** Reads its state anew at once, for instance after a signal. */
  refresh(): Promise<void>;
  /** Starts its server where that is ours and waits for its first use. */
  wake?(): void;
  /** Ends its server and starts it anew, where that is ours. */
  restart?(): Promise<void>;
  /** Conversations it can save and bring back; left out: none. */
  readonly slots?: SlotKeeper;
}
