import { fail, ok, type Result } from '../../../shared/errors.ts';
import { type Metrics, parseMetrics } from './activity.ts';
import type { BusyAnswer } from './backend.ts';
import type { ChildWatch } from './child-watch.ts';
import { field, type HttpAnswer, type HttpClient, type HttpFailure, objectionTo, saidBy } from './http.ts';
import { integerOf } from './models-list.ts';
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
  /** Its events come in, so that a model that falls asleep is known to at once. */
  readonly isTold: () => boolean;
  /** See `ChildWatch.asked`. */
  readonly asked: ChildWatch['asked'];
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
      `${context.backend} refused ${name}: ${clause(saidBy(answer) ?? 'no reason given')}.`,
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
 * Asks the model itself whether it works: in one question where it has counters, since those tell as
 * much as its slots, what waits for one besides, and leave its sleep timer alone. `/slots` wakes one that
 * sleeps and resets that timer, so it is asked of a loaded one only, and where events do not tell of
 * sleep, after `/props` (which does neither) has said that it is awake.
 */
async function confirmIdle(context: ActionContext, wanted: string, signal: AbortSignal): Promise<BusyAnswer> {
  const model = context.find(wanted);
  if (model === null) return { busy: null, why: `${context.backend} lists no model ${wanted}` };
  if (model.status === 'loading' || model.status === 'stopping') {
    return { busy: null, why: `${model.name} is ${model.status}: nothing can be asked of it` };
  }
  if (model.status !== 'loaded') return { busy: false };
  if (model.oddStatus !== null) {
    return {
      busy: null,
      why: `${model.name} is in a state that this version does not know (“${model.oddStatus}”)`,
    };
  }
  const query = context.isSingle() ? '' : `?model=${encodeURIComponent(model.name)}&autoload=false`;
  const limits = { timeoutMs: SLOTS_MS, signal };
  if (!context.isTold()) {
    const awake = await context.http.get(`/props${query}`, limits);
    if (isNotLoaded(awake)) return { busy: false };
    if (awake.kind === 'answer' && parseProps(awake.json)?.isSleeping === true) return { busy: false };
    if (awake.kind === 'failed') return unheard(context, model.name, awake);
  }
  if (model.tellsMetrics) {
    const answer = await context.http.get(`/metrics${query}`, limits);
    if (isNotLoaded(answer)) return { busy: false };
    if (answer.kind === 'failed') return unheard(context, model.name, answer);
    const counted = answer.status === 200 ? parseMetrics(answer.text) : null;
    if (counted !== null) return afterCounting(context, model.name, counted);
  }
  const slots = await context.http.get(`/slots${query}`, limits);
  if (isNotLoaded(slots)) return { busy: false };
  if (slots.kind === 'failed') return unheard(context, model.name, slots);
  if (!Array.isArray(slots.json)) {
    const said = clause(saidBy(slots) ?? 'no list');
    return { busy: null, why: `${model.name} does not tell its slots: ${said}` };
  }
  return afterSlots(context, model.name, slots.json);
}

function afterCounting(context: ActionContext, name: string, counted: Metrics): BusyAnswer {
  const { processing, deferred } = counted;
  if (processing > 0) return { busy: true, detail: `${requests(processing)} at work in ${name}` };
  if (deferred > 0) return { busy: true, detail: `${requests(deferred)} waiting for ${name}` };
  return justUsed(context, name, { counters: counted.counters ?? null, tasks: null });
}

function afterSlots(context: ActionContext, name: string, slots: readonly unknown[]): BusyAnswer {
  const working = slots.filter((slot) => field(slot, 'is_processing') === true);
  if (working.length > 0) {
    return { busy: true, detail: `${working.length} of ${slots.length} slots of ${name} work` };
  }
  // The number of the task a slot last worked on; our own questions get numbers but no slot.
  const tasks = slots.map((slot) => String(integerOf(field(slot, 'id_task')) ?? '')).join(' ');
  return justUsed(context, name, { counters: null, tasks });
}

/** Works on nothing now; but one that has served somebody unseen is not idle: its time begins anew. */
function justUsed(
  context: ActionContext,
  name: string,
  told: Parameters<ChildWatch['asked']>[1],
): BusyAnswer {
  return context.asked(name, told)
    ? { busy: true, detail: `${name} has served a request since it was last looked at` }
    : { busy: false };
}

/** Without its full stop, so that it can stand in another sentence. */
function clause(sentence: string): string {
  return sentence.replace(/\.\s*$/, '');
}

function requests(count: number): string {
  return count === 1 ? '1 request is' : `${count} requests are`;
}

function unheard(context: ActionContext, name: string, failure: HttpFailure): BusyAnswer {
  if (failure.reason !== 'timed_out') return { busy: null, why: clause(failure.message) };
  return context.seenBusy(name) === true
    ? { busy: true, detail: `${name} uses its processor and does not answer: it is deep in a prompt` }
    : { busy: null, why: `${name} did not say within ${SLOTS_MS} ms what it does` };
}

function isNotLoaded(answer: HttpAnswer): boolean {
  return answer.kind === 'answer' && answer.status === 400 && /not loaded/.test(saidBy(answer) ?? '');
}
