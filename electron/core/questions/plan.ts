import type { Result } from '../../../shared/errors.ts';
import type { LoadPlan, PlannedContext, PlannedLeaver, PlanVerdict } from '../../../shared/questions.ts';
import { denial } from '../ledger/admission.ts';
import type { Denial, DeviceBook } from '../ledger/booking.ts';
import { findModel } from '../loop/find-model.ts';
import { type CommandContext, isSoleBig } from '../loop/load-command.ts';
import { holdsMemory, type ModelView } from '../loop/model-view.ts';
import { agentsIdle, roomPlan, whoStays } from '../loop/room.ts';
import { contextSizes, correctedBytes } from './context-sizes.ts';
import { risksOf } from './risks.ts';

/** As the page shows them beside models. */
const IDLE_AGENTS = 'idle agents';

/**
 * What a load of this model would do, by the very rules of the load itself and without doing it.
 * Errors: `unknown_model`, `backend_unreachable`.
 */
export async function planLoad(context: CommandContext, model: string): Promise<Result<LoadPlan>> {
  const { loop, fleet, loads, ledger, clock } = context;
  loop.step();
  const down = fleet.list().flatMap(({ snapshot }) => (snapshot.status === 'down' ? [snapshot.name] : []));
  const found = findModel(loop.models.views(), model, down);
  if (!found.ok) return found;
  const forecast = await loads.predict(found.value, loop.models);
  const view = loop.models.get(found.value.id) ?? found.value;
  const needBytes = view.measuredBytes ?? forecast?.bytes ?? view.predictedBytes;
  const book = view.deviceId === null ? null : ledger.book(view.deviceId, clock.monotonicMs());
  const outcome = outcomeOf(context, view, book, needBytes);
  const there = outcome.verdict === 'loaded';
  return {
    ok: true,
    value: {
      model: view.id,
      deviceId: view.deviceId,
      needBytes,
      needFrom: forecast?.source ?? null,
      freeBytes: book?.freeBytes ?? null,
      floorBytes: book?.floorBytes ?? null,
      capBytes: book?.capBytes ?? null,
      bookedBytes: book?.bookedBytes ?? 0,
      outstandingBytes: book?.outstandingBytes ?? 0,
      ...outcome,
      freeAfterBytes: there ? (book?.freeBytes ?? null) : freeAfter(book, needBytes, outcome.leaving),
      risks:
        outcome.verdict === 'denied' || outcome.verdict === 'unknown'
          ? risksOf(book, needBytes, loop.world?.models ?? [], view.id)
          : [],
      alwaysAnyway: loop.wishes.loadAnyway.includes(view.id),
      contexts: await contexts(context, view, book, forecast?.source ?? null, needBytes),
    },
  };
}

interface PlanOutcome {
  readonly verdict: PlanVerdict;
  readonly leaving: readonly PlannedLeaver[];
  readonly denial: string | null;
}

function outcomeOf(
  context: CommandContext,
  view: ModelView,
  book: DeviceBook | null,
  needBytes: number | null,
): PlanOutcome {
  const { loop, ledger } = context;
  const none = { leaving: [], denial: null };
  if (holdsMemory(view.status)) return { verdict: 'loaded', ...none };
  if (loop.wishes.sleep !== null && view.big)
    return {
      verdict: 'denied',
      leaving: [],
      denial: `Big models are asleep, so ${view.id} would not be loaded.`,
    };
  if (view.deviceId === null || book === null)
    return {
      verdict: 'unknown',
      leaving: [],
      denial: `It can't be told which device ${view.id} would load on: set \`device\` for the backend ${view.backend} in the config.`,
    };
  const refused = refusal(context, view, book, needBytes);
  if (refused === null) return { verdict: 'now', ...none };
  const wish = { deviceId: view.deviceId, name: view.id, modelId: view.id, denial: refused };
  const plan = roomPlan(loop, wish);
  const leaving = [
    ...byAgents(loop, wish),
    ...(plan?.models ?? []).map(({ id, bytes }) => ({ model: id, bytes })),
  ];
  if (plan?.enough === true && leaving.length > 0) return { verdict: 'leaving', leaving, denial: null };
  return {
    verdict: refused.code === 'UNKNOWN_FREE' ? 'unknown' : 'denied',
    leaving: [],
    denial: refused.message + whoStays(loop, wish, ledger.bookedOn(view.deviceId)),
  };
}

/** Agents of the engine give what they don't work with first; it comes back with their next request. */
function byAgents(
  loop: CommandContext['loop'],
  wish: { readonly deviceId: string; readonly denial: Pick<Denial, 'shortBytes'> },
): readonly PlannedLeaver[] {
  const bytes = Math.min(wish.denial.shortBytes ?? 0, agentsIdle(loop, wish));
  return bytes > 0 ? [{ model: IDLE_AGENTS, bytes }] : [];
}

function refusal(
  { loop }: CommandContext,
  view: ModelView,
  book: DeviceBook,
  bytes: number | null,
): Denial | null {
  return denial(book, {
    name: view.id,
    bytes,
    soleBig: view.big && isSoleBig(loop, view),
    creditBytes: 0,
  });
}

function freeAfter(
  book: DeviceBook | null,
  needBytes: number | null,
  leaving: readonly PlannedLeaver[],
): number | null {
  if (book?.freeBytes == null || needBytes === null) return null;
  const back = leaving.reduce<number | null>(
    (sum, one) => (sum === null || one.bytes === null ? null : sum + one.bytes),
    0,
  );
  return back === null ? null : book.freeBytes - book.outstandingBytes + back - needBytes;
}

/** Its size under usual contexts, each judged by the same admission as the load itself. */
async function contexts(
  context: CommandContext,
  view: ModelView,
  book: DeviceBook | null,
  needFrom: string | null,
  needBytes: number | null,
): Promise<readonly PlannedContext[]> {
  const { loop, loads } = context;
  const sizes = await contextSizes((tokens) => loads.footprint(view, tokens));
  const measured = needFrom === 'measured before' || view.measuredBytes !== null ? needBytes : null;
  // A model that is there gives back what it has when it is loaded anew.
  const held = holdsMemory(view.status) ? (view.measuredBytes ?? view.predictedBytes ?? 0) : 0;
  return sizes.map((size) => {
    const bytes = correctedBytes(size, sizes, measured);
    const more = Math.max(0, bytes - held);
    const refused = book === null ? null : refusal(context, view, book, more);
    if (refused === null)
      return { tokens: size.tokens, bytes, verdict: 'now' as const, present: size.present };
    const wish = { deviceId: view.deviceId ?? '', denial: refused };
    const plan = roomPlan(loop, wish);
    const leaves = (plan?.models.length ?? 0) + byAgents(loop, wish).length > 0;
    const verdict = plan?.enough === true && leaves ? 'leaving' : 'denied';
    return { tokens: size.tokens, bytes, verdict, present: size.present };
  });
}
