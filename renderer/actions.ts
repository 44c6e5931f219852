/**
 * What a person asked for and how it went, by the thing it was about (a model's id, `guards`, `sleep`,
 * `restore`, `host`, `offer <id>`, `backend <name>`).
 *
 *   (none) ──► asking ──yes──► pending ──► (none)     done: the next snapshot shows it
 *     └───────────────────────► pending ──► refused ──► pending again (by force) or (none)
 */
import { createStore, type StoreApi } from 'zustand/vanilla';
import type { Api, Outcome } from './api.ts';
import type { ModelRow } from './view/models.ts';

export type Asked =
  | { readonly kind: 'asking' }
  | { readonly kind: 'pending'; readonly what: 'load' | 'unload' | 'other' }
  | {
      readonly kind: 'refused';
      readonly message: string;
      readonly numbers: Readonly<Record<string, number | null>>;
      /** What would do it all the same; null: nothing would. */
      readonly force: 'load' | 'unload' | null;
    };

export type AskedState = Readonly<Record<string, Asked>>;

export interface Actions {
  readonly store: StoreApi<AskedState>;
  /** The one button of a model's row. */
  act(row: Pick<ModelRow, 'id' | 'action' | 'asksFirst'>): void;
  load(id: string, force: boolean): void;
  unload(id: string, force: boolean): void;
  pin(id: string, pinned: boolean): void;
  guards(mode: 'on' | 'observe' | 'pause'): void;
  guardBackend(name: string): void;
  sleep(asleep: boolean): void;
  restore(): void;
  /** Asks first; `accept` then does it. */
  offer(id: string): void;
  accept(id: string): void;
  /** Hosts a runtime in the desktop app; null where the page runs in a browser. */
  readonly host: (() => void) | null;
  dismiss(key: string): void;
}

export function createActions(api: Api & { readonly host?: () => Promise<Outcome> }): Actions {
  const store = createStore<AskedState>(() => ({}));
  /** Counts requests by key: the answer to one that was overtaken is not shown. */
  const latest = new Map<string, number>();

  const set = (key: string, asked: Asked | null): void => {
    const { [key]: _gone, ...rest } = store.getState();
    store.setState(asked === null ? rest : { ...rest, [key]: asked }, true);
  };
  const run = async (
    key: string,
    what: 'load' | 'unload' | 'other',
    request: Promise<Outcome>,
  ): Promise<void> => {
    const mine = (latest.get(key) ?? 0) + 1;
    latest.set(key, mine);
    set(key, { kind: 'pending', what });
    const outcome = await request;
    if (latest.get(key) !== mine) return;
    set(key, outcome.ok ? null : refusedBy(outcome, what));
  };
  const { host: hostCall } = api;
  const actions: Actions = {
    store,
    act(row) {
      if (row.action === 'load') actions.load(row.id, false);
      // A load in flight serves nobody yet: cancelling it needs no proof that it is idle.
      else if (row.action === 'cancel') actions.unload(row.id, true);
      else if (row.action === 'unload' && row.asksFirst) set(row.id, { kind: 'asking' });
      else if (row.action === 'unload') actions.unload(row.id, false);
    },
    load: (id, force) => void run(id, 'load', api.load(id, force)),
    unload: (id, force) => void run(id, 'unload', api.unload(id, force)),
    pin: (id, pinned) => void run(`pin ${id}`, 'other', api.pin(id, pinned)),
    guards: (mode) => void run('guards', 'other', api.guards(mode, null)),
    guardBackend: (name) => void run(`backend ${name}`, 'other', api.guards('on', name)),
    sleep: (asleep) => void run('sleep', 'other', asleep ? api.sleep() : api.wake()),
    restore: () => void run('restore', 'other', api.restore()),
    offer: (id) => set(`offer ${id}`, { kind: 'asking' }),
    accept: (id) => void run(`offer ${id}`, 'other', api.accept(id)),
    host: hostCall === undefined ? null : () => void run('host', 'other', hostCall()),
    dismiss: (key) => set(key, null),
  };
  return actions;
}

function refusedBy(
  outcome: Extract<Outcome, { ok: false }>,
  what: 'load' | 'unload' | 'other',
): Asked | null {
  // The person cancelled it: that is no news.
  if (outcome.code === 'cancelled') return null;
  const force =
    what === 'load' && (outcome.code === 'vram_denied' || outcome.code === 'big_models_asleep')
      ? 'load'
      : what === 'unload' && outcome.code === 'model_busy'
        ? 'unload'
        : null;
  return { kind: 'refused', message: outcome.message, numbers: outcome.numbers, force };
}
