import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes, formatDuration } from '../../../shared/format.ts';
import type { BackendSnapshot } from '../backends/backend.ts';
import { commandFlags } from '../ledger/footprint/command-flags.ts';
import type { ModelView } from './model-view.ts';

/** What of a model was told last. */
export interface ToldModel {
  readonly status: ModelView['status'];
  readonly sinceMs: number;
  /** The context it was last loaded with, as its command line has it; null: never seen loaded with one. */
  readonly contextTokens: number | null;
}

/** What of a model has been told once its events are out. */
export function toldModel(before: ToldModel | undefined, view: ModelView, nowMs: number): ToldModel {
  const contextTokens = loadedContext(view) ?? before?.contextTokens ?? null;
  if (before?.status === view.status && before.contextTokens === contextTokens) return before;
  return {
    status: view.status,
    sinceMs: before?.status === view.status ? before.sinceMs : nowMs,
    contextTokens,
  };
}

/** By command line: it is asked for at each look, and stays what it is for as long as a model is loaded. */
const contexts = new WeakMap<readonly string[], number | null>();

/** null: not loaded, or its context is not on its command line. */
function loadedContext(view: ModelView): number | null {
  const { args } = view.observed;
  if (view.status !== 'loaded' || args === null) return null;
  const known = contexts.get(args);
  if (known !== undefined) return known;
  const { contextTokens } = commandFlags(args);
  contexts.set(args, contextTokens);
  return contextTokens;
}

/** A client may ask for another context with each request (Ollama's `num_ctx`): its server loads the model anew. */
function contextEvents(before: ToldModel, view: ModelView): readonly NewEvent[] {
  const now = loadedContext(view);
  if (now === null || before.contextTokens === null || before.contextTokens === now) return [];
  const size = view.predictedBytes === null ? '' : `; ${formatBytes(view.predictedBytes)} predicted for that`;
  return [
    {
      model: view.id,
      backend: view.backend,
      ...(view.deviceId === null ? {} : { deviceId: view.deviceId }),
      kind: 'context_changed',
      reason: `${view.observed.name} was loaded anew with ${now} tokens of context instead of ${before.contextTokens}: a client asked for it, or its settings have changed${size}.`,
      numbers: {
        contextTokens: now,
        contextBeforeTokens: before.contextTokens,
        predictedBytes: view.predictedBytes,
      },
    },
  ];
}

/**
 * The events that follow from a model's status having changed. The first look at a model says
 * nothing: what was so before we watched is no news.
 */
export function modelEvents(
  before: ToldModel | undefined,
  view: ModelView,
  nowMs: number,
): readonly NewEvent[] {
  if (before === undefined) return [];
  return [...contextEvents(before, view), ...statusChange(before, view, nowMs)];
}

function statusChange(before: ToldModel, view: ModelView, nowMs: number): readonly NewEvent[] {
  if (before.status === view.status) return [];
  const name = view.observed.name;
  const base = {
    model: view.id,
    backend: view.backend,
    ...(view.deviceId === null ? {} : { deviceId: view.deviceId }),
  };
  switch (view.status) {
    case 'loading':
      return [
        {
          ...base,
          kind: 'loading',
          reason: `${name} is loading; ${view.predictedBytes === null ? 'its size is not known yet' : `${formatBytes(view.predictedBytes)} predicted`}.`,
          numbers: { predictedBytes: view.predictedBytes },
        },
      ];
    case 'loaded': {
      if (before.status === 'sleeping') return [];
      const tookMs = before.status === 'loading' ? nowMs - before.sinceMs : null;
      return [
        {
          ...base,
          kind: 'loaded',
          reason: `${name} is loaded${tookMs === null ? '' : ` after ${formatDuration(tookMs)}`}.`,
          numbers: { predictedBytes: view.predictedBytes, measuredBytes: view.measuredBytes, tookMs },
        },
      ];
    }
    case 'failed':
      return [
        {
          ...base,
          kind: before.status === 'loading' ? 'load_failed' : 'model_crashed',
          reason: failureSentence(name, before.status === 'loading', view.observed.failure),
          numbers: { predictedBytes: view.predictedBytes },
        },
      ];
    case 'unloaded':
      // Our own unloads tell themselves when their memory is back.
      if (before.status === 'stopping' || view.operation !== null) return [];
      return [{ ...base, kind: 'unloaded', reason: `${name} was unloaded by its server.`, numbers: {} }];
    default:
      return [];
  }
}

/** A failure that names the model is a sentence already. */
function failureSentence(name: string, loading: boolean, failure: string | null): string {
  const plain = `${name} ${loading ? 'could not be loaded' : 'ended by itself'}`;
  if (failure === null) return `${plain}.`;
  const sentence = /[.!?]$/.test(failure) ? failure : `${failure}.`;
  return failure.startsWith(name) ? sentence : `${plain}: ${sentence}`;
}

/** A server that is ours to run and has not answered yet is no loss: it waits for its first use, or starts. */
function backendStatus(
  before: BackendSnapshot['status'] | undefined,
  { status, own }: Pick<BackendSnapshot, 'status' | 'own'>,
): BackendSnapshot['status'] {
  const comes = own !== undefined && ['idle', 'starting', 'running'].includes(own.status);
  const wasThere = before === 'up' || before === 'down';
  return status === 'down' && comes && !wasThere ? 'unknown' : status;
}

/** What is to be told of a backend, and the status that then counts as told. */
export function backendNews(
  before: BackendSnapshot['status'] | undefined,
  snapshot: BackendSnapshot,
  found: boolean,
): { readonly status: BackendSnapshot['status']; readonly events: readonly NewEvent[] } {
  const status = backendStatus(before, snapshot);
  return { status, events: backendEvents(before, status, snapshot, found) };
}

function backendEvents(
  before: BackendSnapshot['status'] | undefined,
  status: BackendSnapshot['status'],
  snapshot: BackendSnapshot,
  found: boolean,
): readonly NewEvent[] {
  if (before === status) return [];
  const base = { backend: snapshot.name, numbers: { models: snapshot.models.length } };
  if (status === 'up') {
    const models = `${snapshot.models.length} ${snapshot.models.length === 1 ? 'model' : 'models'}`;
    const reason =
      snapshot.kind === 'embedded'
        ? `The built-in engine has ${models}.`
        : `${snapshot.name} answers at ${snapshot.url}: ${models}.`;
    if (before === undefined || before === 'unknown')
      return [
        {
          ...base,
          kind: found ? 'backend_found' : 'backend_up',
          reason: found
            ? `${reason} It was found by itself and is only watched until you turn the guards on for it.`
            : reason,
        },
      ];
    return [{ ...base, kind: 'backend_up', reason: `${reason} It was away.` }];
  }
  if (status === 'down' && before !== undefined)
    return [
      {
        ...base,
        kind: 'backend_down',
        reason: `${snapshot.name} does not answer at ${snapshot.url}${snapshot.error === null ? '.' : `: ${snapshot.error}`}`,
      },
    ];
  return [];
}
