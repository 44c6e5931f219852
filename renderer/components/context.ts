import { createContext, useContext, useRef, useSyncExternalStore } from 'react';
import type { StoreApi } from 'zustand/vanilla';
import type { Ask } from '../../shared/ipc-schema.ts';
import type { Actions, Asked } from '../actions.ts';
import type { Replica, ReplicaWorld } from '../store.ts';
import { share } from '../view/share.ts';

export interface Model {
  readonly replica: StoreApi<Replica>;
  readonly actions: Actions;
  readonly ask: Ask;
  /** The newest so many events, oldest first. */
  readonly readEvents: ReplicaWorld['fetchEvents'];
  readonly clock: Clock;
}

/** Epoch ms in steps of a second, one timer for the whole page. */
export interface Clock {
  now(): number;
  subscribe(listener: () => void): () => void;
}

const ModelContext = createContext<Model | null>(null);
export const ModelProvider = ModelContext.Provider;

export function useModel(): Model {
  const model = useContext(ModelContext);
  if (model === null) throw new Error('The page is rendered outside of its provider.');
  return model;
}

/** A value worked out from the replica; the same object as before wherever it says the same. */
export function useReplica<T>(select: (replica: Replica) => T): T {
  const { replica } = useModel();
  const last = useRef<{ readonly replica: Replica; readonly value: T } | null>(null);
  return useSyncExternalStore(replica.subscribe, () => {
    const now = replica.getState();
    if (last.current?.replica === now) return last.current.value;
    const next = select(now);
    const value = last.current === null ? next : share(last.current.value, next);
    last.current = { replica: now, value };
    return value;
  });
}

/** A text that depends on the time: renders only when the text changes. */
export function useTimed<T extends string | number>(select: (nowMs: number) => T): T {
  const { clock } = useModel();
  return useSyncExternalStore(clock.subscribe, () => select(clock.now()));
}

export function useAsked(key: string): Asked | null {
  const { actions } = useModel();
  return useSyncExternalStore(actions.store.subscribe, () => actions.store.getState()[key] ?? null);
}

/** Ticks while somebody looks and the page is shown. */
export function createClock(): Clock {
  const listeners = new Set<() => void>();
  let nowMs = Date.now();
  let timer: ReturnType<typeof setInterval> | undefined;
  const tick = (): void => {
    nowMs = Date.now();
    for (const listener of listeners) listener();
  };
  const update = (): void => {
    clearInterval(timer);
    timer = undefined;
    if (listeners.size === 0 || document.hidden) return;
    timer = setInterval(tick, 1000);
  };
  document.addEventListener('visibilitychange', () => {
    update();
    if (!document.hidden) tick();
  });
  return {
    now: () => nowMs,
    subscribe(listener) {
      if (listeners.size === 0) nowMs = Date.now();
      listeners.add(listener);
      if (timer === undefined) update();
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) update();
      };
    },
  };
}
