import { z } from 'zod';
import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { Command } from '../runtime-api.ts';
import { parseBytes, parseDuration } from '../settings/units.ts';

/**
 * What the bodies of POST requests mean. Every field may be left out, an unknown one is refused:
 * a misspelt `forse` must not turn into an unforced unload.
 */

/** A sleep or pause longer than this is a slip of the keyboard. */
const LONGEST_MS = 3650 * 86_400_000;

const duration = z.union([z.string(), z.number()]).nullable().optional();
const forceBody = z.strictObject({ force: z.boolean().optional() });
const emptyBody = z.strictObject({});
const sleepBody = z.strictObject({ for: duration });
const makeRoomBody = z.strictObject({
  bytes: z
    .union([z.string(), z.number().int().positive().max(Number.MAX_SAFE_INTEGER)])
    .nullable()
    .optional(),
  device: z.string().nullable().optional(),
});
const guardsBody = z.strictObject({
  mode: z.enum(['on', 'observe', 'pause']),
  for: duration,
  backend: z.string().min(1).nullable().optional(),
});

export type ModelAction = 'load' | 'unload' | 'pin' | 'unpin';

export function modelCommand(action: ModelAction, model: string, body: unknown): Result<Command> {
  const parsed = read(action === 'load' || action === 'unload' ? forceBody : emptyBody, body);
  if (!parsed.ok) return parsed;
  const slash = model.indexOf('/');
  if (slash <= 0 || slash === model.length - 1) {
    return fail(
      'bad_input',
      `${JSON.stringify(model)} is not a model id; write backend/model, URL-encoded, as /api/state lists it.`,
    );
  }
  if (action === 'pin' || action === 'unpin') return ok({ type: action, model });
  return ok({ type: action, model, force: 'force' in parsed.value ? parsed.value.force === true : false });
}

export function plainCommand(type: 'wake' | 'drain' | 'restore', body: unknown): Result<Command> {
  const parsed = read(emptyBody, body);
  return parsed.ok ? ok({ type }) : parsed;
}

export function sleepCommand(body: unknown): Result<Command> {
  const parsed = read(sleepBody, body);
  if (!parsed.ok) return parsed;
  const forMs = readDuration(parsed.value.for);
  return forMs.ok ? ok({ type: 'sleep', forMs: forMs.value }) : forMs;
}

export function makeRoomCommand(body: unknown): Result<Command> {
  const parsed = read(makeRoomBody, body);
  if (!parsed.ok) return parsed;
  const { bytes = null, device = null } = parsed.value;
  const freeBytes = readBytes(bytes);
  return freeBytes.ok ? ok({ type: 'makeRoom', freeBytes: freeBytes.value, deviceId: device }) : freeBytes;
}

export function guardsCommand(body: unknown): Result<Command> {
  const parsed = read(guardsBody, body);
  if (!parsed.ok) return parsed;
  const { mode, backend = null } = parsed.value;
  const forMs = readDuration(parsed.value.for);
  if (!forMs.ok) return forMs;
  if (forMs.value !== null && mode !== 'pause') {
    return fail('bad_input', `\`for\` goes with mode "pause" only; "${mode}" stays until it is changed.`);
  }
  return ok({ type: 'guards', mode, forMs: forMs.value, backend });
}

/** A text with its unit (`15min`), or a number of milliseconds; absent is null. */
function readDuration(value: string | number | null | undefined): Result<number | null> {
  if (value === null || value === undefined) return ok(null);
  const parsed = typeof value === 'number' ? ({ ok: true, value } as const) : parseDuration(value);
  if (!parsed.ok) return fail('bad_input', `\`for\` is not a duration; ${parsed.hint}.`);
  if (parsed.value > 0 && parsed.value <= LONGEST_MS) return ok(parsed.value);
  return fail('bad_input', '`for` must be longer than 0 and at most ten years; leave it out for no end.');
}

function readBytes(value: string | number | null): Result<number | null> {
  if (value === null) return ok(null);
  const parsed = parseBytes(value);
  if (!parsed.ok) return fail('bad_input', `\`bytes\` is not an amount of memory; ${parsed.hint}.`);
  if (parsed.value > 0) return ok(parsed.value);
  return fail('bad_input', '`bytes` must be more than 0; leave it out to free everything that may leave.');
}

/** No body at all reads as `{}`. */
function read<T>(schema: z.ZodType<T>, body: unknown): Result<T> {
  const parsed = schema.safeParse(body ?? {});
  if (parsed.success) return ok(parsed.data);
  const issue = parsed.error.issues[0];
  const where = issue === undefined || issue.path.length === 0 ? 'The body' : `\`${issue.path.join('.')}\``;
  return fail('bad_input', `${where} is not as expected: ${issue?.message ?? 'unreadable'}.`);
}
