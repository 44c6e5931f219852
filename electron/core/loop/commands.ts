import { assertNever, fail, ok, type Result } from '../../../shared/errors.ts';
import { formatBytes, formatDuration } from '../../../shared/format.ts';
import type { Command, CommandDone } from '../runtime-api.ts';
import { chooseDevice } from './choose-device.ts';
import { drain } from './drain-command.ts';
import { findModel } from './find-model.ts';
import { startForUse } from './first-use.ts';
import { type CommandContext, loadModel } from './load-command.ts';
import { type GuardsOverride, holdsMemory, type ModelView } from './model-view.ts';
import { outcomeOf } from './room.ts';

const FIRST_LOOK_MS = 4_000;
const UNLOAD_LIMIT_MS = 60_000;
const ROOM_LIMIT_MS = 60_000;
/** With nothing on its way out for this long, waiting for more room is over. */
const ROOM_QUIET_MS = 3_000;
/** Before an agent's name in its id. */
const AGENT = 'engine/';
const PAUSE_MS = 15 * 60_000;

/** Carries a person's or a program's command out; resolves when it is done or refused. */
export async function runCommand(
  context: CommandContext,
  command: Command,
  signal: AbortSignal,
): Promise<Result<CommandDone>> {
  await lookedOnce(context);
  switch (command.type) {
    case 'load':
      return withModel(context, command.model, (view) => loadModel(context, view, command.force, signal));
    case 'unload':
      return unload(context, command);
    case 'pin':
      return withModel(context, command.model, (view) => pin(context, view, true));
    case 'unpin':
      return withModel(context, command.model, (view) => pin(context, view, false));
    case 'sleep':
      return sleep(context, command.forMs);
    case 'wake':
      return wake(context);
    case 'drain':
      return drain(context, command, signal);
    case 'accept':
      return context.offers === undefined
        ? fail('not_supported', 'Nothing is offered here.')
        : context.offers.accept(command.offer, signal);
    case 'makeRoom':
      return makeRoom(context, command.freeBytes, command.deviceId, signal);
    case 'restore':
      return restore(context, signal);
    case 'guards':
      return guards(context, command);
    default:
      return assertNever(command, 'command');
  }
}

/** A model, or an agent of the engine; where both have the name, `engine/NAME` is the agent. */
async function unload(
  context: CommandContext,
  { model: name, force }: Extract<Command, { type: 'unload' }>,
): Promise<Result<CommandDone>> {
  const { putAgentAway } = context;
  if (putAgentAway !== undefined && (name.startsWith(AGENT) || !look(context, name).ok)) {
    const put = await putAgentAway(name.startsWith(AGENT) ? name.slice(AGENT.length) : name, force);
    if (put !== null) return put;
  }
  return withModel(context, name, (view) => unloadModel(context, view, force));
}

/** A command that comes right after the start waits for the first look at devices and backends. */
export async function lookedOnce({ loop, fleet }: CommandContext): Promise<void> {
  const looked = (): boolean =>
    loop.sight.seen && fleet.list().every(({ snapshot }) => snapshot.status !== 'unknown');
  await loop.until(looked, FIRST_LOOK_MS);
}

async function withModel(
  context: CommandContext,
  name: string,
  then: (view: ModelView) => Promise<Result<CommandDone>>,
): Promise<Result<CommandDone>> {
  const found = look(context, name);
  if (found.ok) return then(found.value);
  // A server of ours may wait for its first use.
  const now = (await startForUse(context, name)) ? look(context, name) : found;
  return now.ok ? then(now.value) : now;
}

function look({ loop, fleet }: CommandContext, name: string): Result<ModelView> {
  loop.step();
  const down = fleet.list().flatMap(({ snapshot }) => (snapshot.status === 'down' ? [snapshot.name] : []));
  return findModel(loop.models.views(), name, down);
}

async function unloadModel(
  { loop }: CommandContext,
  view: ModelView,
  force: boolean,
): Promise<Result<CommandDone>> {
  if (!holdsMemory(view.observed.status)) return ok({ message: `${view.id} is not loaded.`, models: [] });
  if (!force && view.observed.busy === true)
    return fail('model_busy', `${view.id} is serving a request. Wait for it, or add --force to cut it.`);
  const outcome = outcomeOf(loop, view.id, UNLOAD_LIMIT_MS);
  loop.executor.unload({
    modelId: view.id,
    cause: 'person',
    requireIdle: !force && view.status === 'loaded',
    reason: `Unloaded ${view.id}, as you asked.`,
    numbers: {},
    forModelId: null,
  });
  const end = await outcome;
  if (end === null)
    return fail(
      'timed_out',
      `${view.id} was asked to unload and is still there after ${formatDuration(UNLOAD_LIMIT_MS)}.`,
    );
  switch (end.type) {
    case 'left':
      return ok({
        message: `${view.id} is unloaded; ${end.freedBytes === null ? "how much came back can't be told" : `${formatBytes(end.freedBytes)} came back`} in ${formatDuration(end.tookMs)}.`,
        numbers: { freedBytes: end.freedBytes, tookMs: Math.round(end.tookMs) },
        models: [view.id],
      });
    case 'busy':
      return fail('model_busy', `${view.id} was not unloaded: ${end.detail}. Add --force to cut it.`);
    default:
      return fail(
        'backend_refused',
        `${view.id} was not unloaded: ${'message' in end ? end.message : 'it does not leave'}.`,
      );
  }
}

async function pin(
  { loop, journal }: CommandContext,
  view: ModelView,
  pinned: boolean,
): Promise<Result<CommandDone>> {
  loop.setWishes({ pins: { ...loop.wishes.pins, [view.id]: pinned } });
  const message = pinned
    ? `${view.id} is pinned: no guard will unload it.`
    : `${view.id} is no longer pinned.`;
  journal.tell({
    kind: pinned ? 'pinned' : 'unpinned',
    model: view.id,
    backend: view.backend,
    reason: message,
    numbers: {},
  });
  return ok({ message, models: [view.id] });
}

async function sleep(
  { loop, journal, clock }: CommandContext,
  forMs: number | null,
): Promise<Result<CommandDone>> {
  if (forMs !== null && (!Number.isFinite(forMs) || forMs <= 0))
    return fail('bad_input', 'Say how long as 30min, 2h or the like, or nothing for until woken.');
  const sinceMs = clock.epochMs();
  loop.setWishes({ sleep: { sinceMs, untilMs: forMs === null ? null : sinceMs + forMs } });
  const message = `Big models are asleep ${forMs === null ? 'until woken' : `for ${formatDuration(forMs)}`}: idle ones leave now, busy ones after their request.`;
  journal.tell({ kind: 'slept', reason: message, numbers: { forMs } });
  return ok({ message });
}

async function wake({ loop, journal, clock }: CommandContext): Promise<Result<CommandDone>> {
  const { sleep: asleep } = loop.wishes;
  if (asleep === null) return ok({ message: 'Big models were not asleep.' });
  loop.setWishes({ sleep: null });
  const message = 'Big models may load again.';
  journal.tell({ kind: 'woke', reason: message, numbers: { asleepMs: clock.epochMs() - asleep.sinceMs } });
  return ok({ message });
}

async function makeRoom(
  { loop, journal, clock }: CommandContext,
  freeBytes: number | null,
  deviceId: string | null,
  signal: AbortSignal,
): Promise<Result<CommandDone>> {
  const chosen = chooseDevice(loop.sight.devices(), deviceId);
  if (!chosen.ok) return chosen;
  const device = chosen.value;
  const wantedBytes = freeBytes ?? device.totalBytes;
  if (wantedBytes === null) return fail('unknown_device', `How much memory ${device.name} has is not known.`);
  const free = (): number | null => loop.sight.free(device.id, clock.monotonicMs()).freeBytes;
  const beforeBytes = free();
  const startedAtMs = clock.monotonicMs();
  let quietSinceMs = startedAtMs;
  using order = loop.orders.wantFree(device.id, wantedBytes);
  await loop.until(
    () => {
      const nowMs = clock.monotonicMs();
      // What is on its way out is waited for, so that it is in the answer and in the list to bring back.
      if (loop.executor.operations().some((one) => one.deviceId === device.id)) {
        quietSinceMs = nowMs;
        return false;
      }
      return (free() ?? 0) >= wantedBytes || nowMs - quietSinceMs > ROOM_QUIET_MS;
    },
    ROOM_LIMIT_MS,
    signal,
  );
  order[Symbol.dispose]();
  const afterBytes = free();
  const numbers = { wantedBytes: freeBytes, freeBytes: afterBytes, freeBeforeBytes: beforeBytes };
  const enough = freeBytes === null || (afterBytes ?? 0) >= wantedBytes;
  const message = `${formatBytes(afterBytes)} is free on ${device.name}${enough ? '' : `; ${formatBytes(wantedBytes)} was asked for, but what is left is busy, pinned or not a model`}.`;
  journal.tell({ kind: 'made_room', deviceId: device.id, reason: `Room was asked for: ${message}`, numbers });
  return enough ? ok({ message, numbers }) : fail('vram_denied', message, numbers);
}

async function restore(context: CommandContext, signal: AbortSignal): Promise<Result<CommandDone>> {
  const { fleet, loop, journal } = context;
  const wanted = loop.wishes.restorable;
  if (wanted.length === 0)
    return ok({ message: 'Nothing was evicted that could be brought back.', models: [] });
  const back: string[] = [];
  const refused: string[] = [];
  for (const id of wanted) {
    const backend = id.slice(0, id.indexOf('/'));
    const view = loop.models.get(id);
    const done = view === null ? null : await loadModel(context, view, false, signal, { makeRoom: false });
    if (done?.ok === true) back.push(id);
    else if (done !== null) refused.push(`${id} (${done.error.message})`);
    else if (fleet.setting(backend) !== null) refused.push(`${id} (its backend is away)`);
    else {
      refused.push(`${id} (there is no backend ${backend} any more, so it is forgotten)`);
      loop.setWishes({ restorable: loop.wishes.restorable.filter((other) => other !== id) });
    }
  }
  const message = `${back.length === 0 ? 'Nothing could be brought back' : `Brought back ${back.join(', ')}`}${refused.length === 0 ? '' : `; not ${refused.join(', ')}`}.`;
  journal.tell({
    kind: 'restored',
    reason: message,
    numbers: { models: back.length, refused: refused.length },
  });
  return refused.length === 0 || back.length > 0
    ? ok({ message, models: back })
    : fail('vram_denied', message);
}

async function guards(
  { loop, fleet, journal, clock }: CommandContext,
  command: Extract<Command, { type: 'guards' }>,
): Promise<Result<CommandDone>> {
  const current = loop.wishes.guards;
  if (command.backend !== null) {
    if (fleet.setting(command.backend) === null)
      return fail(
        'unknown_backend',
        `There is no backend ${command.backend}: there is ${fleet.names().join(', ') || 'none'}.`,
      );
    if (command.mode === 'pause')
      return fail('bad_input', 'A pause is for all backends; leave the backend out.');
  }
  const pauseMs = command.forMs ?? PAUSE_MS;
  loop.setWishes({ guards: chosenGuards(current, command, clock.epochMs() + pauseMs) });
  const where = command.backend === null ? '' : ` for ${command.backend}`;
  const message =
    command.mode === 'pause'
      ? `The guards are paused for ${formatDuration(pauseMs)}: they unload nothing, whatever happens.`
      : command.mode === 'on'
        ? `The guards are on${where}: they unload what the rules say, and tell of each.`
        : `The guards only watch${where}: they say what they would do, and do nothing.`;
  journal.tell({
    kind: 'guards_changed',
    reason: message,
    numbers: { forMs: command.mode === 'pause' ? pauseMs : null },
  });
  return ok({ message });
}

function chosenGuards(
  current: GuardsOverride | null,
  command: Extract<Command, { type: 'guards' }>,
  pausedUntilMs: number,
): GuardsOverride {
  const kept = current ?? { mode: null, pausedUntilMs: null, perBackend: {} };
  if (command.mode === 'pause') return { ...kept, pausedUntilMs };
  if (command.backend !== null)
    return {
      ...kept,
      pausedUntilMs: null,
      perBackend: { ...kept.perBackend, [command.backend]: command.mode },
    };
  // A choice for all is a choice for each.
  return { mode: command.mode, pausedUntilMs: null, perBackend: {} };
}
