/** The runtime over HTTP (loopback, same origin; a cookie lets the page in). */
import type { LandlordEvent } from '../shared/events.ts';
import { isEvent, type ReplicaWorld } from './store.ts';
import { strings } from './strings.ts';

export type Outcome =
  | { readonly ok: true; readonly message: string | null }
  | {
      readonly ok: false;
      /** As the runtime names it (`vram_denied`, `model_busy`, …); `unreachable` when it did not answer. */
      readonly code: string;
      readonly message: string;
      readonly numbers: Readonly<Record<string, number | null>>;
    };

export interface Api {
  load(model: string, force: boolean): Promise<Outcome>;
  unload(model: string, force: boolean): Promise<Outcome>;
  pin(model: string, pinned: boolean): Promise<Outcome>;
  sleep(): Promise<Outcome>;
  wake(): Promise<Outcome>;
  restore(): Promise<Outcome>;
  accept(offer: string): Promise<Outcome>;
  guards(mode: 'on' | 'observe' | 'pause', backend: string | null): Promise<Outcome>;
}

export const PAUSE_MS = 30 * 60_000;

export function createApi(fetchFn: typeof fetch): Api {
  const post = async (path: string, body: object): Promise<Outcome> => {
    try {
      const response = await fetchFn(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return readOutcome(response.ok, await response.json().catch(() => null));
    } catch {
      return { ok: false, code: 'unreachable', message: strings.noAnswer, numbers: {} };
    }
  };
  const model = (id: string, action: string): string => `/api/models/${encodeURIComponent(id)}/${action}`;
  return {
    load: (id, force) => post(model(id, 'load'), { force }),
    unload: (id, force) => post(model(id, 'unload'), { force }),
    pin: (id, pinned) => post(model(id, pinned ? 'pin' : 'unpin'), {}),
    sleep: () => post('/api/sleep', {}),
    wake: () => post('/api/wake', {}),
    restore: () => post('/api/restore', {}),
    accept: (offer) => post('/api/accept', { offer }),
    guards: (mode, backend) =>
      post('/api/guards', { mode, backend, ...(mode === 'pause' ? { for: PAUSE_MS } : {}) }),
  };
}

/** What an answer's body means; one that is not as agreed is a refusal without reasons. */
export function readOutcome(success: boolean, body: unknown): Outcome {
  if (success) return { ok: true, message: textAt(body, 'message') };
  const error: unknown = isObject(body) ? Reflect.get(body, 'error') : null;
  return {
    ok: false,
    code: textAt(error, 'code') ?? 'internal',
    message: textAt(error, 'message') ?? strings.noAnswer,
    numbers: numbersAt(error),
  };
}

function textAt(value: unknown, name: string): string | null {
  const found: unknown = isObject(value) ? Reflect.get(value, name) : null;
  return typeof found === 'string' ? found : null;
}

function numbersAt(value: unknown): Readonly<Record<string, number | null>> {
  const numbers: unknown = isObject(value) ? Reflect.get(value, 'numbers') : null;
  if (!isObject(numbers)) return {};
  return Object.fromEntries(
    Object.entries(numbers).filter(
      (entry): entry is [string, number | null] => entry[1] === null || typeof entry[1] === 'number',
    ),
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The browser's side of the replica. */
export const browserWorld: ReplicaWorld = {
  openStream(handlers) {
    const source = new EventSource('/api/stream');
    source.addEventListener('state', (message) => handlers.onState(String(message.data)));
    source.addEventListener('event', (message) => handlers.onEvent(String(message.data)));
    source.addEventListener('error', () => handlers.onBroken());
    return { close: () => source.close() };
  },
  async fetchEvents(limit) {
    try {
      const response = await fetch(`/api/events?json=1&limit=${limit}`, {
        headers: { accept: 'application/json' },
      });
      if (response.status === 401 || response.status === 403) return 'refused';
      if (!response.ok) return 'unreachable';
      const list: unknown = await response.json();
      return Array.isArray(list) ? list.filter((entry): entry is LandlordEvent => isEvent(entry)) : [];
    } catch {
      return 'unreachable';
    }
  },
  now: () => Date.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
