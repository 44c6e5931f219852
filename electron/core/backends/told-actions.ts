import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { Backend } from './backend.ts';
import type { Ask, Dialect } from './dialects/dialect.ts';
import type { ToldInput, WatchedModel } from './told-state.ts';

export interface ToldContext {
  readonly backend: string;
  readonly ask: Ask;
  readonly dialect: Dialect;
  /** An answer that takes longer is waited for behind the caller's back. */
  readonly acceptMs: number;
  /** By name or alias. */
  readonly find: (model: string) => WatchedModel | null;
  readonly apply: (input: ToldInput) => void;
  readonly nowMs: () => number;
  readonly refresh: () => Promise<void>;
}

/** Loads and unloads. These servers answer when it is done: what is still open after a moment counts as accepted. */
export function toldActions(context: ToldContext): Pick<Backend, 'load' | 'unload'> {
  const { backend, dialect, apply, nowMs } = context;
  const loads = new Map<string, Promise<Result<void>>>();

  const startLoad = (model: WatchedModel, load: NonNullable<Dialect['load']>): Promise<Result<void>> => {
    apply({ type: 'load_asked', model: model.name, atMs: nowMs() });
    const loading = load(context.ask, model.told)
      .then((result) => {
        // What can't be asked for at all has not failed.
        const isNone = result.ok || result.error.code === 'not_supported';
        const failure = isNone ? null : `${model.name} was not loaded: ${result.error.message}`;
        apply({ type: 'load_ended', model: model.name, failure, atMs: nowMs() });
        return result;
      })
      .finally(() => {
        loads.delete(model.name);
        void context.refresh();
      });
    loads.set(model.name, loading);
    return loading;
  };

  return {
    async load(wanted, signal) {
      const model = context.find(wanted);
      if (model === null) {
        return fail(
          'unknown_model',
          `${backend} knows no model ${wanted}: see landlord models for those it has.`,
        );
      }
      if (dialect.load === null)
        return fail('not_supported', dialect.cannot ?? `${dialect.title} can't load.`);
      if (model.status === 'stopping') {
        return fail(
          'model_busy',
          `${backend}/${model.name} is being unloaded; load it again when it is gone.`,
        );
      }
      // One load in flight for each model: whoever else wants it waits for the same answer.
      const running = loads.get(model.name);
      if (
        running === undefined &&
        (model.status === 'loading' || model.status === 'loaded' || model.status === 'sleeping')
      ) {
        return ok(undefined);
      }
      const load = running ?? startLoad(model, dialect.load);
      return await soonOrAccepted(load, context.acceptMs, signal, `the load of ${backend}/${model.name}`);
    },

    async unload(wanted, signal) {
      const model = context.find(wanted);
      if (model === null) return fail('unknown_model', `${backend} knows no model ${wanted}.`);
      if (dialect.unload === null)
        return fail('not_supported', dialect.cannot ?? `${dialect.title} can't unload.`);
      if (model.status === 'unloaded' || model.status === 'failed') return ok(undefined);
      apply({ type: 'unload_asked', model: model.name, atMs: nowMs() });
      const unloading = dialect.unload(context.ask, model.told).then((result) => {
        // Without an answer it may be under way all the same; only a refusal takes `stopping` back.
        const isRefused = !result.ok && result.error.code !== 'timed_out';
        if (isRefused) apply({ type: 'unload_refused', model: model.name, atMs: nowMs() });
        void context.refresh();
        return result;
      });
      return await soonOrAccepted(
        unloading,
        context.acceptMs,
        signal,
        `the unload of ${backend}/${model.name}`,
      );
    },
  };
}

async function soonOrAccepted(
  work: Promise<Result<void>>,
  acceptMs: number,
  signal: AbortSignal,
  what: string,
): Promise<Result<void>> {
  const cancelled = (): Result<void> => fail('cancelled', `Nobody waits any more for ${what}; it goes on.`);
  if (signal.aborted) return cancelled();
  const early = Promise.withResolvers<Result<void>>();
  const onAbort = (): void => early.resolve(cancelled());
  signal.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(() => early.resolve(ok(undefined)), acceptMs);
  try {
    return await Promise.race([work, early.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
