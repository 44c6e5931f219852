import { fail, ok } from '../../../shared/errors.ts';
import type { Clock } from '../clock.ts';
import { backOff } from '../devices/back-off.ts';
import type { Backend, BackendChange, BackendSnapshot, ObservedModel } from './backend.ts';
import { field, httpClient, objectionTo } from './http.ts';
import { textOf } from './models-list.ts';

export interface OpenAiTimings {
  /** While it answers: a list of models changes rarely, and others ask it too. */
  readonly pollMs: number;
  readonly firstBackoffMs: number;
  readonly lastBackoffMs: number;
  readonly requestTimeoutMs: number;
}

const DEFAULT_TIMINGS: OpenAiTimings = {
  pollMs: 30_000,
  firstBackoffMs: 1_000,
  lastBackoffMs: 60_000,
  requestTimeoutMs: 10_000,
};

/**
 * Any server that speaks OpenAI's API: vLLM, GPUStack, Ray Serve, another VRAM Landlord. Its list of models
 * (`GET /v1/models`) is all that is read; what it holds, what is busy and where, it does not tell. Asked less
 * and less often while it does not answer.
 */
export function openAiBackend(options: {
  readonly name: string;
  readonly url: string;
  readonly clock: Clock;
  readonly apiKey?: string | null;
  readonly timings?: Partial<OpenAiTimings>;
}): Backend {
  const { name, url, clock } = options;
  const timings = { ...DEFAULT_TIMINGS, ...options.timings };
  const http = httpClient(url, options.apiKey ?? null);
  const wait = backOff(timings.firstBackoffMs, timings.lastBackoffMs);
  const stopped = new AbortController();
  let listener: ((change: BackendChange) => void) | null = null;
  let timer: NodeJS.Timeout | null = null;
  let looking: Promise<void> | null = null;
  let models: readonly ObservedModel[] = [];
  let status: BackendSnapshot['status'] = 'unknown';
  let sinceMs: number | null = null;
  let error: string | null = null;
  let takenAtMs = 0;

  const emit = (what: BackendChange['what']): void => {
    try {
      listener?.({ backend: name, model: null, what, atMs: clock.monotonicMs() });
    } catch {
      // A listener that fails must not end the watching.
    }
  };
  const set = (next: BackendSnapshot['status'], why: string | null): void => {
    error = why;
    if (next === status) return;
    status = next;
    sinceMs = clock.monotonicMs();
    emit(next === 'up' ? 'up' : 'down');
  };

  const look = async (): Promise<void> => {
    const answer = await http.get('/v1/models', {
      timeoutMs: timings.requestTimeoutMs,
      signal: stopped.signal,
    });
    if (stopped.signal.aborted) return;
    const nowMs = clock.monotonicMs();
    const objection = objectionTo(answer, url, '/v1/models');
    const told = answer.kind === 'answer' ? field(answer.json, 'data') : undefined;
    // Go writes an empty list as null.
    const list = told === null ? [] : told;
    if (objection !== null || !Array.isArray(list)) {
      wait.failed(nowMs);
      set(
        'down',
        objection ?? `${url}/v1/models gives no list of models: correct the backend's url or kind.`,
      );
      return;
    }
    wait.worked();
    takenAtMs = nowMs;
    const before = JSON.stringify(models.map((model) => model.name));
    const known = new Map(models.map((model) => [model.name, model]));
    const names = new Set(list.flatMap((entry) => textOf(field(entry, 'id')) ?? []));
    models = [...names].map((id) => known.get(id) ?? observed(id, nowMs));
    set('up', null);
    if (before !== JSON.stringify(models.map((model) => model.name))) emit('list');
  };

  const refresh = (): Promise<void> => {
    looking ??= look().finally(() => {
      looking = null;
      if (timer !== null) clearTimeout(timer);
      const inMs = status === 'up' ? timings.pollMs : Math.max(wait.waitMs, timings.firstBackoffMs);
      timer = stopped.signal.aborted ? null : setTimeout(() => void refresh(), inMs);
    });
    return looking;
  };

  const notOurs = (what: string) =>
    fail(
      'not_supported',
      `${name} loads and unloads its models by itself: it can't be asked to ${what} one.`,
    );

  return {
    name,
    kind: 'openai',
    url,
    start(onChange) {
      listener = onChange;
      void refresh();
    },
    async stop() {
      listener = null;
      stopped.abort();
      if (timer !== null) clearTimeout(timer);
      await looking;
      http.close();
    },
    snapshot: () => ({
      name,
      kind: 'openai',
      url,
      status,
      sinceMs,
      error,
      version: null,
      models,
      takenAtMs,
      tellsBusy: false,
      notes:
        status === 'up'
          ? ['It tells the names of its models and no more: what is loaded, busy or held is its own to know.']
          : [],
    }),
    load: async (model) => (models.some((one) => one.name === model) ? ok(undefined) : notOurs('load')),
    unload: async () => notOurs('unload'),
    confirmIdle: async (model) => ({ busy: null, why: `${name} does not tell whether ${model} works` }),
    refresh,
  };
}

/** It answers for it, wherever its memory is. */
function observed(name: string, sinceMs: number): ObservedModel {
  return {
    name,
    aliases: [],
    status: 'loaded',
    busy: null,
    lastBusyAtMs: null,
    sinceMs,
    args: null,
    modelPath: null,
    port: null,
    process: null,
    processNote: 'Its server tells the names of its models alone.',
    contextTokens: null,
    loadProgress: null,
    reportedBytes: null,
    stopTimeoutMs: null,
    failure: null,
    isElsewhere: true,
    isFixed: true,
  };
}
