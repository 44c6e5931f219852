/**
 * What the window and the main process say to each other, declared once. The main process's handlers,
 * the preload's API, the page's client and the tests' stand-ins all have their types and names from here.
 *
 *   page ──call (name, arguments)──► main      answered with a Result; the sender and each argument are checked
 *   page ◄──push (name, JSON text)── main      after `watch`, until `unwatch` or the page goes
 */
import { fail, ok, type Result } from './errors.ts';
import type { LandlordEvent } from './events.ts';
import { type Field, type Fields, fitsInto, flag, oneOf, orNull, text, whole } from './ipc-fields.ts';
import type { History, LoadPlan, Observation, Replay, SettingCheck, SettingsView } from './questions.ts';
import type { LandlordState } from './state.ts';

/** What was done, in one sentence with figures. */
export interface Done {
  readonly message: string;
  readonly numbers?: Readonly<Record<string, number | null>>;
  readonly models?: readonly string[];
}

/**
 * own       the runtime runs in this app
 * attached  it runs in another process (a service, `landlord serve`), and the app shows it
 * lost      the one that was shown has ended or does not answer; the app can host one itself
 */
export interface LinkState {
  readonly kind: 'own' | 'attached' | 'lost';
  /** One sentence for a person. */
  readonly message: string;
}

interface Call<Args, Answer> {
  readonly fields: Fields<Args>;
  /** Carries the answer's type; always null. */
  readonly answer: Answer | null;
}

/** An object without fields. */
type NoArgs = Readonly<Record<never, never>>;

/** No call needs more than a model's id and some figures, or a setting of some thousand characters. */
export const MAX_ARGS_BYTES = 16_384;
/** As long as an id in an address may be (the HTTP server's `maxParamLength`). */
const modelId = text(1024);
const TEN_YEARS_MS = 3650 * 86_400_000;
const duration = orNull(whole(1, TEN_YEARS_MS));
const eventId = orNull(whole(0, Number.MAX_SAFE_INTEGER));

const time = whole(0, Number.MAX_SAFE_INTEGER);
const bytes = whole(0, Number.MAX_SAFE_INTEGER);
const settingKey = text(64);
/** YAML as a person writes it; null takes the key out, so that its default holds. */
const yaml = orNull(text(7_000));

function call<Args, Answer>(fields: Fields<Args>, answer: Answer | null): Call<Args, Answer> {
  return { fields, answer };
}
/** The type of an answer, without a value. */
function gives<Answer>(): Answer | null {
  return null;
}

const TABLE = {
  load: call({ model: modelId, force: flag }, gives<Done>()),
  unload: call({ model: modelId, force: flag }, gives<Done>()),
  pin: call({ model: modelId }, gives<Done>()),
  unpin: call({ model: modelId }, gives<Done>()),
  /** `forMs` null: until woken. */
  sleep: call({ forMs: duration }, gives<Done>()),
  wake: call<NoArgs, Done>({}, null),
  drain: call<NoArgs, Done>({}, null),
  /** What the state offers; a person has confirmed it. */
  accept: call({ offer: text(512) }, gives<Done>()),
  /** `freeBytes` null: everything that may leave. */
  makeRoom: call(
    { freeBytes: orNull(whole(1, Number.MAX_SAFE_INTEGER)), deviceId: orNull(text(256)) },
    gives<Done>(),
  ),
  restore: call<NoArgs, Done>({}, null),
  guards: call(
    { mode: oneOf('on', 'observe', 'pause'), forMs: duration, backend: orNull(text(256)) },
    gives<Done>(),
  ),
  /** The newest `limit` events after `afterId`, oldest first. */
  events: call({ afterId: eventId, limit: whole(1, 5000) }, gives<readonly LandlordEvent[]>()),
  /** From now on this page is pushed what changes, the present state first. */
  watch: call<NoArgs, null>({}, null),
  unwatch: call<NoArgs, null>({}, null),
  plan: call({ model: modelId }, gives<LoadPlan>()),
  /** From now on a refused load of this model goes ahead all the same, or no longer does. */
  loadAnyway: call({ model: modelId, always: flag }, gives<Done>()),
  /** `points`: at most so many a device. */
  history: call(
    { fromMs: time, toMs: time, deviceId: orNull(text(256)), points: whole(10, 2000) },
    gives<History>(),
  ),
  settings: call<NoArgs, SettingsView>({}, null),
  checkSetting: call({ key: settingKey, yaml }, gives<SettingCheck>()),
  /** `fingerprint` is that of the settings it was made from: an edit in between is told, not overwritten. */
  changeSetting: call({ key: settingKey, yaml, fingerprint: orNull(text(128)) }, gives<SettingsView>()),
  /** null: as it is set now. */
  replay: call(
    {
      fromMs: time,
      deviceId: orNull(text(256)),
      floorBytes: orNull(bytes),
      maxBig: orNull(whole(0, 64)),
    },
    gives<Replay>(),
  ),
  observation: call<NoArgs, Observation>({}, null),
  /** A few words through the gateway to this model, loaded for it if it fits. */
  testTurn: call({ model: modelId }, gives<Done>()),
  /** A GGUF file becomes a model of the embedded engine, so that no server is needed. `name` null: by its file's. */
  addModel: call({ name: orNull(text(64)), file: text(4096) }, gives<Done>()),
  /** An agent of the engine goes for good, with its conversation; a person has confirmed it. */
  forgetAgent: call({ agent: text(64) }, gives<Done>()),
  /** Hosts a runtime in this app, after the one that was shown was lost. */
  host: call<NoArgs, Done>({}, null),
};

type Table = typeof TABLE;
export type CallName = keyof Table;
type CallTypes = {
  readonly [Name in CallName]: Table[Name] extends Call<infer Args, infer Answer>
    ? { readonly args: Args; readonly answer: Answer }
    : never;
};
export type ArgsOf<Name extends CallName> = CallTypes[Name]['args'] & object;
export type AnswerOf<Name extends CallName> = CallTypes[Name]['answer'];

/** One function a call: the main process's handlers, the preload's API and its stand-ins alike. */
export type Calls = {
  readonly [Name in CallName]: (args: ArgsOf<Name>) => Promise<Result<AnswerOf<Name>>>;
};

const CALLS: { readonly [Name in CallName]: Call<ArgsOf<Name>, AnswerOf<Name>> } = TABLE;

export const CALL_NAMES: readonly CallName[] = Object.keys(TABLE).filter(isCallName);

/** Those that any runtime answers, its own or one that is attached to: over HTTP `POST /api/<path>`. */
export const QUESTIONS = {
  plan: 'plan',
  loadAnyway: 'load-anyway',
  history: 'history',
  settings: 'settings',
  checkSetting: 'check-setting',
  changeSetting: 'change-setting',
  replay: 'replay',
  observation: 'observation',
  testTurn: 'test-turn',
  addModel: 'add-model',
  forgetAgent: 'forget-agent',
} as const satisfies { readonly [Name in CallName]?: string };
export type QuestionName = keyof typeof QUESTIONS;
export const QUESTION_NAMES: readonly QuestionName[] = Object.keys(QUESTIONS).filter(isQuestionName);

function isQuestionName(name: string): name is QuestionName {
  return Object.hasOwn(QUESTIONS, name);
}

/** Asks one question; errors are those of its answerer, and `no_runtime` where there is none. */
export type Ask = <Name extends QuestionName>(
  name: Name,
  args: ArgsOf<Name>,
) => Promise<Result<AnswerOf<Name>>>;

export function isCallName(name: string): name is CallName {
  return Object.hasOwn(TABLE, name);
}

/** What is pushed, by name; as JSON text, which is copied once on its way and parsed where it is used. */
export interface PushTypes {
  readonly state: LandlordState;
  readonly event: LandlordEvent;
  readonly link: LinkState;
}
export type PushName = keyof PushTypes;
export const PUSH_NAMES: readonly PushName[] = ['state', 'event', 'link'];

export function callChannel(name: CallName): string {
  return `landlord:call:${name}`;
}
export function pushChannel(name: PushName): string {
  return `landlord:push:${name}`;
}

/** Reads the arguments of a call as they came. Errors: `bad_input`, without the value itself. */
export function readArgs<Name extends CallName>(name: Name, raw: unknown): Result<ArgsOf<Name>> {
  if (!fitsInto(raw, MAX_ARGS_BYTES)) {
    return fail('bad_input', `The arguments of ${name} are larger than ${MAX_ARGS_BYTES} bytes.`, {
      maxBytes: MAX_ARGS_BYTES,
    });
  }
  return readFields(name, CALLS[name].fields, raw);
}

function readFields<Args>(name: string, fields: Fields<Args>, raw: unknown): Result<Args> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return fail('bad_input', `${name} takes its arguments as one object.`);
  }
  const stranger = Object.keys(raw).find((key) => !Object.hasOwn(fields, key));
  if (stranger !== undefined) {
    return fail('bad_input', `${name} takes no ${JSON.stringify(stranger.slice(0, 64))}.`);
  }
  const args: Partial<Args> = {};
  for (const key in fields) {
    const field: Field<Args[typeof key]> = fields[key];
    const read = field(Object.hasOwn(raw, key) ? Reflect.get(raw, key) : undefined);
    if (!read.ok) return fail('bad_input', `${name}: ${key} ${read.why}.`);
    args[key] = read.value;
  }
  return isWhole(args, fields) ? ok(args) : fail('bad_input', `${name} lacks arguments.`);
}

function isWhole<Args>(args: Partial<Args>, fields: Fields<Args>): args is Args & Partial<Args> {
  return Object.keys(fields).every((key) => Object.hasOwn(args, key));
}
