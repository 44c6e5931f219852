import type { Result } from '../../../../shared/errors.ts';
import type { BackendKind } from '../../../../shared/settings.ts';
import type { BusyAnswer } from '../backend.ts';
import type { HttpClient } from '../http.ts';
import type { ToldModel } from '../told-model.ts';
import type { ToldRules } from '../told-state.ts';

/** What a request of a dialect may use. */
export interface Ask {
  readonly http: HttpClient;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Identity {
  /** As the server tells; null: it does not. */
  readonly version: string | null;
}

/**
 * How one kind of server is spoken to. Everything but `load` and `unload` only reads, and reads nothing
 * that loads, wakes or prolongs a model (rule 12). One is made for each backend and may keep what it has read.
 */
export interface Dialect extends ToldRules {
  readonly kind: BackendKind;
  /** For sentences: `Ollama`. */
  readonly title: string;
  /** Programs that may be the server itself, so that a child of it can be proven. */
  readonly isServer: (command: readonly string[]) => boolean;
  /** Proves the kind by what is answered, and learns the version. Errors: `backend_refused`, with a sentence. */
  identify(ask: Ask): Promise<Result<Identity>>;
  /** Errors: `backend_refused`, with a sentence; a failure to reach it carries `failed` in `reach`. */
  read(ask: Ask): Promise<Reading>;
  /** A stream that says when to read again, or what is at work; null: there is none. */
  readonly events: null | {
    readonly path: string;
    /** True: something has changed, so the list is read again or the snapshot looked at anew. */
    onMessage(data: string): 'list' | 'busy' | null;
    onClosed(): void;
  };
  /** Resolves when the load is over; null: it can't be asked for. */
  readonly load: null | ((ask: Ask, model: ToldModel) => Promise<Result<void>>);
  readonly unload: null | ((ask: Ask, model: ToldModel) => Promise<Result<void>>);
  /** Why it can't load or unload, as a sentence that says what to do. */
  readonly cannot: string | null;
  /** Asked just before an eviction, beyond what is told anyway; null: there is nothing to ask. */
  confirmIdle(ask: Ask, model: ToldModel, port: number | null): Promise<BusyAnswer | null>;
  /** Why a loaded model has no process to prove. */
  readonly noProcess: string;
  /** What this server does not tell, in sentences. */
  notes(models: readonly ToldModel[]): readonly string[];
  /** Forgets what it keeps: what answers now may be another server. */
  forget(): void;
}

export type Reading =
  | { readonly ok: true; readonly models: readonly ToldModel[] }
  | {
      readonly ok: false;
      readonly message: string;
      /** `gone`: nothing listens. `down`: it can't be reached. `odd`: it answers wrongly, or late. */
      readonly reach: 'gone' | 'down' | 'odd';
    };
