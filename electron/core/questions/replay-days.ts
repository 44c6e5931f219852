import { setImmediate as turn } from 'node:timers/promises';
import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { Replay } from '../../../shared/questions.ts';
import { byName, matchesName, type Settings } from '../../../shared/settings.ts';
import type { StoredSample } from '../events/event-store.ts';
import type { SqliteStore } from '../events/sqlite-store.ts';
import type { DeviceBook } from '../ledger/booking.ts';
import { isBig } from '../loop/model-view.ts';
import { policyOf } from '../loop/world.ts';
import { createReplayRun, type ModelTraits, type ReplayPolicy } from './replay.ts';

export interface ReplayRequest {
  readonly fromMs: number;
  readonly deviceId: string;
  /** null: as it is set now. */
  readonly floorBytes: number | null;
  /** 0: as many as fit. null: as it is set now. */
  readonly maxBig: number | null;
}

export interface ReplaySource {
  readonly store: Pick<SqliteStore, 'samples' | 'query'>;
  readonly settings: Settings;
  readonly pins: Readonly<Record<string, boolean>>;
  readonly book: DeviceBook;
  readonly nowMs: number;
}

/** Half a millisecond each: other work of the process is let in between so many readings. */
const TURN_EVERY = 100;

/**
 * Runs the recorded days again, under the settings of now and under those that are asked for.
 * Errors: `storage_failed`; `bad_input` where nothing is recorded.
 */
export async function replayDays(request: ReplayRequest, source: ReplaySource): Promise<Result<Replay>> {
  const { store, settings, book, nowMs } = source;
  const { fromMs, deviceId } = request;
  const [rows, events] = await Promise.all([
    store.samples({ sinceMs: fromMs, deviceId }),
    store.query({ since: fromMs, kinds: ['evicted', 'killed'], limit: 5000 }),
  ]);
  if (!rows.ok) return rows;
  if (!events.ok) return events;
  const samples = rows.value;
  const [first] = samples;
  const last = samples.at(-1);
  if (first === undefined || last === undefined)
    return fail(
      'bad_input',
      'Nothing is recorded of that device and time yet; a reading is kept every ten seconds.',
    );
  const evictions = events.value.flatMap(({ at, model }) =>
    model === undefined ? [] : [{ atMs: Date.parse(at), model }],
  );
  const traits = traitsOf(settings, source.pins, samples);
  const present = policyFor(settings, book, null, null);
  const asked = policyFor(settings, book, request.floorBytes, request.maxBig);
  const runs = [createReplayRun(present, traits), createReplayRun(asked, traits)] as const;
  let next = 0;
  for (const [index, sample] of samples.entries()) {
    const gone = new Set<string>();
    // An eviction is told when its memory is back: the reading after it is the first without the model.
    for (; (evictions[next]?.atMs ?? Infinity) <= sample.atMs + 10_000; next += 1)
      gone.add(evictions[next]?.model ?? '');
    for (const run of runs) run.look(sample, gone);
    if (index % TURN_EVERY === TURN_EVERY - 1) await turn();
  }
  const knowsUse = samples.some((sample) => (sample.used?.length ?? 0) > 0);
  return ok({
    deviceId,
    fromMs: first.atMs,
    toMs: Math.min(last.atMs, nowMs),
    readings: samples.length,
    present: runs[0].result(),
    asked: runs[1].result(),
    notes: notesOf(knowsUse, samples, nowMs),
  });
}

function policyFor(
  settings: Settings,
  book: DeviceBook,
  floorBytes: number | null,
  maxBig: number | null,
): ReplayPolicy {
  const guards = policyOf(settings);
  const floor = floorBytes ?? book.floorBytes;
  return {
    floorBytes: floor,
    // Half of it, unless one is set and still below.
    hardFloorBytes:
      floorBytes === null
        ? book.hardFloorBytes
        : settings.floor.hard !== null && book.hardFloorBytes !== null
          ? Math.min(book.hardFloorBytes, floorBytes)
          : Math.floor(floorBytes / 2),
    capBytes: book.capBytes,
    guards: maxBig === null ? guards : { ...guards, maxBig: maxBig === 0 ? 'fit' : maxBig },
  };
}

/** By the settings of now; a model's size is the largest it was seen with. */
function traitsOf(
  settings: Settings,
  pins: Readonly<Record<string, boolean>>,
  samples: readonly StoredSample[],
): ModelTraits {
  const largest = new Map<string, number>();
  for (const { tenants } of samples)
    for (const [id, bytes] of Object.entries(tenants))
      if (bytes !== null) largest.set(id, Math.max(largest.get(id) ?? 0, bytes));
  const known = new Map<string, ReturnType<ModelTraits>>();
  return (id) => {
    const before = known.get(id);
    if (before !== undefined) return before;
    const small = matchesName(settings.small, id);
    const traits = {
      small,
      big: isBig(settings, id, small, largest.get(id) ?? null),
      pinned: pins[id] ?? matchesName(settings.pinned, id),
      batchOnly: matchesName(settings.batchOnly, id),
      ttlMs: byName(settings.ttlMs, id) ?? null,
    };
    known.set(id, traits);
    return traits;
  };
}

function notesOf(knowsUse: boolean, samples: readonly StoredSample[], nowMs: number): readonly string[] {
  const notes = [
    'One reading in ten seconds is kept, so shorter peaks are not in it.',
    'The desktop and who asked for which model are as they were those days. No load is refused here, and how long one takes is not counted.',
  ];
  if ((samples[0]?.atMs ?? nowMs) < nowMs - 48 * 3_600_000)
    notes.push('Of days before yesterday one reading a minute is kept.');
  if (!knowsUse)
    notes.push(
      'No use of a model is recorded in this time, so each counts as idle and none as loaded again.',
    );
  return notes;
}
