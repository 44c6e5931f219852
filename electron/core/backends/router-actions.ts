import { fail, ok, type Result } from '../../../shared/errors.ts';
import { parseMetrics } from './activity.ts';
import type { BusyAnswer } from './backend.ts';
import { field, type HttpAnswer, type HttpClient, type HttpFailure, objectionTo, saidBy } from './http.ts';
import type { RouterInput, TrackedModel } from './router-state.ts';
import { parseProps } from './server-props.ts';

/** A load or an unload is accepted at once; a router that takes longer is stuck on a swap. */
const ACCEPT_MS = 10_000;
/** A model in the middle of a prompt's batch answers nothing until the batch is done. */
const SLOTS_MS = 1_500;

export interface RouterActions {
  load(model: string, signal: AbortSignal): Promise<Result<void>>;
  unload(model: string, signal: AbortSignal): Promise<Result<void>>;
  confirmIdle(model: string, signal: AbortSignal): Promise<BusyAnswer>;
}

export interface ActionContext {
  readonly backend: string;
  readonly http: HttpClient;
  readonly isSingle: () => boolean;
  /** By name or alias. */
  readonly find: (model: string) => TrackedModel | null;
  readonly apply: (input: RouterInput) => void;
  readonly nowMs: () => number;
  readonly refresh: () => Promise<void>;
  /** The last look at it, from CPU time and counters. */
  readonly seenBusy: (model: string) => boolean | null;
}

/** Everything we ever ask of a router that changes something, and the one question that may disturb a model. */
export function routerActions(context: ActionContext): RouterActions {
  const loads = new Map<string, Promise<Result<void>>>();
  return {
    async load(model, signal) {
      if (context.isSingle()) return notSupported(context, 'load');
      const known = context.find(model);
      const name = known?.name ?? model;
      if (known?.status === 'stopping') {
        return fail(
          'model_busy',
          `${context.backend}/${name} is being unloaded; load it again when it is gone.`,
        );
      }
      if (known?.status === 'loading' || known?.status === 'loaded' || known?.status === 'sleeping') {
        return ok(undefined);
      }
      // One load in flight for each model: whoever else wants it waits for the same answer.
      let load = loads.get(name);
      if (load === undefined) {
        load = postLoad(context, name).finally(() => loads.delete(name));
        loads.set(name, load);
      }
      return await orCancelled(load, signal, `the load of ${context.backend}/${name}`);
    },

    async unload(model, signal) {
      if (context.isSingle()) return notSupported(context, 'unload');
      const name = context.find(model)?.name ?? model;
      return await orCancelled(postUnload(context, name), signal, `the unload of ${context.backend}/${name}`);
    },

    confirmIdle: (model, signal) => confirmIdle(context, model, signal),
  };
}

async function postLoad(context: ActionContext, name: string): Promise<Result<void>> {
  const answer = await context.http.post('/models/load', { model: name }, { timeoutMs: ACCEPT_MS });
  // Its list has the child's port; where there are no events it also has the new state.
  void context.refresh();
  if (answer.kind === 'answer' && /already running|already loaded/.test(saidBy(answer) ?? '')) {
    return ok(undefined);
  }
  return accepted(context, name, answer, '/models/load');
}

async function postUnload(context: ActionContext, name: string): Promise<Result<void>> {
  context.apply({ type: 'unload_asked', model: name, atMs: context.nowMs() });
  const answer = await context.http.post('/models/unload', { model: name }, { timeoutMs: ACCEPT_MS });
  if (answer.kind === 'answer' && /not running|not loaded/.test(saidBy(answer) ?? '')) {
    // Gone before we asked: what the list says now stands.
    context.apply({ type: 'unload_refused', model: name, atMs: context.nowMs() });
    await context.refresh();
    return ok(undefined);
  }
  const result = accepted(context, name, answer, '/models/unload');
  // Without an answer it may be under way all the same; only a refusal takes `stopping` back.
  if (!result.ok && answer.kind === 'answer') {
    context.apply({ type: 'unload_refused', model: name, atMs: context.nowMs() });
  }
  void context.refresh();
  return result;
}

function accepted(context: ActionContext, name: string, answer: HttpAnswer, path: string): Result<void> {
  if (answer.kind === 'failed') {
    return answer.reason === 'timed_out'
      ? fail('timed_out', `${answer.message} The router may be stuck on a swap: look at its log.`)
      : fail('backend_unreachable', answer.message);
  }
  if (answer.status === 404) {
    return fail(
      'unknown_model',
      `${context.backend} knows no model ${name}: see landlord models for those it has.`,
    );
  }
  const objection = objectionTo(answer, context.http.baseUrl, path);
  if (objection !== null) return fail('backend_refused', objection);
  if (field(answer.json, 'success') === false) {
    return fail(
      'backend_refused',
      `${context.backend} refused ${name}: ${saidBy(answer) ?? 'no reason given'}.`,
    );
  }
  return ok(undefined);
}

/** The answer, or `cancelled` as soon as the caller gives up; what was asked goes on. */
async function orCancelled(
  work: Promise<Result<void>>,
  signal: AbortSignal,
  what: string,
): Promise<Result<void>> {
  const cancelled = (): Result<void> => fail('cancelled', `Nobody waits any more for ${what}; it goes on.`);
  if (signal.aborted) return cancelled();
  const gaveUp = Promise.withResolvers<Result<void>>();
  const onAbort = (): void => gaveUp.resolve(cancelled());
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, gaveUp.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function notSupported(context: ActionContext, what: 'load' | 'unload'): Result<void> {
  return fail(
    'not_supported',
    `${context.backend} at ${context.http.baseUrl} is a single llama-server, which can't ${what} its model on request: ${
      what === 'unload' ? 'stop its process, or ' : 'it loads when it starts; '
    }run it as a router (llama-server with --models-preset and no model), or give it --sleep-idle-seconds.`,
  );
}

/**
 * Asks the model itself whether it works. `/slots` wakes one that sleeps and resets one's sleep timer,
 * so it is asked of a loaded one only, after `/props` (which does neither) has said that it is awake.
 */
async function confirmIdle(context: ActionContext, wanted: string, signal: AbortSignal): Promise<BusyAnswer> {
  const model = context.find(wanted);
  if (model === null) return { busy: null, why: `${context.backend} lists no model ${wanted}.` };
  if (model.status === 'loading' || model.status === 'stopping') {
    return { busy: null, why: `${model.name} is ${model.status}: nothing can be asked of it.` };
  }
  if (model.status !== 'loaded') return { busy: false };
  const query = context.isSingle() ? '' : `?model=${encodeURIComponent(model.name)}&autoload=false`;
  const limits = { timeoutMs: SLOTS_MS, signal };
  const awake = await context.http.get(`/props${query}`, limits);
  if (isNotLoaded(awake)) return { busy: false };
  if (awake.kind === 'answer' && parseProps(awake.json)?.isSleeping === true) return { busy: false };
  if (awake.kind === 'failed') return unheard(context, model.name, awake);
  // A request that waits for a slot is in no slot yet: only the counters know of it.
  const counting = model.tellsMetrics ? context.http.get(`/metrics${query}`, limits) : null;
  const slots = await context.http.get(`/slots${query}`, limits);
  if (isNotLoaded(slots)) return { busy: false };
  if (slots.kind === 'failed') return unheard(context, model.name, slots);
  if (!Array.isArray(slots.json)) {
    return { busy: null, why: `${model.name} does not tell its slots: ${saidBy(slots) ?? 'no list'}.` };
  }
  const working = slots.json.filter((slot) => field(slot, 'is_processing') === true);
  if (working.length > 0) {
    return { busy: true, detail: `${working.length} of ${slots.json.length} slots of ${model.name} work.` };
  }
  const metrics = await counting;
  const counted = metrics?.kind === 'answer' && metrics.status === 200 ? parseMetrics(metrics.text) : null;
  if (counted !== null && counted.processing + counted.deferred > 0) {
    return { busy: true, detail: `${counted.deferred} requests wait for ${model.name}.` };
  }
  return { busy: false };
}

function unheard(context: ActionContext, name: string, failure: HttpFailure): BusyAnswer {
  if (failure.reason !== 'timed_out') return { busy: null, why: failure.message };
  return context.seenBusy(name) === true
    ? { busy: true, detail: `${name} uses its processor and does not answer: it is deep in a prompt.` }
    : { busy: null, why: `${name} did not say within ${SLOTS_MS} ms what it does.` };
}

function isNotLoaded(answer: HttpAnswer): boolean {
  return answer.kind === 'answer' && answer.status === 400 && /not loaded/.test(saidBy(answer) ?? '');
}
