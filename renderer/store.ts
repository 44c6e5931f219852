/**
 * A read-only copy of the runtime's state, kept by its event stream. Nothing on the page changes it:
 * what a person asks for goes to the runtime, and comes back as a snapshot.
 *
 *   connecting ──first snapshot──► live ──stream breaks, or says nothing for 20 s──► lost
 *                                   ▲                                                 │
 *                                   └──────── first snapshot of a new stream ◄────────┘
 *   lost ──the runtime answers, and refuses this page──► locked (tries on, slowly)
 */
import { createStore, type StoreApi } from 'zustand/vanilla';
import type { LandlordEvent } from '../shared/events.ts';
import { type LandlordState, STATE_SCHEMA } from '../shared/state.ts';

export type Connection =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'lost'; readonly sinceMs: number }
  | { readonly kind: 'locked'; readonly sinceMs: number };

export interface Replica {
  readonly connection: Connection;
  readonly state: LandlordState | null;
  /** Oldest first, by id; the newest `MAX_EVENTS`. */
  readonly events: readonly LandlordEvent[];
}

/** An open stream, as `EventSource` is one. */
export interface Stream {
  close(): void;
}

export interface StreamHandlers {
  onState(data: string): void;
  onEvent(data: string): void;
  onBroken(): void;
}

/** All that the replica takes from the world. */
export interface ReplicaWorld {
  openStream(handlers: StreamHandlers): Stream;
  /** The newest events, oldest first; `refused` when this page may not read any more. */
  fetchEvents(limit: number): Promise<readonly LandlordEvent[] | 'refused' | 'unreachable'>;
  /** Epoch ms. */
  now(): number;
  /** Returns its own undo. */
  after(delayMs: number, run: () => void): () => void;
}

export const MAX_EVENTS = 300;
const FIRST_EVENTS = 200;
/** The runtime sends a snapshot a second at the least; silence this long means that the stream is dead. */
export const SILENCE_MS = 20_000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;

export interface ReplicaHandle {
  readonly store: StoreApi<Replica>;
  start(): void;
  stop(): void;
  /** Tries at once, for instance when the page is shown again. */
  retryNow(): void;
}

export function createReplica(world: ReplicaWorld): ReplicaHandle {
  const store = createStore<Replica>(() => ({ connection: { kind: 'connecting' }, state: null, events: [] }));
  let stream: Stream | null = null;
  let cancelRetry = (): void => {};
  let cancelSilence = (): void => {};
  let retryMs = FIRST_RETRY_MS;
  let stopped = true;
  /** Counts streams, so that a late answer to an earlier one changes nothing. */
  let generation = 0;

  const open = (): void => {
    cancelRetry();
    stream?.close();
    generation += 1;
    const mine = generation;
    const current = (): boolean => !stopped && mine === generation;
    /** A restarted runtime counts from the start again: its first snapshot counts whatever its number. */
    let fresh = true;
    // Subscribed first, so that nothing falls between the stream and the list.
    stream = world.openStream({
      onState: (data) => {
        if (!current()) return;
        watchSilence(mine);
        const state = parseState(data);
        if (state === null) return;
        const known = store.getState().state;
        if (!fresh && known !== null && state.revision <= known.revision) return;
        const wasLive = store.getState().connection.kind === 'live';
        fresh = false;
        retryMs = FIRST_RETRY_MS;
        store.setState(wasLive ? { state } : { state, connection: { kind: 'live' } });
      },
      onEvent: (data) => {
        if (!current()) return;
        const event = parseEvent(data);
        if (event !== null) store.setState({ events: mergeEvents(store.getState().events, [event]) });
      },
      onBroken: () => {
        if (current()) broken();
      },
    });
    watchSilence(mine);
    void world.fetchEvents(FIRST_EVENTS).then((answer) => {
      if (!current()) return;
      if (answer === 'refused') locked();
      else if (answer !== 'unreachable')
        store.setState({ events: mergeEvents(store.getState().events, answer) });
    });
  };

  const watchSilence = (mine: number): void => {
    cancelSilence();
    cancelSilence = world.after(SILENCE_MS, () => {
      if (!stopped && mine === generation) broken();
    });
  };
  const broken = (): void => {
    stream?.close();
    stream = null;
    cancelSilence();
    const { connection } = store.getState();
    if (connection.kind !== 'lost' && connection.kind !== 'locked') {
      store.setState({ connection: { kind: 'lost', sinceMs: world.now() } });
    }
    cancelRetry();
    cancelRetry = world.after(retryMs, open);
    retryMs = Math.min(LAST_RETRY_MS, retryMs * 2);
  };
  const locked = (): void => {
    const { connection } = store.getState();
    if (connection.kind !== 'locked') {
      store.setState({ connection: { kind: 'locked', sinceMs: world.now() } });
    }
  };

  return {
    store,
    start: () => {
      if (!stopped) return;
      stopped = false;
      open();
    },
    stop: () => {
      stopped = true;
      generation += 1;
      stream?.close();
      stream = null;
      cancelRetry();
      cancelSilence();
    },
    retryNow: () => {
      if (stopped || store.getState().connection.kind === 'live') return;
      retryMs = FIRST_RETRY_MS;
      open();
    },
  };
}

/** By id, each once, the newest `most`; the same array when nothing is new. */
export function mergeEvents(
  known: readonly LandlordEvent[],
  added: readonly LandlordEvent[],
  most: number = MAX_EVENTS,
): readonly LandlordEvent[] {
  const ids = new Set(known.map((event) => event.id));
  const fresh = added.filter((event) => !ids.has(event.id));
  if (fresh.length === 0) return known;
  return [...known, ...fresh].sort((a, b) => a.id - b.id).slice(-most);
}

/** The page and the runtime come from one build: the schema's name is proof enough of the shape. */
function parseState(data: string): LandlordState | null {
  const value = parseJson(data);
  return isState(value) ? value : null;
}

function isState(value: unknown): value is LandlordState {
  return (
    typeof value === 'object' &&
    value !== null &&
    'schema' in value &&
    value.schema === STATE_SCHEMA &&
    'revision' in value &&
    typeof value.revision === 'number'
  );
}

function parseEvent(data: string): LandlordEvent | null {
  const value = parseJson(data);
  return isEvent(value) ? value : null;
}

export function isEvent(value: unknown): value is LandlordEvent {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    typeof value.id === 'number' &&
    'kind' in value &&
    typeof value.kind === 'string' &&
    'reason' in value &&
    typeof value.reason === 'string'
  );
}

function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}
