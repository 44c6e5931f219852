import type { Result } from '../../shared/errors.ts';
import type { EventKind, LandlordEvent } from '../../shared/events.ts';
import type { Ask } from '../../shared/ipc-schema.ts';
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
  /** `kill`: what does not leave is ended; `restartUnit`: then its service is started anew. */
  | { readonly type: 'drain'; readonly kill?: true; readonly restartUnit?: true }
  /** What the state offers under this id. */
  | { readonly type: 'accept'; readonly offer: string }
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
  /** Answers what the state does not hold: plans, history, settings, replays. */
  readonly ask: Ask;
  /** Resolves when the thing is done or refused; a load resolves when loaded, failed or refused. */
  command(command: Command, signal?: AbortSignal): Promise<Result<CommandDone>>;
}

/** A job that is no model and books the memory it will take at most. */
export interface ReservationRequest {
  /** Over 0. */
  readonly bytes: number;
  /** By id or name; null: the largest. */
  readonly device: string | null;
  /** As people know it; null: it has none. */
  readonly name: string | null;
  /** What this process and its descendants hold is the job's; null: unknown, so that nothing of it can be measured. */
  readonly pid: number | null;
}

/** As `GET /api/reservations` lists it. */
export interface Reservation {
  readonly id: string;
  readonly name: string;
  readonly deviceId: string;
  /** Booked. */
  readonly bytes: number;
  /** What its processes hold now; null: not known. */
  readonly measuredBytes: number | null;
  readonly pids: readonly number[];
  /** ISO 8601. */
  readonly since: string;
}

/** closed: by whoever holds it, or its death; ended: somebody else asked for it; stopping: the runtime ends. */
export type ReservationEnd = 'closed' | 'ended' | 'stopping';

export interface Reserved {
  readonly reservation: Reservation;
  /** Called once, whoever ends it. */
  onOver(listener: (how: ReservationEnd) => void): void;
  /** Gives it back at once; again is no error. Default `closed`. */
  release(how?: ReservationEnd): void;
}

/** What the runtime itself offers beyond that, to those who serve it. */
export interface HostApi extends RuntimeApi {
  /**
   * Books memory for a job, making idle models leave for it; held until it is released. Errors:
   * `vram_denied` with the numbers, `unknown_device`, `bad_input`, `cancelled`.
   */
  reserve(request: ReservationRequest, signal: AbortSignal): Promise<Result<Reserved>>;
  /** Oldest first. */
  reservations(): readonly Reservation[];
  /** Ends one that another holds; false: there is none of this id. */
  endReservation(id: string): boolean;
  /** Takes what another process of ours saw into the log. */
  report(event: ReportedEvent): Promise<void>;
}
