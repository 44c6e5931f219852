import { fail, ok, type Result } from '../../../shared/errors.ts';
import { LONGEST_WAIT_MS } from '../gate/acquire.ts';
import type { TurnClass } from '../gate/sidecar.ts';
import type { Command, ReportedEvent, ReservationRequest } from '../runtime-api.ts';
import { parseBytes, parseDuration } from '../settings/units.ts';

/**
 * What the bodies of POST requests mean. Every field may be left out, an unknown one is refused:
 * a misspelt `forse` must not turn into an unforced unload.
 */

/** A sleep or pause longer than this is a slip of the keyboard. */
const LONGEST_MS = 3650 * 86_400_000;

/** What one field may hold; null means left out. */
interface Field<T> {
  readonly holds: (value: unknown) => value is T;
  /** Completes “`field` must be …”. */
  readonly what: string;
}

const flag: Field<boolean> = {
  holds: (value) => typeof value === 'boolean',
  what: 'true or false',
};
const text: Field<string> = {
  holds: (value): value is string => typeof value === 'string' && value !== '',
  what: 'a text that is not empty',
};
const duration: Field<string | number> = {
  holds: (value): value is string | number => typeof value === 'string' || Number.isFinite(value),
  what: 'a text with its unit, such as "15min", or a number of milliseconds',
};
const amount: Field<string | number> = {
  holds: (value): value is string | number =>
    typeof value === 'string' || (Number.isSafeInteger(value) && Number(value) > 0),
  what: 'a text with its unit, such as "8GB", or a whole number of bytes above 0',
};
const guardsMode: Field<'on' | 'observe' | 'pause'> = {
  holds: (value): value is 'on' | 'observe' | 'pause' =>
    value === 'on' || value === 'observe' || value === 'pause',
  what: '"on", "observe" or "pause"',
};

const reportKind: Field<ReportedEvent['kind']> = {
  holds: (value): value is ReportedEvent['kind'] => value === 'fail_open' || value === 'deflected',
  what: '"fail_open" or "deflected"',
};
const sentence: Field<string> = {
  holds: (value): value is string => typeof value === 'string' && value !== '' && value.length <= 1000,
  what: 'a text of 1 to 1000 characters',
};
const name: Field<string> = {
  holds: (value): value is string => typeof value === 'string' && value !== '' && value.length <= 200,
  what: 'a text of 1 to 200 characters',
};
const modelName: Field<string> = {
  holds: (value): value is string => typeof value === 'string' && value !== '' && value.length <= 400,
  what: 'a text of 1 to 400 characters',
};
const turnClass: Field<TurnClass> = {
  holds: (value): value is TurnClass => value === 'interactive' || value === 'batch',
  what: '"interactive" or "batch"',
};
const wait: Field<number> = {
  holds: (value): value is number =>
    typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= LONGEST_WAIT_MS,
  what: `a whole number of milliseconds from 0 to ${LONGEST_WAIT_MS}`,
};
const lane: Field<string> = {
  holds: (value): value is string =>
    typeof value === 'string' && value.length <= 100 && /^[0-9a-z.:-]+_\d{1,5}$/.test(value),
  what: 'the name of a lane, such as "127.0.0.1_8080"',
};
const figures: Field<Readonly<Record<string, number | null>>> = {
  holds: (value): value is Readonly<Record<string, number | null>> =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.keys(value).length <= 16 &&
    Object.entries(value).every(
      ([key, figure]) => /^[a-z][A-Za-z0-9]{0,39}$/.test(key) && (figure === null || Number.isFinite(figure)),
    ),
  what: 'an object of at most 16 numbers or nulls, such as {"waitedMs":1200}',
};

export type ModelAction = 'load' | 'unload' | 'pin' | 'unpin';

export function modelCommand(action: ModelAction, model: string, body: unknown): Result<Command> {
  const takesForce = action === 'load' || action === 'unload';
  const parsed = read(takesForce ? { force: flag } : {}, body);
  if (!parsed.ok) return parsed;
  const slash = model.indexOf('/');
  if (slash <= 0 || slash === model.length - 1) {
    return fail(
      'bad_input',
      `${JSON.stringify(model)} is not a model id; write backend/model, URL-encoded, as /api/state lists it.`,
    );
  }
  if (action === 'pin' || action === 'unpin') return ok({ type: action, model });
  return ok({ type: action, model, force: parsed.value.force ?? false });
}

/** Both steps have to be said: they end processes. */
export function drainCommand(body: unknown): Result<Command> {
  const parsed = read({ kill: flag, restartUnit: flag }, body);
  if (!parsed.ok) return parsed;
  const { kill, restartUnit } = parsed.value;
  return ok({
    type: 'drain',
    ...(kill === true ? { kill } : {}),
    ...(restartUnit === true ? { restartUnit } : {}),
  });
}

export function acceptCommand(body: unknown): Result<Command> {
  const parsed = read({ offer: text }, body);
  if (!parsed.ok) return parsed;
  const { offer } = parsed.value;
  return offer === null
    ? fail('bad_input', `\`offer\` must be ${text.what}.`)
    : ok({ type: 'accept', offer });
}

export function plainCommand(type: 'wake' | 'drain' | 'restore', body: unknown): Result<Command> {
  const parsed = read({}, body);
  return parsed.ok ? ok({ type }) : parsed;
}

export function sleepCommand(body: unknown): Result<Command> {
  const parsed = read({ for: duration }, body);
  if (!parsed.ok) return parsed;
  const forMs = readDuration(parsed.value.for);
  return forMs.ok ? ok({ type: 'sleep', forMs: forMs.value }) : forMs;
}

export function makeRoomCommand(body: unknown): Result<Command> {
  const parsed = read({ bytes: amount, device: text }, body);
  if (!parsed.ok) return parsed;
  const { bytes, device: deviceId } = parsed.value;
  const freeBytes = readBytes(bytes);
  return freeBytes.ok ? ok({ type: 'makeRoom', freeBytes: freeBytes.value, deviceId }) : freeBytes;
}

/** `bytes` must be there; whose it is the connection tells. */
export function reservationWish(body: unknown): Result<Omit<ReservationRequest, 'pid'>> {
  const parsed = read({ bytes: amount, device: text, name }, body);
  if (!parsed.ok) return parsed;
  const bytes = readBytes(parsed.value.bytes, 'it is what the job takes at most');
  if (!bytes.ok) return bytes;
  if (bytes.value === null) return fail('bad_input', `\`bytes\` must be ${amount.what}.`);
  return ok({ bytes: bytes.value, device: parsed.value.device, name: parsed.value.name });
}

export function guardsCommand(body: unknown): Result<Command> {
  const parsed = read({ mode: guardsMode, for: duration, backend: text }, body);
  if (!parsed.ok) return parsed;
  const { mode, backend } = parsed.value;
  if (mode === null) return fail('bad_input', `\`mode\` must be ${guardsMode.what}.`);
  const forMs = readDuration(parsed.value.for);
  if (!forMs.ok) return forMs;
  if (forMs.value !== null && mode !== 'pause') {
    return fail('bad_input', `\`for\` goes with mode "pause" only; "${mode}" stays until it is changed.`);
  }
  return ok({ type: 'guards', mode, forMs: forMs.value, backend });
}

/** What another process of ours reports: `kind` and `reason` must be there. */
export function reportedEvent(body: unknown): Result<ReportedEvent> {
  const parsed = read(
    { kind: reportKind, reason: sentence, lane, session: name, model: name, numbers: figures },
    body,
  );
  if (!parsed.ok) return parsed;
  const { kind, reason, numbers, ...rest } = parsed.value;
  if (kind === null) return fail('bad_input', `\`kind\` must be ${reportKind.what}.`);
  if (reason === null) return fail('bad_input', `\`reason\` must be ${sentence.what}.`);
  return ok({ kind, reason, numbers: numbers ?? {}, ...rest });
}

/** Whose turn, and for how long it may wait. `model` or `backend` must be there. */
export interface TurnWish {
  readonly backend: string | null;
  readonly model: string | null;
  readonly session: string | null;
  readonly class: TurnClass;
  readonly waitMs: number;
}

export function turnWish(body: unknown): Result<TurnWish> {
  const parsed = read(
    { model: modelName, backend: name, session: name, class: turnClass, waitMs: wait },
    body,
  );
  if (!parsed.ok) return parsed;
  const { backend, model, waitMs } = parsed.value;
  if (backend === null && model === null)
    return fail('bad_input', 'Say for which `model` or `backend` the turn is.');
  return ok({ ...parsed.value, class: parsed.value.class ?? 'interactive', waitMs: waitMs ?? 0 });
}

/** A text with its unit (`15min`), or a number of milliseconds; absent is null. */
function readDuration(value: string | number | null): Result<number | null> {
  if (value === null) return ok(null);
  const parsed = typeof value === 'number' ? ({ ok: true, value } as const) : parseDuration(value);
  if (!parsed.ok) return fail('bad_input', `\`for\` is not a duration; ${parsed.hint}.`);
  if (parsed.value > 0 && parsed.value <= LONGEST_MS) return ok(parsed.value);
  return fail('bad_input', '`for` must be longer than 0 and at most ten years; leave it out for no end.');
}

function readBytes(
  value: string | number | null,
  otherwise = 'leave it out to free everything that may leave',
): Result<number | null> {
  if (value === null) return ok(null);
  const parsed = parseBytes(value);
  if (!parsed.ok) return fail('bad_input', `\`bytes\` is not an amount of memory; ${parsed.hint}.`);
  if (parsed.value > 0) return ok(parsed.value);
  return fail('bad_input', `\`bytes\` must be more than 0; ${otherwise}.`);
}

/** No body at all reads as `{}`. */
function read<Fields extends Readonly<Record<string, Field<unknown>>>>(
  fields: Fields,
  body: unknown,
): Result<{ readonly [Name in keyof Fields]: Fields[Name] extends Field<infer T> ? T | null : never }>;
function read(
  fields: Readonly<Record<string, Field<unknown>>>,
  body: unknown,
): Result<Readonly<Record<string, unknown>>> {
  const given = body ?? {};
  if (typeof given !== 'object' || Array.isArray(given))
    return fail('bad_input', 'The body must be a JSON object, such as {}.');
  for (const [name, value] of Object.entries(given)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined)
      return fail('bad_input', `\`${name}\` is not known here; ${knownFields(Object.keys(fields))}.`);
    if (value !== null && value !== undefined && !field.holds(value))
      return fail('bad_input', `\`${name}\` must be ${field.what}.`);
  }
  return ok(Object.fromEntries(Object.keys(fields).map((name) => [name, Reflect.get(given, name) ?? null])));
}

function knownFields(names: readonly string[]): string {
  return names.length === 0 ? 'no field is' : `known are ${names.map((name) => `\`${name}\``).join(', ')}`;
}
