import type { LiveContext, LoadedModel, StateRecord } from '../engine-host.ts';

/**
 * Weights that agents share: booked and loaded once, whoever asks.
 *
 *   away (nothing booked) ─► booked ─► loaded ─► away (last agent gone, drained, the engine ended)
 */
export interface DeskModel {
  /** Its file and how it is loaded. */
  readonly key: string;
  readonly path: string;
  readonly deviceId: string;
  /** On the device; null: all. */
  readonly gpuLayers: number | null;
  /** Predicted; measured ones are the ledger's. */
  readonly weightsBytes: number;
  /** What the engine takes on this device besides, once. */
  readonly overheadBytes: number;
  loaded: LoadedModel | null;
  /** Share done of a load that is under way; null: none is. */
  progress: number | null;
  readonly agents: Set<Agent>;
}

export interface SavedState {
  readonly place: 'host' | 'file';
  readonly record: StateRecord;
}

/**
 * An agent with its conversation. What was said is never lost: `tokens` has all of it, whatever becomes
 * of its keys and values.
 *
 *   none ─► live ⇄ saved (host or file)        saved or live ─► none (no room for it, the engine ended)
 */
export interface Agent {
  readonly name: string;
  class: 'interactive' | 'batch';
  readonly contextTokens: number;
  /** Keys, values and buffers of its context, predicted. */
  readonly contextBytes: number;
  readonly model: DeskModel;
  /** Stays when its holders are gone. */
  permanent: boolean;
  readonly holders: Set<object>;
  /** Monotonic ms of its registration. */
  readonly sinceMs: number;
  /** Of its conversation, the one that is not in the context yet (pending) last. */
  tokens: number[];
  /** Last tokens whose text is not told yet, being part of a character. */
  untold: readonly number[];
  live: LiveContext | null;
  /** Of the model that `tokens` are of (see `LoadedModel`); null: not known, or nothing is said yet. */
  vocabulary: string | null;
  /** How many of `tokens` are in the live context, a pending last one among them. */
  heldTokens: number;
  /** Of a beginning of `tokens`; kept while it is live too, where there is room. */
  saved: SavedState | null;
  /** A turn of it is under way: nobody takes its context. */
  busy: boolean;
  /** Its context was made ready while another decoded; null: it was not, or its turn has come since. */
  prepared: { readonly restored: boolean; readonly evicted: readonly string[] } | null;
  lastUsedAtMs: number;
  lastSwitchMs: number | null;
  tokensPerS: number | null;
  /** Monotonic ms since it is generating, waiting or idle. */
  stateSinceMs: number;
}

/** One that has said nothing and holds nothing. */
export function newAgent(
  who: Pick<Agent, 'name' | 'class' | 'model' | 'contextTokens' | 'contextBytes'>,
  nowMs: number,
): Agent {
  const { name, model, contextTokens, contextBytes } = who;
  return {
    name,
    class: who.class,
    contextTokens,
    contextBytes,
    model,
    permanent: false,
    holders: new Set(),
    sinceMs: nowMs,
    tokens: [],
    untold: [],
    vocabulary: null,
    live: null,
    heldTokens: 0,
    saved: null,
    busy: false,
    prepared: null,
    lastUsedAtMs: nowMs,
    lastSwitchMs: null,
    tokensPerS: null,
    stateSinceMs: nowMs,
  };
}

export function contextLineId(agent: string): string {
  return `agent:${agent}`;
}

export function weightsLineId(model: DeskModel): string {
  return `agent-weights:${model.key}`;
}

export function engineLineId(deviceId: string): string {
  return `agent-engine:${deviceId}`;
}

/** Whether a saved state is of a beginning of this conversation, and how many of its tokens it covers. */
export function coveredTokens(record: StateRecord, tokens: readonly number[]): number | null {
  const covered = record.pendingToken === null ? record.tokens : [...record.tokens, record.pendingToken];
  if (covered.length > tokens.length) return null;
  return covered.every((token, index) => token === tokens[index]) ? covered.length : null;
}
