import type { Result } from '../../shared/errors.ts';
import type { EventKind, LandlordEvent } from '../../shared/events.ts';
import type { LandlordState } from '../../shared/state.ts';

/** What a person or a program may ask of the runtime; the HTTP routes, the CLI and the tray all go through this. */
export type Command =
  | { readonly type: 'load'; readonly model: string; readonly force: boolean }
  | { readonly type: 'unload'; readonly model: string; readonly force: boolean }
  | { readonly type: 'pin'; readonly model: string }
  | { readonly type: 'unpin'; readonly model: string }
  /** `forMs` null: until woken. */
  | { readonly type: 'sleep'; readonly forMs: number | null }
  | { readonly type: 'wake' }
  | { readonly type: 'drain' }
  /** `freeBytes` null: everything that may leave. */
  | { readonly type: 'makeRoom'; readonly freeBytes: number | null; readonly deviceId: string | null }
  | { readonly type: 'restore' }
  | {
      readonly type: 'guards';
      readonly mode: 'on' | 'observe' | 'pause';
      readonly forMs: number | null;
      readonly backend: string | null;
    };

export interface CommandDone {
  /** One sentence: what was done, with figures. */
  readonly message: string;
  readonly numbers?: Readonly<Record<string, number | null>>;
  /** Models touched. */
  readonly models?: readonly string[];
}

export interface EventQuery {
  readonly afterId?: number;
  readonly beforeId?: number;
  readonly kinds?: readonly EventKind[];
  readonly model?: string;
  /** Epoch ms. */
  readonly since?: number;
  /** 1–5000, default 200; the newest are kept. */
  readonly limit?: number;
}

/**
 * What another process of ours has to tell: a turn that went through without its lane, or elsewhere
 * because the lane was in use (rule 21). It knows lanes, not the names of our backends.
 */
export interface ReportedEvent {
  readonly kind: 'fail_open' | 'deflected';
  /** One sentence for a person. */
  readonly reason: string;
  /** `127.0.0.1_8080`. */
  readonly lane: string | null;
  readonly session: string | null;
  /** As the backend names it. */
  readonly model: string | null;
  readonly numbers: Readonly<Record<string, number | null>>;
}

export interface RuntimeApi {
  state(): LandlordState;
  /** Called after each change, with the new state. Returns its own undo. */
  onState(listener: (state: LandlordState) => void): () => void;
  onEvent(listener: (event: LandlordEvent) => void): () => void;
  /** Oldest first. */
  events(query: EventQuery): Promise<Result<readonly LandlordEvent[]>>;
  /** Resolves when the thing is done or refused; a load resolves when loaded, failed or refused. */
  command(command: Command, signal?: AbortSignal): Promise<Result<CommandDone>>;
}

/** What the runtime itself offers beyond that, to those who serve it. */
export interface HostApi extends RuntimeApi {
  /** Takes what another process of ours saw into the log. */
  report(event: ReportedEvent): void;
}
