import type { ModelStatus } from '../../../shared/state.ts';
import type { BackendChange } from './backend.ts';
import { DEFAULT_STOP_TIMEOUT_MS, type ListedModel, type ReportedStatus } from './models-list.ts';

/**
 * What we hold a router's models to be, from its events and lists.
 *
 *   unloaded ─► loading ─► loaded ⇄ sleeping
 *       ▲          │          │        │        stopping: we asked for its unload, and it is still there
 *       └──────────┴─ stopping ◄───────┘        failed: we saw it run, did not ask, and it ended badly
 */
export interface TrackedModel {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly status: ModelStatus;
  readonly sinceMs: number;
  /** The router's last word; null: it has said nothing since it came (back) up. */
  readonly reported: ReportedStatus | null;
  /** A status word this version does not know. */
  readonly oddStatus: string | null;
  readonly args: readonly string[] | null;
  readonly port: number | null;
  readonly modelPath: string | null;
  readonly contextTokens: number | null;
  readonly loadProgress: number | null;
  readonly stopTimeoutMs: number | null;
  readonly tellsMetrics: boolean;
  readonly failure: string | null;
  readonly unloadAskedAtMs: number | null;
  /** Last time its load was seen to move. */
  readonly progressAtMs: number;
  readonly eventAtMs: number | null;
  /** When a list, and not an event, told that it is loaded; null: an event did, or it is not. */
  readonly loadedByListAtMs: number | null;
}

export type RouterState = ReadonlyMap<string, TrackedModel>;

export type RouterInput =
  /** `askedAtMs`: events that came after the list was asked for are newer than it. */
  | {
      readonly type: 'list';
      readonly models: readonly ListedModel[];
      readonly askedAtMs: number;
      readonly atMs: number;
    }
  | {
      readonly type: 'status';
      readonly model: string;
      readonly status: ReportedStatus;
      readonly statusText: string;
      readonly progress: number | null;
      readonly contextTokens: number | null;
      readonly exitCode: number | null;
      readonly failed: boolean;
      readonly atMs: number;
    }
  | { readonly type: 'removed'; readonly model: string; readonly atMs: number }
  | { readonly type: 'unload_asked'; readonly model: string; readonly atMs: number }
  | { readonly type: 'unload_refused'; readonly model: string; readonly atMs: number }
  /** Nothing listens at its address any more: its children can serve nobody. */
  | { readonly type: 'gone'; readonly atMs: number }
  /** Time passes: bounds on loading and stopping. */
  | { readonly type: 'tick'; readonly atMs: number };

export interface Step {
  readonly state: RouterState;
  readonly changes: readonly ModelChange[];
}

export interface ModelChange {
  readonly model: string;
  readonly what: BackendChange['what'];
}

/** A load that has not moved for this long has failed, whatever the router says: a preset without a model "loads" for ever. */
const LOAD_STALL_MS = 10 * 60_000;
/** Beyond its stop-timeout, a model that is still there was not stopped at all: it counts as loaded again. */
const STOP_GRACE_MS = 30_000;

/** How far a list may be ahead of the events. */
const OVERTAKEN_MS = 2_000;

export const NO_MODELS: RouterState = new Map();

export function reduce(state: RouterState, input: RouterInput): Step {
  switch (input.type) {
    case 'list':
      return afterList(state, input);
    case 'status': {
      const before = state.get(input.model) ?? null;
      if (before !== null && isOvertaken(before, input)) return { state, changes: [] };
      const base = {
        ...(before ?? unseen(input.model, input.atMs)),
        eventAtMs: input.atMs,
        loadedByListAtMs: null,
      };
      const details = { ...base, contextTokens: input.contextTokens ?? base.contextTokens };
      return withModel(state, before, settle(details, before !== null, input, input.atMs));
    }
    case 'removed': {
      if (!state.has(input.model)) return { state, changes: [] };
      const next = new Map(state);
      next.delete(input.model);
      return { state: next, changes: [{ model: input.model, what: 'list' }] };
    }
    case 'unload_asked':
      return update(state, input.model, (model) =>
        isRunning(model.status)
          ? { ...model, status: 'stopping', sinceMs: input.atMs, unloadAskedAtMs: input.atMs }
          : model,
      );
    case 'unload_refused':
      return update(state, input.model, (model) => resume(model, input.atMs));
    case 'gone':
      return each(state, (model) => ({
        ...(isRunning(model.status) ? ended(model, input.atMs, null) : model),
        reported: null,
      }));
    case 'tick':
      return each(state, (model) => bound(model, input.atMs));
  }
}

function afterList(state: RouterState, list: Extract<RouterInput, { type: 'list' }>): Step {
  const next = new Map<string, TrackedModel>();
  const changes: ModelChange[] = [];
  for (const listed of list.models) {
    const before = state.get(listed.name) ?? null;
    const known = { ...(before ?? unseen(listed.name, list.atMs)), ...detailsOf(listed, before) };
    const isOlder = isNewerThan(before, list.askedAtMs);
    const after = isOlder
      ? known
      : settle({ ...known, port: listed.port }, before !== null, { ...listed, progress: null }, list.atMs);
    const isLearnt = after.status === 'loaded' && before?.status !== 'loaded';
    next.set(listed.name, isLearnt ? { ...after, loadedByListAtMs: list.atMs } : after);
    changes.push(...changesBetween(before, after));
  }
  for (const [name, before] of state) {
    if (next.has(name)) continue;
    if (isNewerThan(before, list.askedAtMs)) next.set(name, before);
    else changes.push({ model: name, what: 'list' });
  }
  return { state: next, changes };
}

/**
 * A list can overtake events that still wait in the stream: progress of a load that the list has
 * already told as done is old news, and must not look like a load that begins.
 */
function isOvertaken(model: TrackedModel, event: Extract<RouterInput, { type: 'status' }>): boolean {
  return (
    model.status === 'loaded' &&
    model.loadedByListAtMs !== null &&
    event.status === 'loading' &&
    event.progress !== null &&
    event.atMs - model.loadedByListAtMs < OVERTAKEN_MS
  );
}

function isNewerThan(model: TrackedModel | null, askedAtMs: number): boolean {
  return model !== null && model.eventAtMs !== null && model.eventAtMs >= askedAtMs;
}

function detailsOf(listed: ListedModel, before: TrackedModel | null): Partial<TrackedModel> {
  return {
    aliases: listed.aliases,
    args: listed.args ?? before?.args ?? null,
    modelPath: listed.modelPath ?? before?.modelPath ?? null,
    contextTokens: listed.contextTokens ?? before?.contextTokens ?? null,
    stopTimeoutMs: listed.stopTimeoutMs ?? before?.stopTimeoutMs ?? null,
    tellsMetrics: listed.tellsMetrics,
    port: before?.port ?? listed.port,
  };
}

interface Word {
  readonly status: ReportedStatus;
  readonly statusText: string;
  readonly progress: number | null;
  readonly exitCode: number | null;
  readonly failed: boolean;
}

/** The model after the router's word on it. `wasKnown`: we saw it before this word. */
function settle(model: TrackedModel, wasKnown: boolean, word: Word, atMs: number): TrackedModel {
  const said = { ...model, reported: word.status, oddStatus: null };
  switch (word.status) {
    case 'unloaded':
      if (!wasKnown || !isRunning(model.status)) {
        const status = model.status === 'failed' ? 'failed' : 'unloaded';
        return { ...said, status, port: null, loadProgress: null };
      }
      return ended(said, atMs, word);
    case 'loading':
      return afterLoading(said, model.reported, word.progress, atMs);
    case 'loaded':
    case 'sleeping':
      // It says so until the unload we asked for takes hold.
      if (model.status === 'stopping') return said;
      return enter(said, word.status, atMs);
    case 'unknown':
      // Not to be guessed at: a word we do not know changes nothing, and a model first met in it may hold memory.
      return { ...said, oddStatus: word.statusText, status: wasKnown ? model.status : 'loaded' };
  }
}

function afterLoading(
  model: TrackedModel,
  reportedBefore: ReportedStatus | null,
  progress: number | null,
  atMs: number,
): TrackedModel {
  const isSameLoad = reportedBefore === 'loading';
  const moved = progress !== null && progress !== model.loadProgress;
  const loadProgress = progress ?? (isSameLoad ? model.loadProgress : null);
  const progressAtMs = moved || !isSameLoad ? atMs : model.progressAtMs;
  // One that we asked to unload, or that stalled, is still the same load until it moves or begins anew.
  const stays = isSameLoad && (model.status === 'stopping' || (model.status === 'failed' && !moved));
  if (stays) return { ...model, loadProgress, progressAtMs };
  return { ...enter(model, 'loading', atMs), loadProgress, progressAtMs };
}

function enter(model: TrackedModel, status: 'loading' | 'loaded' | 'sleeping', atMs: number): TrackedModel {
  const sinceMs = model.status === status ? model.sinceMs : atMs;
  return { ...model, status, sinceMs, failure: null, unloadAskedAtMs: null, loadProgress: null };
}

/** Not there any more. Only an end that we saw, did not ask for, and that was bad is a failure. */
function ended(model: TrackedModel, atMs: number, word: Word | null): TrackedModel {
  const isBad = word !== null && (word.failed || (word.exitCode !== null && word.exitCode !== 0));
  const isFailure = isBad && model.unloadAskedAtMs === null;
  return {
    ...model,
    status: isFailure ? 'failed' : 'unloaded',
    sinceMs: atMs,
    port: null,
    loadProgress: null,
    unloadAskedAtMs: null,
    failure: isFailure ? failureOf(model, word.exitCode) : null,
  };
}

/** The end of a failure's sentence, where nothing more is known here. */
export const LOG_SAYS = "the router's log says why.";

function failureOf(model: TrackedModel, exitCode: number | null): string {
  const code = exitCode === null ? 'no exit code told' : `exit code ${exitCode}`;
  return model.status === 'loading'
    ? `The load of ${model.name} ended (${code}): ${LOG_SAYS}`
    : `${model.name} ended without our asking (${code}): a crash, or an unload by another program that the router had to force.`;
}

function bound(model: TrackedModel, atMs: number): TrackedModel {
  if (model.status === 'loading' && atMs - model.progressAtMs > LOAD_STALL_MS) {
    const minutes = Math.round(LOAD_STALL_MS / 60_000);
    const failure = `${model.name} has been loading for ${minutes} minutes without moving: its preset may name no model. Unload it and look at the router's log.`;
    return { ...model, status: 'failed', sinceMs: atMs, failure };
  }
  if (model.status === 'stopping' && model.unloadAskedAtMs !== null) {
    const limitMs = (model.stopTimeoutMs ?? DEFAULT_STOP_TIMEOUT_MS) + STOP_GRACE_MS;
    if (atMs - model.unloadAskedAtMs > limitMs) return resume(model, atMs);
  }
  return model;
}

/** Takes back `stopping`: the router still has it. */
function resume(model: TrackedModel, atMs: number): TrackedModel {
  if (model.status !== 'stopping') return model;
  const { reported } = model;
  const status = reported === 'loading' || reported === 'sleeping' ? reported : 'loaded';
  return enter(model, status, atMs);
}

function isRunning(status: ModelStatus): boolean {
  return status === 'loading' || status === 'loaded' || status === 'sleeping' || status === 'stopping';
}

function unseen(name: string, atMs: number): TrackedModel {
  return {
    name,
    aliases: [],
    status: 'unloaded',
    sinceMs: atMs,
    reported: null,
    oddStatus: null,
    args: null,
    port: null,
    modelPath: null,
    contextTokens: null,
    loadProgress: null,
    stopTimeoutMs: null,
    tellsMetrics: false,
    failure: null,
    unloadAskedAtMs: null,
    progressAtMs: atMs,
    eventAtMs: null,
    loadedByListAtMs: null,
  };
}

function update(state: RouterState, name: string, change: (model: TrackedModel) => TrackedModel): Step {
  const before = state.get(name);
  return before === undefined ? { state, changes: [] } : withModel(state, before, change(before));
}

function withModel(state: RouterState, before: TrackedModel | null, after: TrackedModel): Step {
  return {
    state: new Map(state).set(after.name, after),
    changes: changesBetween(before, after),
  };
}

function each(state: RouterState, change: (model: TrackedModel) => TrackedModel): Step {
  const next = new Map<string, TrackedModel>();
  const changes: ModelChange[] = [];
  for (const [name, before] of state) {
    const after = change(before);
    next.set(name, after);
    changes.push(...changesBetween(before, after));
  }
  return { state: next, changes };
}

function changesBetween(before: TrackedModel | null, after: TrackedModel): readonly ModelChange[] {
  const model = after.name;
  if (before === null) {
    return after.status === 'unloaded' ? [{ model, what: 'list' }] : [{ model, what: wordFor(after, null) }];
  }
  if (before.status !== after.status) return [{ model, what: wordFor(after, before) }];
  const isSame = before.port === after.port && before.loadProgress === after.loadProgress;
  return isSame ? [] : [{ model, what: 'list' }];
}

function wordFor(after: TrackedModel, before: TrackedModel | null): BackendChange['what'] {
  switch (after.status) {
    case 'stopping':
      return 'list';
    case 'failed':
      return before?.status === 'loading' ? 'load_failed' : 'crashed';
    default:
      return after.status;
  }
}
