import type { LandlordError, Result } from '../../../../shared/errors.ts';
import type { KvPlace } from '../../../../shared/state.ts';
import type { Denial } from '../../ledger/booking.ts';

/** Why the desk does not do something; with `denial`, it is for want of memory. */
export interface DeskRefusal {
  readonly error: LandlordError;
  readonly denial: Denial | null;
}

export type DeskResult<T> = Result<T, DeskRefusal>;

export interface RegisterRequest {
  readonly agent: string;
  /** Absolute. */
  readonly path: string;
  /** Whoever holds it: gone with the last holder. null: until it is unregistered. */
  readonly holder: object | null;
  readonly fit: boolean;
  /** null: by the config's `agents`, else interactive. */
  readonly class: 'interactive' | 'batch' | null;
  /** null: the desk's own. */
  readonly contextTokens: number | null;
}

export interface AgentLine {
  readonly agent: string;
  readonly path: string;
  /** Device bytes booked for it; weights that agents share count with the one that came first. */
  readonly bookedBytes: number;
  readonly kv: KvPlace;
  readonly contextTokens: number;
  /** On the device; null: not loaded, or all of them. */
  readonly gpuLayers: number | null;
}

export interface DeviceLine {
  readonly deviceId: string;
  /** The cap; null: not known. */
  readonly maxBytes: number | null;
  readonly allocatedBytes: number;
  readonly freeBytes: number | null;
  readonly floorBytes: number | null;
  readonly agents: number;
  readonly liveContexts: number;
}

export interface DecodeRequest {
  readonly agent: string;
  readonly maxTokens: number;
  readonly prompt: string;
}

export interface DecodeAnswer {
  readonly agent: string;
  readonly promptTokens: number;
  readonly generatedTokens: number;
  readonly stoppedOnEos: boolean;
  /** The conversation has filled its context. */
  readonly contextFull: boolean;
  /** Of its turns: bringing its context back, reading and generating; not the wait in the queue. */
  readonly elapsedMs: number;
  /** Agents whose contexts had to go for it. */
  readonly evicted: readonly string[];
  readonly restored: boolean;
  /** Tokens of the conversation so far that had to be read again because no saved state could be used. */
  readonly reevaluatedTokens: number;
  readonly text: string;
}

/** What agents ask of the engine: each is booked before it is loaded, and all get their turn. */
export interface AgentDesk {
  /** Errors beside a denial: `bad_input`, `bad_model_file`, `engine_unavailable`, `engine_ended`, `draining`, `big_models_asleep`, `cancelled`. */
  register(request: RegisterRequest, signal: AbortSignal): Promise<DeskResult<AgentLine>>;
  /** Gives its memory back and forgets its conversation. Errors: `bad_input` (there is none of this name). */
  unregister(agent: string): Promise<DeskResult<{ readonly releasedBytes: number }>>;
  /** A holder is gone: what only it held is unregistered. */
  released(holder: object): Promise<void>;
  /** Continues the agent's conversation. Errors as for `register`, and `context_full`. */
  decode(request: DecodeRequest, signal: AbortSignal): Promise<DeskResult<DecodeAnswer>>;
  /** In the order of their registration. */
  list(): readonly AgentLine[];
  status(): readonly DeviceLine[];
}
