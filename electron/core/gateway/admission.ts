import { fail, ok, type Result } from '../../../shared/errors.ts';
import { type CommandContext, type LoadOptions, loadModel } from '../loop/load-command.ts';
import type { ModelView } from '../loop/model-view.ts';

/**
 * `ready`   the model is there, or its load has been admitted and is done
 * `unsure`  we can't tell what a load would need, so the backend loads by itself as it would without us
 */
export type Admitted = 'ready' | 'unsure';

export interface Admission {
  /**
   * Immediately `ready` for a model that is awake: null means that there is nothing to wait for.
   */
  admit(modelId: string, signal: AbortSignal, options: LoadOptions): Promise<Result<Admitted>> | null;
}

/** How long a turn waits for a backend that was there when it came. */
const SILENT_LIMIT_MS = 60_000;

/** A model on its way out has to be gone before it can come again. */
const STOPPING_LIMIT_MS = 60_000;

/**
 * Makes sure that a model is loaded before a request goes to it: booked, room made, one load at a time
 * (loadModel). A client that leaves while its model loads does not stop the load: it, or the next one,
 * comes back for it.
 *
 * Errors: `vram_denied`, `big_models_asleep`, `unknown_model`, `backend_unreachable`, `backend_refused`, `timed_out`, `cancelled`.
 */
export function createAdmission(context: CommandContext, stopping: AbortSignal): Admission {
  const { loop } = context;

  const load = async (
    modelId: string,
    signal: AbortSignal,
    options: LoadOptions,
  ): Promise<Result<Admitted>> => {
    if (loop.models.get(modelId)?.status === 'stopping') {
      const left = (): boolean => loop.models.get(modelId)?.status !== 'stopping';
      if (!(await loop.until(left, STOPPING_LIMIT_MS, signal)))
        return signal.aborted
          ? fail('cancelled', 'The client left.')
          : fail('timed_out', `${modelId} is being unloaded and does not leave; see \`landlord status\`.`);
    }
    let view = loop.models.get(modelId);
    if (view === null && !isUp(context, backendOf(modelId))) {
      // Of a server that is silent or starts anew no model is known: that is no word on this one.
      await loop.until(() => isUp(context, backendOf(modelId)), SILENT_LIMIT_MS, signal);
      if (signal.aborted) return fail('cancelled', 'The client left.');
      if (!isUp(context, backendOf(modelId))) return silent(backendOf(modelId), modelId);
      view = loop.models.get(modelId);
    }
    if (view === null) return fail('unknown_model', `${modelId} is no longer listed by its backend.`);
    const done = await unlessLeft(
      loadModel(context, view, false, stopping, { ...options, wakes: true }),
      signal,
    );
    if (done.ok) return ok('ready');
    // Without a device to book on, or a load to ask for, there is nothing to admit to: the backend goes on as it would without us.
    const isUnsure = done.error.code === 'unknown_device' || done.error.code === 'not_supported';
    return isUnsure ? ok('unsure') : done;
  };
  return {
    admit(modelId, signal, options) {
      const view = loop.models.get(modelId);
      return view !== null && isAwake(context, view) ? null : load(modelId, signal, options);
    },
  };
}

export function isUp({ fleet }: Pick<CommandContext, 'fleet'>, backend: string): boolean {
  return fleet.get(backend)?.snapshot().status === 'up';
}

/** The refusal of a request for what a backend had before it fell silent. */
export function silent(backend: string, wanted: string): Result<never> {
  return fail(
    'backend_unreachable',
    `${backend} does not answer now, so ${wanted} can't be asked. \`landlord status\` says whether it is up.`,
  );
}

function backendOf(modelId: string): string {
  return modelId.slice(0, modelId.indexOf('/'));
}

/** Loaded, or asleep with what its waking takes booked: a request may go to it. */
export function isAwake({ loop }: Pick<CommandContext, 'loop'>, { id, status }: ModelView): boolean {
  return status === 'loaded' || (status === 'sleeping' && loop.isPromised(id));
}

function unlessLeft<T>(work: Promise<Result<T>>, signal: AbortSignal): Promise<Result<T>> {
  if (signal.aborted) return Promise.resolve(fail('cancelled', 'The client left.'));
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(fail('cancelled', 'The client left.'));
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** What `GET /v1/models` says of a model. */
export type Availability = 'loaded' | 'loading' | 'asleep' | 'fits' | 'needs_evictions';

/** Whether a model is there, or would fit now; null where the figures are not known. */
export function availabilityOf(
  { loop, ledger, clock }: CommandContext,
  view: ModelView,
): Availability | null {
  switch (view.status) {
    case 'loaded':
    case 'loading':
      return view.status;
    case 'sleeping':
      return 'asleep';
    default:
      break;
  }
  if (loop.wishes.sleep !== null && view.big) return 'asleep';
  const book = view.deviceId === null ? null : ledger.book(view.deviceId, clock.monotonicMs());
  const need = view.predictedBytes;
  if (book === null || need === null) return null;
  const { freeBytes, capBytes, floorBytes, bookedBytes, outstandingBytes } = book;
  if (freeBytes === null || capBytes === null || floorBytes === null) return null;
  const fits = bookedBytes + need <= capBytes && freeBytes - outstandingBytes - need >= floorBytes;
  return fits ? 'fits' : 'needs_evictions';
}
