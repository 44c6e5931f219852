import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { AnswerOf, ArgsOf, Ask, Calls, Done, QuestionName } from '../../../shared/ipc-schema.ts';
import type { FloorAdvice, History, Observation, Replay } from '../../../shared/questions.ts';
import type { AgentDesk } from '../engine/desk/desk-api.ts';
import type { SqliteStore } from '../events/sqlite-store.ts';
import { suggestedFloor } from '../ledger/floor-learning.ts';
import { chooseDevice } from '../loop/choose-device.ts';
import { lookedOnce } from '../loop/commands.ts';
import type { CommandContext } from '../loop/load-command.ts';
import type { SettingsFile } from '../settings/settings-file.ts';
import { addModel, forgetAgent } from './engine-answers.ts';
import { floorKeyOf } from './floor-key.ts';
import { historyColumns, stepFor } from './history.ts';
import { observationOf } from './observation.ts';
import { planLoad } from './plan.ts';
import { replayDays } from './replay-days.ts';
import { changeSetting, checkSetting, settingsView } from './settings-answers.ts';
import { testTurn } from './test-turn.ts';

export interface AnswerSources {
  readonly context: CommandContext;
  readonly store: SqliteStore;
  readonly settingsFile: SettingsFile;
  /** Whether the guards only observe now. */
  readonly observes: () => boolean;
  /** Where this runtime's gateway listens; null: it does not yet. */
  readonly url: () => string | null;
  /** What `/v1` asks for; null: nothing. */
  readonly apiKey: () => string | null;
  /** The engine's agents; null: there is none yet. */
  readonly desk: () => AgentDesk | null;
}

type Answers = Pick<Calls, QuestionName>;

const HISTORY_EVENTS = 500;
const FLOOR_MS = 48 * 3_600_000;
/** Advice rests on two days: it need not be worked out anew with each look at the chart. */
const ADVICE_KEPT_MS = 600_000;

/** Answers what the state does not hold. Nothing here changes a model or a card. */
export function createAnswers(sources: AnswerSources): Ask {
  const { context, store, settingsFile } = sources;
  const advice = floorAdviser(context, store, settingsFile);
  const answers: Answers = {
    async plan({ model }) {
      await lookedOnce(context);
      return planLoad(context, model);
    },
    loadAnyway: async ({ model, always }) => rememberAnyway(context, model, always),
    history: (args) => history(args, context, store, advice),
    settings: () => settingsView(settingsFile),
    checkSetting: (args) => checkSetting(settingsFile, args),
    changeSetting: (args) => changeSetting(settingsFile, args),
    replay: (args) => replay(args, context, store),
    addModel: (args) => addModel(settingsFile, args),
    forgetAgent: (args) => forgetAgent(sources.desk(), args),
    testTurn: ({ model }) => testTurn(sources.url(), sources.apiKey(), model),
    observation: () => observation(store, sources.observes(), settingsFile.status().source === 'defaults'),
  };
  return <Name extends QuestionName>(name: Name, args: ArgsOf<Name>): Promise<Result<AnswerOf<Name>>> => {
    const answer: Answers[Name] = answers[name];
    return answer(args);
  };
}

function rememberAnyway({ loop, journal }: CommandContext, model: string, always: boolean): Result<Done> {
  const others = loop.wishes.loadAnyway.filter((id) => id !== model);
  if (loop.models.get(model) === null && always)
    return fail('unknown_model', `There is no model ${model} now, so nothing was remembered.`);
  loop.setWishes({ loadAnyway: always ? [...others, model] : others });
  const message = always
    ? `${model} is loaded from now on even where it does not fit.`
    : `${model} is loaded only where it fits again.`;
  journal.tell({ kind: 'guards_changed', model, reason: message, numbers: {} });
  return ok({ message });
}

async function history(
  { fromMs, toMs, deviceId, points }: ArgsOf<'history'>,
  { clock }: CommandContext,
  store: SqliteStore,
  advice: () => Promise<readonly FloorAdvice[]>,
): Promise<Result<History>> {
  if (toMs <= fromMs) return fail('bad_input', 'A history ends after it begins.');
  const stepMs = stepFor(fromMs, toMs, points);
  const device = deviceId === null ? {} : { deviceId };
  const [samples, events, floors] = await Promise.all([
    store.samples({ sinceMs: fromMs, untilMs: toMs, stepMs, ...device }),
    store.query({ since: fromMs, limit: HISTORY_EVENTS }),
    advice(),
  ]);
  if (!samples.ok) return samples;
  return ok({
    fromMs,
    toMs,
    stepMs,
    devices: historyColumns(samples.value, stepMs, clock.epochMs()),
    events: events.ok ? events.value.filter((event) => Date.parse(event.at) <= toMs) : [],
    floors,
  });
}

/** The suggestion of `floor: auto`, also where another floor is set. */
function floorAdviser(
  { loop, ledger, clock }: CommandContext,
  store: SqliteStore,
  settingsFile: SettingsFile,
): () => Promise<readonly FloorAdvice[]> {
  type Learnt = Pick<FloorAdvice, 'suggestedBytes' | 'recordedHours'>;
  const kept = new Map<string, { readonly atMs: number; readonly advice: Learnt }>();
  const learn = async (deviceId: string): Promise<Learnt | null> => {
    const nowMs = clock.epochMs();
    const before = kept.get(deviceId);
    if (before !== undefined && nowMs - before.atMs < ADVICE_KEPT_MS) return before.advice;
    const rows = await store.samples({ sinceMs: nowMs - FLOOR_MS, untilMs: nowMs, deviceId });
    if (!rows.ok) return null;
    const points = rows.value.map(({ atMs, tenants }) => ({
      atMs,
      bytes: tenants[`desktop@${deviceId}`] ?? null,
    }));
    const advice: Learnt = {
      suggestedBytes: suggestedFloor(points),
      recordedHours: Math.round(points.length / 36) / 10,
    };
    kept.set(deviceId, { atMs: nowMs, advice });
    return advice;
  };
  return async () => {
    const [{ isMappingAt }, file] = await Promise.all([
      import('../settings/yaml-patch.ts'),
      settingsFile.text(),
    ]);
    const text = file.ok ? (file.value ?? '') : '';
    const devices = loop.sight.devices();
    const advised = await Promise.all(
      devices.map(async (device): Promise<FloorAdvice | null> => {
        const learnt = await learn(device.id);
        if (learnt === null) return null;
        const presentBytes = ledger.book(device.id)?.floorBytes ?? null;
        const key = floorKeyOf(loop.settings, device, devices, (at) => isMappingAt(text, at));
        return { deviceId: device.id, ...learnt, presentBytes, ...key };
      }),
    );
    return advised.filter((one) => one !== null);
  };
}

async function replay(
  { fromMs, deviceId, floorBytes, maxBig }: ArgsOf<'replay'>,
  { loop, ledger, clock }: CommandContext,
  store: SqliteStore,
): Promise<Result<Replay>> {
  const device = chooseDevice(loop.sight.devices(), deviceId);
  if (!device.ok) return device;
  const book = ledger.book(device.value.id);
  if (book === null) return fail('unknown_device', `Nothing is known of ${device.value.id} yet.`);
  return replayDays(
    { fromMs, deviceId: device.value.id, floorBytes, maxBig },
    { store, settings: loop.settings, pins: loop.wishes.pins, book, nowMs: clock.epochMs() },
  );
}

async function observation(
  store: SqliteStore,
  observes: boolean,
  firstRun: boolean,
): Promise<Result<Observation>> {
  if (!observes) return ok({ ...observationOf([], false, null), firstRun });
  const [events, oldest] = await Promise.all([
    store.query({
      kinds: ['would_evict', 'floor_threatened', 'driver_eviction', 'guards_changed'],
      limit: 5000,
    }),
    store.query({ kinds: ['started'], limit: 5000 }),
  ]);
  if (!events.ok) return events;
  const first = oldest.ok ? oldest.value[0] : undefined;
  const sinceMs = first === undefined ? null : Date.parse(first.at);
  return ok({ ...observationOf(events.value, true, sinceMs), firstRun });
}
