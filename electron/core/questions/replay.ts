import type { ReplayLeaver, ReplayRun } from '../../../shared/questions.ts';
import type { StoredSample } from '../events/event-store.ts';
import { decide } from '../guards/decide.ts';
import { emptyMemory } from '../guards/memory.ts';
import type { GuardMemory, GuardModel, GuardPolicy, GuardWorld } from '../guards/world.ts';

/**
 * Recorded days, run again under another policy. What is not the guards' own doing (the desktop, who
 * asked for which model) is as it was recorded; which models are there follows from the replay:
 *
 *   recorded there ──decided to leave──► away here ──used, or loaded anew──► there again (a reload)
 *   recorded there ──evicted that day, not decided here──► kept here ──decided to leave──► away here
 *
 * Pure: one reading at a time goes in, and the counts come out.
 */
export interface ReplayPolicy {
  readonly floorBytes: number | null;
  readonly hardFloorBytes: number | null;
  readonly capBytes: number | null;
  readonly guards: GuardPolicy;
}

/** What today's settings say of a model; the record holds sizes and use alone. */
export type ModelTraits = (
  id: string,
) => Pick<GuardModel, 'big' | 'small' | 'pinned' | 'batchOnly' | 'ttlMs'>;

interface Tracked {
  readonly sinceMs: number;
  readonly lastUsedAtMs: number | null;
  readonly bytes: number | null;
  /** recorded: as that day. kept: a guard evicted it that day, and here it stays. away: here a guard evicted it. */
  readonly place: 'recorded' | 'kept' | 'away';
}

/** Readings further apart than this are no time in which anything is known to have lasted. */
const GAP_MS = 150_000;

export interface ReplayRunner {
  /** `evicted`: models that a guard evicted between the reading before and this one. */
  look(sample: StoredSample, evicted: ReadonlySet<string>): void;
  result(): ReplayRun;
}

/** Ids of models among a reading's tenants: `backend/model`, where a desktop's or a job's hold no such slash. */
export function isModelId(id: string): boolean {
  return /^[A-Za-z0-9][\w.-]{0,63}\/./.test(id);
}

export function createReplayRun(policy: ReplayPolicy, traits: ModelTraits): ReplayRunner {
  let tracked = new Map<string, Tracked>();
  let memory: GuardMemory = emptyMemory();
  /** Followed here, and not there on record at the reading before. */
  let absentBefore: ReadonlySet<string> = new Set();
  let beforeMs: number | null = null;
  let shortSinceMs: number | null = null;
  let counted = false;
  const counts = { evictions: 0, reloads: 0, shortfalls: 0, underFloorMs: 0, underHardFloorMs: 0 };
  const leavers = new Map<string, { evictions: number; reloads: number }>();
  const count = (model: string, what: 'evictions' | 'reloads'): void => {
    counts[what] += 1;
    const known = leavers.get(model) ?? { evictions: 0, reloads: 0 };
    leavers.set(model, { ...known, [what]: known[what] + 1 });
  };

  const follow = (sample: StoredSample, evicted: ReadonlySet<string>): void => {
    const used = new Set(sample.used ?? []);
    const next = new Map<string, Tracked>();
    for (const [id, bytes] of Object.entries(sample.tenants)) {
      if (!isModelId(id)) continue;
      const known = tracked.get(id);
      const back = known?.place === 'away' && (used.has(id) || absentBefore.has(id));
      if (back) count(id, 'reloads');
      const place = known?.place === 'away' && !back ? 'away' : 'recorded';
      next.set(id, {
        sinceMs: back || known === undefined ? sample.atMs : known.sinceMs,
        lastUsedAtMs: used.has(id) ? sample.atMs : (known?.lastUsedAtMs ?? null),
        bytes: bytes ?? known?.bytes ?? null,
        place,
      });
    }
    for (const [id, known] of tracked) {
      if (next.has(id)) continue;
      // Whoever left by itself or by a person's order is gone here as well.
      if (known.place === 'kept' || (known.place === 'recorded' && evicted.has(id)))
        next.set(id, { ...known, place: 'kept' });
      else if (known.place === 'away' && (evicted.has(id) || absentBefore.has(id))) next.set(id, known);
    }
    absentBefore = new Set([...next.keys()].filter((id) => !Object.hasOwn(sample.tenants, id)));
    tracked = next;
  };

  const freeOf = (sample: StoredSample): number | null => {
    if (sample.freeBytes === null) return null;
    let free = sample.freeBytes;
    for (const [id, { place, bytes }] of tracked) {
      if (place === 'away' && Object.hasOwn(sample.tenants, id)) free += bytes ?? 0;
      if (place === 'kept') free -= bytes ?? 0;
    }
    return Math.max(0, free);
  };

  const worldOf = (sample: StoredSample, freeBytes: number): GuardWorld => {
    const used = new Set(sample.used ?? []);
    const models = [...tracked]
      .filter(([, { place }]) => place !== 'away')
      .map(([id, one]) => guardModel(id, one, used.has(id), sample.deviceId, traits(id)));
    return {
      nowMs: sample.atMs,
      devices: [
        {
          id: sample.deviceId,
          unified: false,
          fresh: true,
          totalBytes: sample.totalBytes,
          freeBytes,
          floorBytes: policy.floorBytes,
          hardFloorBytes: policy.hardFloorBytes,
          capBytes: policy.capBytes,
          bookedBytes: models.reduce((sum, model) => sum + (model.bytes ?? 0), 0),
          outstandingBytes: 0,
          evictionUnderWay: null,
          sampledAtMs: sample.atMs,
        },
      ],
      models,
      asleep: false,
      policy: policy.guards,
      resumedAtMs: null,
      wantedFree: [],
      drain: null,
    };
  };

  const measure = (atMs: number, freeBytes: number | null): void => {
    const spanMs = beforeMs === null || atMs - beforeMs > GAP_MS ? 0 : atMs - beforeMs;
    const { floorBytes, hardFloorBytes } = policy;
    const short = freeBytes !== null && floorBytes !== null && freeBytes < floorBytes;
    if (short) counts.underFloorMs += spanMs;
    if (freeBytes !== null && hardFloorBytes !== null && freeBytes < hardFloorBytes)
      counts.underHardFloorMs += spanMs;
    if (!short) {
      shortSinceMs = null;
      counted = false;
      return;
    }
    shortSinceMs ??= atMs;
    if (counted || atMs - shortSinceMs < policy.guards.breachMs) return;
    counted = true;
    counts.shortfalls += 1;
  };

  return {
    look(sample, evicted) {
      if (beforeMs !== null && sample.atMs - beforeMs > GAP_MS) {
        memory = emptyMemory();
        shortSinceMs = null;
      }
      follow(sample, evicted);
      const freeBytes = freeOf(sample);
      measure(sample.atMs, freeBytes);
      beforeMs = sample.atMs;
      if (freeBytes === null) return;
      const result = decide(worldOf(sample, freeBytes), memory);
      memory = result.memory;
      for (const { modelId } of result.decisions) {
        const one = tracked.get(modelId);
        if (one === undefined || one.place === 'away') continue;
        count(modelId, 'evictions');
        tracked.set(modelId, { ...one, place: 'away' });
      }
    },
    result: () => ({
      floorBytes: policy.floorBytes,
      maxBig: policy.guards.maxBig,
      ...counts,
      models: [...leavers]
        .map(([model, of]): ReplayLeaver => ({ model, ...of }))
        .sort((one, other) => other.evictions - one.evictions || (one.model < other.model ? -1 : 1)),
    }),
  };
}

function guardModel(
  id: string,
  one: Tracked,
  busy: boolean,
  deviceId: string,
  traits: ReturnType<ModelTraits>,
): GuardModel {
  return {
    id,
    backend: id.slice(0, id.indexOf('/')),
    deviceId,
    status: 'loaded',
    statusSinceMs: one.sinceMs,
    busy,
    lastUsedAtMs: one.lastUsedAtMs,
    ...traits,
    bytes: one.bytes,
    predictedBytes: one.bytes,
    seenBytes: one.bytes,
    unloadRequestedAtMs: null,
    signalable: null,
    turnClass: null,
    guarded: 'on',
  };
}
