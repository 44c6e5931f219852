import type { ModelStatus } from '../../../shared/state.ts';
import type { BackendChange } from './backend.ts';
import type { ToldModel } from './told-model.ts';

/**
 * What we hold a server's models to be, from readings of its list and from what we asked of it.
 *
 *   unloaded ─► loading ─► loaded ⇄ sleeping
 *       ▲          │          │        │        stopping: its server says so, or we asked and it is still there
 *       └──────────┴─ stopping ◄───────┘        failed: a load of ours that ended badly, or its server says so
 */
export interface WatchedModel {
  readonly name: string;
  readonly status: ModelStatus;
  readonly sinceMs: number;
  /** The last reading of it. */
  readonly told: ToldModel;
  /** A status word this version does not know. */
  readonly oddStatus: string | null;
  readonly unloadAskedAtMs: number | null;
  /** A load that we asked for and that has not ended. */
  readonly loadAskedAtMs: number | null;
  /** Monotonic ms it was last seen at work, or found to have been used; null: never. */
  readonly lastUsedAtMs: number | null;
  readonly failure: string | null;
}

export type ToldState = ReadonlyMap<string, WatchedModel>;

export type ToldInput =
  | { readonly type: 'list'; readonly models: readonly ToldModel[]; readonly atMs: number }
  | { readonly type: 'load_asked'; readonly model: string; readonly atMs: number }
  /** `failure` null: it is done, as far as the server says. */
  | {
      readonly type: 'load_ended';
      readonly model: string;
      readonly failure: string | null;
      readonly atMs: number;
    }
  | { readonly type: 'unload_asked'; readonly model: string; readonly atMs: number }
  | { readonly type: 'unload_refused'; readonly model: string; readonly atMs: number }
  /** Nothing listens at its address any more. */
  | { readonly type: 'gone'; readonly atMs: number };

export interface ToldStep {
  readonly state: ToldState;
  readonly changes: readonly { readonly model: string; readonly what: BackendChange['what'] }[];
}

export interface ToldRules {
  /** False: the list shows a model as loaded from the moment its load begins. */
  readonly tellsLoading: boolean;
}

export const NONE_TOLD: ToldState = new Map();

/** A server that answered yes to an unload and still has the model after this long did not unload it. */
const STOP_LIMIT_MS = 45_000;
/** A load of ours that has not ended by then has hung. */
const LOAD_LIMIT_MS = 10 * 60_000;

export function reduceTold(state: ToldState, input: ToldInput, rules: ToldRules): ToldStep {
  switch (input.type) {
    case 'list': {
      const next = new Map<string, WatchedModel>();
      for (const told of input.models) {
        const before = state.get(told.name) ?? null;
        next.set(told.name, afterReading(before, told, input.atMs, rules));
      }
      for (const [name, before] of state) {
        // One that we are loading may not be listed yet.
        if (!next.has(name) && before.loadAskedAtMs !== null) {
          next.set(name, afterReading(before, { ...before.told, status: 'unloaded' }, input.atMs, rules));
        }
      }
      return { state: next, changes: changesBetween(state, next) };
    }
    case 'load_asked':
      return update(state, input.model, (model) => ({
        ...enter(model, 'loading', input.atMs),
        loadAskedAtMs: input.atMs,
        unloadAskedAtMs: null,
      }));
    case 'load_ended':
      return update(state, input.model, (model) => {
        const ended = { ...model, loadAskedAtMs: null };
        if (input.failure === null || model.loadAskedAtMs === null || model.status !== 'loading')
          return ended;
        return { ...enter(ended, 'failed', input.atMs), failure: input.failure };
      });
    case 'unload_asked':
      return update(state, input.model, (model) =>
        isThere(model.status)
          ? { ...enter(model, 'stopping', input.atMs), unloadAskedAtMs: input.atMs }
          : model,
      );
    case 'unload_refused':
      return update(state, input.model, (model) =>
        model.status === 'stopping' && model.told.status !== 'stopping'
          ? { ...enter(model, plain(model.told.status), input.atMs), unloadAskedAtMs: null }
          : { ...model, unloadAskedAtMs: null },
      );
    case 'gone': {
      const next = new Map(
        [...state].map(([name, model]) => [
          name,
          {
            ...(isThere(model.status) ? enter(model, 'unloaded', input.atMs) : model),
            loadAskedAtMs: null,
            unloadAskedAtMs: null,
            told: { ...model.told, status: 'unloaded' as const, busy: false },
          },
        ]),
      );
      return { state: next, changes: changesBetween(state, next) };
    }
  }
}

function afterReading(
  before: WatchedModel | null,
  told: ToldModel,
  atMs: number,
  rules: ToldRules,
): WatchedModel {
  const base: WatchedModel = before ?? {
    name: told.name,
    status: 'unloaded',
    sinceMs: atMs,
    told,
    oddStatus: null,
    unloadAskedAtMs: null,
    loadAskedAtMs: null,
    lastUsedAtMs: null,
    failure: null,
  };
  const model = {
    ...base,
    told,
    oddStatus: told.status === 'unknown' ? told.statusText : null,
    lastUsedAtMs: usedAt(before, told, atMs),
  };
  const isLoading =
    model.loadAskedAtMs !== null && atMs - model.loadAskedAtMs < LOAD_LIMIT_MS && model.status === 'loading';
  const isStopping = model.unloadAskedAtMs !== null && atMs - model.unloadAskedAtMs < STOP_LIMIT_MS;
  switch (told.status) {
    case 'unloaded': {
      if (isLoading) return model;
      const rests = { ...model, unloadAskedAtMs: null, loadAskedAtMs: null };
      return model.status === 'failed' ? rests : enter(rests, 'unloaded', atMs);
    }
    case 'failed':
      return {
        ...enter({ ...model, unloadAskedAtMs: null, loadAskedAtMs: null }, 'failed', atMs),
        failure:
          model.failure ?? `${told.name} is told as failed (${told.statusText}): its server's log says why.`,
      };
    case 'loading':
      return isStopping ? model : enter(model, 'loading', atMs);
    case 'stopping':
      return enter(model, 'stopping', atMs);
    case 'loaded':
    case 'sleeping':
      if (isStopping) return enter(model, 'stopping', atMs);
      if (isLoading && !rules.tellsLoading) return model;
      return enter({ ...model, unloadAskedAtMs: null }, told.status, atMs);
    case 'unknown':
      // Not to be guessed at: one first met in such a state may hold memory.
      return before === null ? enter(model, 'loaded', atMs) : model;
  }
}

/** The end of its last request lies somewhere between two readings: the later one is the safe one. */
function usedAt(before: WatchedModel | null, told: ToldModel, atMs: number): number | null {
  if (told.busy === true || before?.told.busy === true) return atMs;
  const known = before?.lastUsedAtMs ?? null;
  if (before === null || told.usedMark === null || before.told.usedMark === null) return known;
  return told.usedMark === before.told.usedMark ? known : atMs;
}

function enter(model: WatchedModel, status: ModelStatus, atMs: number): WatchedModel {
  return model.status === status
    ? model
    : { ...model, status, sinceMs: atMs, failure: status === 'failed' ? model.failure : null };
}

function plain(status: ToldModel['status']): ModelStatus {
  return status === 'unknown' ? 'loaded' : status;
}

function isThere(status: ModelStatus): boolean {
  return status === 'loading' || status === 'loaded' || status === 'sleeping' || status === 'stopping';
}

function update(state: ToldState, name: string, change: (model: WatchedModel) => WatchedModel): ToldStep {
  const before = state.get(name);
  if (before === undefined) return { state, changes: [] };
  const next = new Map(state).set(name, change(before));
  return { state: next, changes: changesBetween(state, next) };
}

function changesBetween(before: ToldState, after: ToldState): ToldStep['changes'] {
  const changes: { model: string; what: BackendChange['what'] }[] = [];
  for (const [model, now] of after) {
    const was = before.get(model);
    if (was?.status !== now.status && !(was === undefined && now.status === 'unloaded')) {
      changes.push({ model, what: wordFor(was?.status ?? null, now.status) });
    } else if (was === undefined) changes.push({ model, what: 'list' });
    if (now.status === 'loaded' && was?.status === 'loaded' && was.told.busy !== now.told.busy) {
      if (now.told.busy !== null) changes.push({ model, what: now.told.busy ? 'busy' : 'idle' });
    }
  }
  for (const model of before.keys()) if (!after.has(model)) changes.push({ model, what: 'list' });
  return changes;
}

function wordFor(before: ModelStatus | null, after: ModelStatus): BackendChange['what'] {
  if (after === 'stopping') return 'list';
  if (after === 'failed') return before === 'loading' ? 'load_failed' : 'crashed';
  return after;
}
