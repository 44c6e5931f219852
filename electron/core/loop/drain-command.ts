import { fail, ok, type Result } from '../../../shared/errors.ts';
import { STOP_TIMEOUT_MS } from '../guards/drain.ts';
import type { Command, CommandDone } from '../runtime-api.ts';
import type { CommandContext } from './load-command.ts';
import { holdsMemory, modelId } from './model-view.ts';
import type { Offer } from './offers.ts';
import type { Service } from './services.ts';

type DrainCommand = Extract<Command, { type: 'drain' }>;

const DRAIN_LIMIT_MS = 120_000;
/** A server that takes longer over an unload, with its own stop-timeout past, does not do it. */
const PATIENCE_MS = 2_000;
/** One that answers nothing at all has had its chance after this. */
const SILENT_MS = 5_000;
/** A killed process that is still there after this sits in its driver. */
const KILL_LIMIT_MS = 6_000;
const RESTART_LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 250;

/** A model whose server does not answer, with a process that is still there. */
interface Stranded {
  readonly id: string;
  readonly backend: string;
}

/**
 * Everything leaves: asked of its server first; what a server that hangs does not let go is ended, once a
 * person has said so (or `drain.kill` is `always`) and its process is proven; and where nothing of it can be
 * ended, or the server itself stays silent, its service is started anew, once a person has said that too.
 *
 *   API ─► all gone
 *    └ stuck ─► (asks) kill ─► all gone, server answers
 *                  └ stuck, unproven or silent ─► (asks) its service is started anew
 */
export async function drain(
  context: CommandContext,
  command: DrainCommand,
  signal: AbortSignal,
): Promise<Result<CommandDone>> {
  const { loop, journal, clock } = context;
  const set = loop.settings.drain;
  const mayKill = command.kill === true || command.restartUnit === true || set?.kill === 'always';
  const mayRestart = command.restartUnit === true || set?.restart === 'always';
  context.offers?.set('drain', []);
  const before = present(context);
  const startedAtMs = clock.monotonicMs();
  const killed = new Set<string>();
  const quietSinceMs = new QuietSince(startedAtMs);
  const undo = loop.onOutcome((outcome) => {
    if (outcome.type === 'left' && outcome.killed) killed.add(outcome.operation.modelId);
  });
  let restarted: readonly string[] = [];
  try {
    using order = loop.orders.drain(mayKill);
    await untilGoneOrStuck(context, mayKill, quietSinceMs, signal);
    order[Symbol.dispose]();
    // Said by itself it is for whatever does not answer; else for what had models here.
    const silent = silentBackends(context, command.restartUnit === true ? null : before);
    if (mayRestart && (stuck(context, mayKill, quietSinceMs).length > 0 || silent.length > 0))
      restarted = await restart(context, [...backendsOf(present(context)), ...silent], signal);
  } finally {
    undo();
  }
  const left = present(context);
  for (const { id } of stranded(context)) loop.executor.forget(id);
  const gone = before.filter((id) => !left.includes(id));
  const numbers = {
    models: gone.length,
    stillThere: left.length,
    killed: killed.size,
    restarted: restarted.length,
    tookMs: Math.round(clock.monotonicMs() - startedAtMs),
  };
  const offers = await offersFor(context, left, silentBackends(context, before), mayKill, mayRestart);
  context.offers?.set('drain', offers);
  const how = restarted.length === 0 ? '' : ` ${restarted.join(' and ')} was started anew.`;
  const message =
    left.length === 0
      ? `Drained: ${gone.length === 0 ? 'no model was loaded' : `${gone.join(', ')} left`}${killed.size === 0 ? '' : `, ${[...killed].join(', ')} by force`}.${how}${offers.length === 0 ? '' : ` ${offers[0]?.text}`}`
      : `Not all left: ${left.join(', ')} ${left.length === 1 ? 'is' : 'are'} still there${why(offers, left, context)}.${how}`;
  journal.tell({ kind: 'drained', reason: message, numbers });
  return left.length === 0 ? ok({ message, numbers, models: gone }) : fail('model_busy', message, numbers);
}

function why(offers: readonly Offer[], left: readonly string[], { loop }: CommandContext): string {
  const [offer] = offers;
  if (offer !== undefined) return `. ${offer.text.replace(/\.$/, '')}`;
  const isBusy = left.some((id) => loop.models.get(id)?.observed.busy === true);
  return isBusy
    ? ', most likely behind a request. `landlord unload --force` cuts it'
    : ', and nothing that may be done here makes it leave';
}

/** Ids of all that holds memory, also of servers that do not answer. */
function present(context: CommandContext): readonly string[] {
  const { loop, agentsHold } = context;
  const seen = loop.models
    .views()
    .filter((view) => view.observed.isElsewhere !== true)
    .filter((view) => holdsMemory(view.observed.status) || view.operation !== null)
    .map((view) => view.id);
  const away = stranded(context).map((one) => one.id);
  // Its process may be gone, and its memory on the way.
  const leaving = loop.executor.operations().map((operation) => operation.modelId);
  return [...new Set([...seen, ...away, ...leaving, ...(agentsHold?.() ?? [])])];
}

/** The kernel still has their processes, whatever their server says or does not say. */
function stranded({ fleet }: CommandContext): readonly Stranded[] {
  return fleet.list().flatMap(({ snapshot }) => {
    if (snapshot.status === 'up') return [];
    return snapshot.models
      .filter((model) => model.process !== null && holdsMemory(model.status))
      .map((model) => ({ id: modelId(snapshot.name, model.name), backend: snapshot.name }));
  });
}

async function untilGoneOrStuck(
  context: CommandContext,
  mayKill: boolean,
  quietSinceMs: QuietSince,
  signal: AbortSignal,
): Promise<void> {
  const { loop, clock, fleet } = context;
  const endMs = quietSinceMs.startedAtMs + DRAIN_LIMIT_MS;
  for (;;) {
    for (const one of stranded(context)) drive(context, one, mayKill);
    const done = (): boolean => {
      const left = present(context);
      return left.length === 0 || stuck(context, mayKill, quietSinceMs).length === left.length;
    };
    if (await loop.until(done, LOOK_EVERY_MS, signal)) return;
    if (signal.aborted || clock.monotonicMs() > endMs) return;
    // A server that has begun to hang is asked again, so that it is known to.
    for (const backend of backendsOf(present(context))) void fleet.get(backend)?.refresh();
  }
}

/** The guards see no model of a server that does not answer, so that its steps are taken here. */
function drive({ loop, clock }: CommandContext, { id }: Stranded, mayKill: boolean): void {
  const operation = loop.executor.operation(id);
  if (operation === null) {
    loop.executor.unload({
      modelId: id,
      cause: 'drain',
      requireIdle: false,
      reason: `Unloading ${id}: everything is being drained, and its server does not answer.`,
      numbers: {},
      forModelId: null,
    });
    return;
  }
  const sinceMs = operation.requestedAtMs ?? operation.startedAtMs;
  if (mayKill && clock.monotonicMs() - sinceMs > SILENT_MS) loop.executor.kill(id);
}

/** Since when each could have been asked: from the end of its request, not of the drain's beginning. */
class QuietSince {
  readonly startedAtMs: number;
  readonly #atMs = new Map<string, number>();

  constructor(startedAtMs: number) {
    this.startedAtMs = startedAtMs;
  }

  worked(id: string, nowMs: number): void {
    this.#atMs.set(id, nowMs);
  }

  of(id: string): number {
    return this.#atMs.get(id) ?? this.startedAtMs;
  }
}

/** Those that nothing more is to be waited for. */
function stuck(context: CommandContext, mayKill: boolean, quietSinceMs: QuietSince): readonly string[] {
  const { loop, clock, agentsHold } = context;
  const nowMs = clock.monotonicMs();
  const away = new Set(stranded(context).map((one) => one.id));
  const ours = new Set(agentsHold?.() ?? []);
  return present(context).filter((id) => {
    if (ours.has(id)) return false;
    const operation = loop.executor.operation(id);
    const view = loop.models.get(id);
    const isAtWork = view?.observed.busy === true || view?.observed.status === 'loading';
    if ((isAtWork && operation?.phase !== 'requested') || operation?.phase === 'confirming') {
      quietSinceMs.worked(id, nowMs);
      return false;
    }
    if (operation?.phase === 'settling') return false;
    if (operation?.killedAtMs != null) return nowMs - operation.killedAtMs > KILL_LIMIT_MS;
    const sinceMs = operation?.requestedAtMs ?? quietSinceMs.of(id);
    const limitMs = away.has(id)
      ? SILENT_MS
      : (view?.observed.stopTimeoutMs ?? STOP_TIMEOUT_MS) + loop.settings.raceGraceMs + PATIENCE_MS;
    // What may be killed is about to be; what can't be is stuck.
    const graceMs = mayKill && operation?.signalable !== false ? PATIENCE_MS : 0;
    return nowMs - sinceMs > limitMs + graceMs;
  });
}

function backendsOf(ids: readonly string[]): readonly string[] {
  return [...new Set(ids.map((id) => id.slice(0, id.indexOf('/'))))];
}

/** Had models here when the drain began (null: any), and says nothing now. */
function silentBackends({ fleet }: CommandContext, before: readonly string[] | null): readonly string[] {
  const had = before === null ? null : new Set(backendsOf(before));
  return fleet
    .list()
    .flatMap(({ snapshot }) =>
      had?.has(snapshot.name) !== false && snapshot.status !== 'up' ? [snapshot.name] : [],
    );
}

async function restart(
  context: CommandContext,
  backends: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { fleet, loop, services } = context;
  const done: string[] = [];
  for (const name of new Set(backends)) {
    const service = await services?.of(name);
    if (service === undefined || !service.ok) continue;
    const result = await service.value.restart();
    if (!result.ok) {
      context.journal.tell({
        kind: 'signal_refused',
        backend: name,
        reason: `${capital(service.value.what)} could not be started anew: ${result.error.message}`,
        numbers: {},
      });
      continue;
    }
    done.push(service.value.what);
    const isBack = (): boolean => fleet.get(name)?.snapshot().status === 'up';
    for (let waitedMs = 0; waitedMs < RESTART_LIMIT_MS && !isBack() && !signal.aborted; waitedMs += 500) {
      await fleet.get(name)?.refresh();
      await loop.until(isBack, 500, signal);
    }
  }
  return done;
}

/** The next step of each that hangs, for a person to say. */
async function offersFor(
  context: CommandContext,
  left: readonly string[],
  silent: readonly string[],
  killed: boolean,
  restarted: boolean,
): Promise<readonly Offer[]> {
  const { loop, services } = context;
  const hanging = left.filter((id) => loop.models.get(id)?.observed.busy !== true);
  const next = (command: Omit<DrainCommand, 'type'>): Offer['run'] => {
    return (signal) => drain(context, { type: 'drain', ...command }, signal);
  };
  if (hanging.length > 0 && !killed)
    return [
      {
        id: 'drain-kill',
        text: `${hanging.join(', ')} ${hanging.length === 1 ? 'does' : 'do'} not let go of memory. The process behind it can be ended once it is proven; \`landlord drain --kill\` does the same.`,
        label: 'End it by force',
        question: 'End the process of what does not leave?',
        run: next({ kill: true }),
      },
    ];
  if (restarted) return [];
  const offers: Offer[] = [];
  for (const name of new Set([...backendsOf(hanging), ...silent])) {
    const service = await services?.of(name);
    if (service === undefined) continue;
    if (!service.ok) continue;
    offers.push(restartOffer(name, service.value, next({ restartUnit: true })));
  }
  return offers;
}

function restartOffer(backend: string, service: Service, run: Offer['run']): Offer {
  return {
    id: `drain-restart ${backend}`,
    text: `${backend} does not answer. ${capital(service.what)} can be started anew; \`landlord drain --restart-unit\` does the same.`,
    label: `Start ${backend} anew`,
    question: `Start ${service.what} anew? Its models are gone then, and what they were doing with them.`,
    run,
  };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
