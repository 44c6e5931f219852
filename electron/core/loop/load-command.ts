import { fail, type LandlordError, ok, type Result } from '../../../shared/errors.ts';
import { formatDuration } from '../../../shared/format.ts';
import type { Clock } from '../clock.ts';
import type { ControlLoop } from '../control-loop.ts';
import type { Denial } from '../ledger/booking.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { CommandDone } from '../runtime-api.ts';
import { bookingId } from './book-keeping.ts';
import type { Fleet } from './fleet.ts';
import type { Journal } from './journal.ts';
import type { LoadWatch } from './load-watch.ts';
import { holdsMemory, type ModelView } from './model-view.ts';
import type { Models } from './models.ts';
import type { Offers } from './offers.ts';
import { makeRoomFor, type RoomWish, whoStays } from './room.ts';
import type { Services } from './services.ts';

export interface CommandContext {
  readonly loop: ControlLoop;
  readonly fleet: Fleet;
  readonly ledger: Ledger;
  readonly journal: Journal;
  readonly loads: LoadWatch;
  readonly clock: Clock;
  /** Loads of ours that have not ended: whoever asks for one of them joins it. */
  readonly inFlight: Map<string, Promise<Result<CommandDone>>>;
  /** What only a person does; left out: nothing is offered. */
  readonly offers?: Offers;
  /** Left out: no server can be started anew. */
  readonly services?: Services;
  /** Models that agents of the engine hold memory with; left out: none. */
  readonly agentsHold?: () => readonly string[];
  /** Puts an agent of the engine away; null: there is none of this name. Left out: there are no agents. */
  readonly putAgentAway?: (name: string, force: boolean) => Promise<Result<CommandDone> | null>;
}

/** A 27B from a slow disk takes minutes; a load that shows nothing for longer has failed. */
const LOAD_LIMIT_MS = 600_000;
/** From our request until the backend says that it loads. */
const BEGIN_LIMIT_MS = 15_000;
/** From our leave until the request that has it has woken the model. */
const WAKE_LIMIT_MS = 30_000;
/** A few readings: what a load before this one took is then told once, not twice. */
const SETTLE_LIMIT_MS = 3_000;

export interface LoadOptions {
  /** Idle models may leave for it; false: it gets in only where there is room already. */
  readonly makeRoom: boolean;
  /** Whoever waits for memory asks again: that it was denied is in the log already. */
  readonly again?: boolean;
  /** A request follows that would wake it where it sleeps: what that takes is booked as for a load. */
  readonly wakes?: boolean;
}

/** One load a model at a time: a second wish waits for the first one's outcome (peers: parallel first requests load duplicates). */
export function loadModel(
  context: CommandContext,
  view: ModelView,
  force: boolean,
  signal: AbortSignal,
  options: LoadOptions = { makeRoom: true },
): Promise<Result<CommandDone>> {
  const running = context.inFlight.get(view.id);
  if (running !== undefined) return running;
  // A person may have said of this model: whatever the figures.
  const forced = force || context.loop.wishes.loadAnyway.includes(view.id);
  const load = loadOnce(context, view, forced, signal, options).finally(() =>
    context.inFlight.delete(view.id),
  );
  context.inFlight.set(view.id, load);
  return load;
}

/**
 * Books, makes room if idle models can give it, then loads (rule 1: book before you build). A load
 * that is refused, fails or is cancelled leaves no trace in the book.
 */
async function loadOnce(
  context: CommandContext,
  view: ModelView,
  force: boolean,
  signal: AbortSignal,
  options: LoadOptions,
): Promise<Result<CommandDone>> {
  const { loop, fleet, loads, clock } = context;
  const backend = fleet.get(view.backend);
  if (backend === null) return fail('unknown_backend', `The backend ${view.backend} is no longer watched.`);
  const wakes = view.status === 'sleeping' && options.wakes === true;
  if (view.status === 'loaded' || (view.status === 'sleeping' && !wakes))
    return ok({
      message: `${view.id} is ${view.status === 'sleeping' ? 'there already, asleep; it wakes with its next request' : 'loaded already'}.`,
      models: [view.id],
    });
  const startedAtMs = clock.monotonicMs();
  if (view.status !== 'loading') {
    if (loop.orders.draining)
      return fail(
        'draining',
        `Everything is being drained, so ${view.id} was not loaded; ask again when that has ended.`,
      );
    if (loop.wishes.sleep !== null && view.big && !force)
      return fail(
        'big_models_asleep',
        `Big models are asleep${loop.wishes.sleep.untilMs === null ? ' until woken' : ` until ${new Date(loop.wishes.sleep.untilMs).toLocaleTimeString()}`}, so ${view.id} was not loaded. \`landlord wake\` ends that.`,
      );
    await loads.predict(view, loop.models);
    const booked = await book(context, loop.models.get(view.id) ?? view, force, options);
    if (!booked.ok) return booked;
    if (wakes) return awaken(context, view);
    const asked = await backend.load(view.observed.name, signal);
    if (!asked.ok) {
      release(context, view.id);
      // One that can't be asked for has not failed: its server loads with a request.
      if (asked.error.code === 'not_supported') return asked;
      context.journal.tell({
        kind: 'load_failed',
        model: view.id,
        backend: view.backend,
        reason: `${view.observed.name} could not be loaded: ${asked.error.message}`,
        numbers: asked.error.numbers ?? {},
      });
      return asked;
    }
    await backend.refresh();
  }
  const status = (): string => loop.models.get(view.id)?.status ?? 'unloaded';
  const began = await loop.until(() => status() !== 'unloaded', BEGIN_LIMIT_MS, signal);
  if (began) await loop.until(() => status() !== 'loading', LOAD_LIMIT_MS, signal);
  loop.promise(view.id, false);
  if (signal.aborted && status() === 'loading') return cancel(context, view);
  const now = loop.models.get(view.id);
  if (now?.status === 'loaded' || now?.status === 'sleeping')
    return ok({
      message: `${view.id} is loaded after ${formatDuration(clock.monotonicMs() - startedAtMs)}.`,
      numbers: { predictedBytes: now.predictedBytes, measuredBytes: now.measuredBytes },
      models: [view.id],
    });
  release(context, view.id);
  if (now?.status === 'loading')
    return fail(
      'timed_out',
      `${view.id} still loads after ${formatDuration(LOAD_LIMIT_MS)}; see its server's log.`,
    );
  return fail(
    'backend_refused',
    `${view.id} was not loaded: ${now?.observed.failure?.replace(/[.?\s]+$/, '') ?? (began ? 'its server gave it up; see its log' : 'its server accepted the load and then did nothing')}.`,
  );
}

/** Its booking stands until the request has woken it, which the backend does by itself. */
function awaken({ loop }: CommandContext, view: ModelView): Result<CommandDone> {
  const stirred = (): boolean => loop.models.get(view.id)?.status !== 'sleeping';
  void loop.until(stirred, WAKE_LIMIT_MS).then(() => loop.promise(view.id, false));
  return ok({ message: `${view.id} may wake.`, models: [view.id] });
}

async function cancel(context: CommandContext, view: ModelView): Promise<Result<CommandDone>> {
  await context.fleet.get(view.backend)?.unload(view.observed.name, AbortSignal.timeout(5_000));
  release(context, view.id);
  return fail('cancelled', `The load of ${view.id} was cancelled.`);
}

function release(context: CommandContext, modelId: string): void {
  context.loop.promise(modelId, false);
  context.ledger.release(bookingId(modelId));
}

/** One booking, after room was made where idle models can make it. */
async function book(
  context: CommandContext,
  view: ModelView,
  force: boolean,
  options: LoadOptions,
): Promise<Result<void>> {
  const { loop, ledger, clock } = context;
  if (view.deviceId === null)
    return force
      ? ok(undefined)
      : fail(
          'unknown_device',
          `It can't be told which device ${view.id} would load on. Set \`device\` for the backend ${view.backend} in the config, or force the load.`,
        );
  const line = {
    id: bookingId(view.id),
    kind: 'model',
    name: view.id,
    deviceId: view.deviceId,
  } as const;
  const reserve = (forced: boolean): Result<void, Denial> => {
    const nowMs = clock.monotonicMs();
    // One that sleeps has a line for the little it holds, in whose place this one comes.
    const asleep = view.status === 'sleeping' ? ledger.booking(line.id) : null;
    const heldBytes = asleep?.measuredBytes ?? asleep?.predictedBytes ?? 0;
    if (asleep !== null) ledger.release(line.id);
    const result = ledger.reserve({
      ...line,
      predictedBytes: view.predictedBytes === null ? null : Math.max(0, view.predictedBytes - heldBytes),
      soleBig: view.big && isSoleBig(loop, view),
      forced,
      nowMs,
    });
    if (asleep !== null && !result.ok)
      ledger.reserve({ ...line, predictedBytes: heldBytes, forced: true, nowMs });
    if (!result.ok) return result;
    if (asleep !== null && view.predictedBytes !== null) ledger.correct(line.id, view.predictedBytes);
    if (asleep !== null) ledger.seen(line.id, heldBytes);
    loop.promise(view.id, true);
    return ok(undefined);
  };
  let first = reserve(force);
  if (!first.ok && ledger.mayYetFit(view.deviceId, first.error)) {
    const { error } = first;
    await loop.until(() => !ledger.mayYetFit(view.deviceId ?? '', error), SETTLE_LIMIT_MS);
    first = reserve(force);
  }
  if (first.ok) return first;
  const wish = { deviceId: view.deviceId, name: view.id, modelId: view.id };
  const roomMade = options.makeRoom && (await makeRoomFor(loop, { ...wish, denial: first.error }));
  const second = roomMade ? reserve(false) : first;
  return second.ok ? second : deny(context, { ...wish, denial: second.error }, view, options);
}

/** Nothing else that is big is on its device, nor about to be: two that ask at once are not both alone. */
export function isSoleBig(
  loop: { readonly models: Pick<Models, 'views'>; isPromised(modelId: string): boolean },
  view: ModelView,
): boolean {
  const others = loop.models
    .views()
    .filter((other) => other.id !== view.id && other.deviceId === view.deviceId && other.big);
  return !others.some((other) => holdsMemory(other.status) || loop.isPromised(other.id));
}

/** Rule 4: the denial with its numbers, and what would have to go. */
function deny(
  context: CommandContext,
  wish: RoomWish,
  view: ModelView,
  { again = false }: LoadOptions,
): Result<never> {
  const { denial } = wish;
  const error: LandlordError = {
    code: 'vram_denied',
    message: denial.message + whoStays(context.loop, wish, context.ledger.bookedOn(wish.deviceId)),
    numbers: {
      capBytes: denial.capBytes,
      bookedBytes: denial.bookedBytes,
      requestedBytes: denial.requestedBytes,
      freeBytes: denial.freeBytes,
      floorBytes: denial.floorBytes,
      outstandingBytes: denial.outstandingBytes,
      shortBytes: denial.shortBytes,
    },
  };
  if (again) return { ok: false, error };
  context.journal.tell({
    kind: 'denied',
    model: view.id,
    backend: view.backend,
    ...(view.deviceId === null ? {} : { deviceId: view.deviceId }),
    reason: error.message,
    numbers: error.numbers ?? {},
  });
  return { ok: false, error };
}
