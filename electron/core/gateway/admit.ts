import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { TurnClass } from '../gate/sidecar.ts';
import type { ModelView } from '../loop/model-view.ts';
import { availabilityOf, isAwake } from './admission.ts';
import type { Exchange } from './exchange.ts';
import type { GatewayParts } from './gateway.ts';
import type { Asker } from './outcome.ts';
import type { Route } from './route.ts';
import { standsAs } from './turnover.ts';
import type { Waiting } from './waiting.ts';

const RETRY_EVERY_MS = 2_000;

/**
 * Has the model of a request loaded, or waits until it may be; waits only where its agent does.
 * At once where it is there and nobody else's turn for its memory has come.
 * Errors: those of admission.ts, and `local_backend_busy` where another one's turn for that memory has come.
 */
export function admit(
  parts: GatewayParts,
  exchange: Exchange,
  { view }: Route,
  asker: Asker,
  waiting: Waiting | null,
): Result<void> | Promise<Result<void>> {
  if (view === null || exchange.work === 'other') return ok(undefined);
  if (isThere(parts, view) && parts.turnover.before(view, asker.conduct.class) === null) return ok(undefined);
  return admitLater(parts, exchange, view, asker, waiting);
}

function isThere({ context }: GatewayParts, view: ModelView): boolean {
  const now = context.loop.models.get(view.id);
  return now !== null && isAwake(context, now);
}

async function admitLater(
  parts: GatewayParts,
  exchange: Exchange,
  view: ModelView,
  asker: Asker,
  waiting: Waiting | null,
): Promise<Result<void>> {
  const fromMs = parts.monotonicMs();
  const { class: turnClass, memoryWaitMs, toldToWait } = asker.conduct;
  const standing = (): TurnClass => standsAs(turnClass, parts.monotonicMs() - fromMs);
  let place: Disposable | null = null;
  try {
    for (;;) {
      const denied = await tryOnce(parts, exchange, view, asker, standing(), waiting, place !== null);
      if (denied === null) return ok(undefined);
      const remainingMs = fromMs + memoryWaitMs - parts.monotonicMs();
      if (remainingMs <= 0 || !mayPass(parts, view, denied, toldToWait)) return denied.result;
      waiting?.begin(`waiting: ${denied.why}`);
      if (denied.code === 'vram_denied')
        place ??= parts.turnover.wait({
          modelId: view.id,
          deviceId: view.deviceId,
          class: turnClass,
          sinceMs: fromMs,
        });
      if (!(await waitFor(parts, exchange, view, standing, denied, remainingMs))) return denied.result;
    }
  } finally {
    place?.[Symbol.dispose]();
    exchange.waitedMs += parts.monotonicMs() - fromMs;
  }
}

interface Denied {
  readonly code: string;
  /** For those who wait, in a few words. */
  readonly why: string;
  readonly result: Result<never>;
  /** Another turn's end, or a moment (monotonic ms), is all that is in the way. */
  readonly passes: { readonly atMs: number } | 'by_itself' | null;
}

/** null: it may go on. */
async function tryOnce(
  parts: GatewayParts,
  exchange: Exchange,
  view: ModelView,
  asker: Asker,
  turnClass: TurnClass,
  waiting: Waiting | null,
  again: boolean,
): Promise<Denied | null> {
  const { turnover, admission } = parts;
  const waits = asker.conduct.memoryWaitMs > 0;
  const before = turnover.before(view, turnClass);
  if (before !== null) {
    const why = `${before.modelId} has waited longer for the memory of ${view.id}`;
    const result = fail('local_backend_busy', `${why}, whose turns make way for it.`);
    return { code: 'local_backend_busy', why, result, passes: 'by_itself' };
  }
  // One that is there needs no more room, however full it is beside it.
  if (isThere(parts, view)) return null;
  const holding = turnover.holding(view, turnClass);
  if (holding !== null && waits) {
    const why = `${view.id} needs the memory of ${holding.modelId}, which has just been loaded and is in use`;
    return {
      code: 'vram_denied',
      why,
      result: fail('vram_denied', `${why}.`),
      passes: { atMs: holding.untilMs },
    };
  }
  const makeRoom = asker.onDeflected === undefined && holding === null;
  const admitting = admission.admit(view.id, exchange.departure.signal, { makeRoom, again });
  if (admitting === null) return null;
  waiting?.begin(`waiting: ${view.id} is being loaded`);
  const admitted = await admitting;
  if (admitted.ok) return null;
  const { code } = admitted.error;
  return { code, why: code, result: admitted, passes: null };
}

/**
 * Whether waiting may help: always where the agent was told to wait, else where those that may leave could
 * give enough. They are in use, by requests that end by themselves, or were so a moment ago.
 */
function mayPass(parts: GatewayParts, view: ModelView, denied: Denied, toldToWait: boolean): boolean {
  if (denied.passes !== null) return true;
  if (denied.code !== 'vram_denied' && denied.code !== 'big_models_asleep') return false;
  if (toldToWait) return true;
  return denied.code === 'vram_denied' && (parts.turnover.couldFit(view.id) ?? isInUseBeside(parts, view));
}

function isInUseBeside({ context, flights }: GatewayParts, view: ModelView): boolean {
  const others = context.loop.models.views().filter((other) => other.id !== view.id);
  return others.some(
    (other) =>
      other.deviceId === view.deviceId && (other.observed.busy === true || flights.use(other.id) !== null),
  );
}

/** True when another try is worth it; false when its time is up or the client has left. */
async function waitFor(
  parts: GatewayParts,
  exchange: Exchange,
  view: ModelView,
  turnClass: () => TurnClass,
  { code, passes }: Denied,
  limitMs: number,
): Promise<boolean> {
  const { loop } = parts.context;
  const before = whoIsThere(parts);
  const retryAtMs = parts.monotonicMs() + RETRY_EVERY_MS;
  const isWorthATry = (): boolean => {
    const now = loop.models.get(view.id);
    if (code === 'big_models_asleep') return loop.wishes.sleep === null;
    if (code === 'local_backend_busy')
      return now === null || parts.turnover.before(now, turnClass()) === null;
    if (passes !== null && passes !== 'by_itself') return parts.monotonicMs() >= passes.atMs;
    if (parts.monotonicMs() < retryAtMs) return false;
    return (
      now === null ||
      availabilityOf(parts.context, now) === 'fits' ||
      parts.turnover.canMakeRoom(now) ||
      whoIsThere(parts) !== before
    );
  };
  // While it waits it is in nobody's way.
  exchange.seat?.leave();
  const isWorth = await loop.until(isWorthATry, limitMs, exchange.departure.signal);
  const isIn = (await exchange.seat?.enter()) ?? true;
  return isWorth && isIn;
}

/** Who is loaded and who is busy: while that stays, another try would be denied too. */
function whoIsThere({ context, flights }: GatewayParts): string {
  return context.loop.models
    .views()
    .map((view) => `${view.id} ${view.status} ${view.observed.busy} ${flights.use(view.id) !== null}`)
    .join();
}
