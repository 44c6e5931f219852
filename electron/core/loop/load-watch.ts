import type { ModelStatus } from '../../../shared/state.ts';
import { isStale } from '../devices/sample.ts';
import type { Booking } from '../ledger/booking.ts';
import { type DeviceKind, kindOn } from '../ledger/footprint/device-kind.ts';
import type { Footprint } from '../ledger/footprint/estimate.ts';
import { afterFirstUse, type LoadMeasurement, measureStep } from './measure.ts';
import { holdsMemory, type ModelView } from './model-view.ts';
import type { Models } from './models.ts';
import { isLessened, isMissing, spilledBytes } from './off-card.ts';
import { type OtherHolders, otherHolders } from './other-holders.ts';
import type { Sight } from './sight.ts';

export interface Forecast {
  readonly bytes: number;
  /** `measured before`, `your figure`, `estimate`, `weights only`. */
  readonly source: string;
}

/** What is known of the device that a model will be on. */
export interface DevicePlace {
  readonly deviceKind: DeviceKind | null;
  readonly deviceTotalBytes: number | null;
  /** Of all devices of its kind together; null or left out: not known. */
  readonly kindTotalBytes?: number | null;
}

/** Where predictions come from and measurements go to. */
export interface Forecaster {
  /** null: nobody can say. */
  predict(view: ModelView, place: DevicePlace): Promise<Forecast | null>;
  /** The estimate for another context than the one it is set to; null: its file can't be read. */
  footprint(
    view: ModelView,
    place: DevicePlace,
    context: number | 'set' | 'trained',
  ): Promise<Footprint | null>;
  /** A settled measurement of a loaded model, for the next prediction of the same model and flags. */
  learn(view: ModelView, bytes: number): void;
  /** Figures of earlier runs that could be read only now, as they were kept. */
  takeUp?(kept: unknown): void;
  /** Whom to tell that a model's prediction has become better since it was asked for. */
  onBetter?(listener: (modelId: string) => void): void;
}

/** A server's list is read about once a second, so a load is seen that much late. */
const BEFORE_MS = 1_000;
/** A per-process figure is taken as settled once it has stood this long after the load. */
const LEARN_AFTER_MS = 5_000;
/** What a model takes is there when it is seen loaded, but for a late list and a late reading. */
const COMING_MS = 1_000;
/** A driver gives back what a process held within some seconds of its end. */
const GIVING_BACK_MS = 5_000;
/** Learned again only when it has grown by this share: allocators breathe, and a first prompt takes more. */
const LEARN_SHARE = 0.02;

/** Follows each model's loads: what is predicted for it, and what it then really took. */
export class LoadWatch {
  readonly #forecaster: Forecaster;
  readonly #wake: () => void;
  readonly #bookings: () => readonly Booking[];
  readonly #asked = new Map<string, string>();
  /** Of each model: the newest question about it that was answered. */
  readonly #answered = new Map<string, number>();
  #turn = 0;
  readonly #measuring = new Map<string, LoadMeasurement>();
  readonly #others = new Map<string, OtherHolders>();
  /** Of each measurement: which other models and agents held memory there when it began. */
  readonly #beside = new Map<string, string>();
  readonly #rests = new Map<string, Rest>();
  readonly #learned = new Map<string, number>();
  #sight: Sight | null = null;

  /** `bookings`: the ledger's lines, for what agents and reserved jobs hold beside models. */
  constructor(forecaster: Forecaster, wake: () => void, bookings: () => readonly Booking[] = () => []) {
    this.#forecaster = forecaster;
    this.#wake = wake;
    this.#bookings = bookings;
    forecaster.onBetter?.((modelId) => {
      this.#asked.delete(modelId);
      this.#wake();
    });
  }

  look(view: ModelView, before: ModelStatus | undefined, sight: Sight, models: Models, nowMs: number): void {
    this.#sight = sight;
    // What was learned of it counts for its next load, whoever begins that.
    if (before !== undefined && holdsMemory(before) && !holdsMemory(view.status)) this.#asked.delete(view.id);
    this.#ask(view, models);
    const rest = this.#rests.get(view.id);
    this.#rests.set(view.id, restOf(view.status, rest, nowMs));
    // While it was out of sight it may have left and come again.
    if (before === undefined) this.#measuring.delete(view.id);
    if (view.status === 'loading' && before !== 'loading')
      this.#begin(view, before === undefined ? undefined : rest, sight, models, nowMs);
    // Of one load the most counts, and the next one begins anew.
    if (view.status === 'loaded' && before !== 'loaded') this.#learned.delete(view.id);
    this.#measure(view, sight, models, nowMs);
    if (view.status !== 'loaded' || !view.atRest || nowMs - view.observed.sinceMs <= LEARN_AFTER_MS) return;
    const bytes = processBytes(view, sight, nowMs);
    if (bytes !== null) this.#learn(view, bytes, sight, nowMs);
  }

  /** Asks for a prediction once per set of flags; the answer comes with a later step. */
  #ask(view: ModelView, models: Models): void {
    const { deviceKind } = this.#place(view);
    const key = JSON.stringify([view.observed.args, view.observed.modelPath, deviceKind]);
    if (this.#asked.get(view.id) === key) return;
    this.#asked.set(view.id, key);
    void this.predict(view, models);
  }

  /** Predicts now, for a load that is about to be asked for. */
  async predict(view: ModelView, models: Models): Promise<Forecast | null> {
    const turn = ++this.#turn;
    const forecast = await this.#forecaster.predict(view, this.#place(view));
    // A slow disk may answer of former flags last.
    if (turn < (this.#answered.get(view.id) ?? 0)) return forecast;
    this.#answered.set(view.id, turn);
    models.remember(view.id, {
      predictedBytes: forecast?.bytes ?? null,
      predictionSource: forecast?.source ?? null,
    });
    if (forecast !== null) this.#wake();
    return forecast;
  }

  /** By part, for the context it is set to, the one it was trained for, or another. */
  footprint(view: ModelView, context: number | 'set' | 'trained'): Promise<Footprint | null> {
    return this.#forecaster.footprint(view, this.#place(view), context);
  }

  #place(view: ModelView): DevicePlace {
    const device = this.#sight?.device(view.deviceId) ?? null;
    const alike = this.#sight?.devices().filter(({ kind }) => kind === device?.kind) ?? [];
    return {
      deviceKind: device === null ? null : kindOn(device.kind),
      deviceTotalBytes: device?.totalBytes ?? null,
      kindTotalBytes: alike.reduce((sum, { totalBytes }) => sum + (totalBytes ?? 0), 0) || null,
    };
  }

  /** Settings or figures have changed: every prediction is asked for anew. */
  forget(): void {
    this.#asked.clear();
  }

  /** `rest`: how it was until then; undefined: it was not seen. */
  #begin(view: ModelView, rest: Rest | undefined, sight: Sight, models: Models, nowMs: number): void {
    // By the time a load is seen it may have taken its first gigabytes, and a step may come late.
    const beforeMs = Math.min(nowMs, view.observed.sinceMs) - BEFORE_MS;
    const earlier = sight.readingAt(view.deviceId, beforeMs);
    const freeBytes = earlier?.freeBytes ?? sight.free(view.deviceId, nowMs).freeBytes;
    models.remember(view.id, { freeAtLoadBytes: freeBytes, settledBytes: null });
    this.#measuring.delete(view.id);
    this.#others.delete(view.id);
    // A load seen half-way has already taken an unknown part, and an old reading says nothing of that moment.
    if (rest === undefined || earlier === null || isStale(earlier, beforeMs)) return;
    if (earlier.freeBytes === null || view.deviceId === null) return;
    if (rest.holds || earlier.takenAtMs - rest.sinceMs < GIVING_BACK_MS) return;
    if (this.#hasJustMoved(view, models, earlier.takenAtMs, nowMs)) return;
    const beside = this.#holdersBeside(view.id, view.deviceId, models);
    if (beside === null) return;
    this.#beside.set(view.id, beside);
    this.#measuring.set(view.id, {
      modelId: view.id,
      deviceId: view.deviceId,
      freeBeforeBytes: earlier.freeBytes,
      othersBeforeBytes: this.#othersOf(view, view.deviceId, sight, models, nowMs),
      settledBytes: null,
      loadedAtMs: null,
      lastFreeBytes: null,
      lastSampleAtMs: null,
      steadySamples: 0,
      steadyFromMs: null,
    });
  }

  #measure(view: ModelView, sight: Sight, models: Models, nowMs: number): void {
    const measurement = this.#measuring.get(view.id);
    if (measurement === undefined) return;
    const disturbed = models
      .views()
      .some(
        (other) =>
          other.id !== view.id &&
          other.deviceId === measurement.deviceId &&
          (other.status === 'loading' || other.status === 'stopping'),
      );
    // Some loads and ends are too short to be seen under way.
    const changed = this.#beside.get(view.id) !== this.#holdersBeside(view.id, measurement.deviceId, models);
    // Asleep it holds less than it takes; and where it really is may be known only once it is loaded.
    const isThere =
      (view.status === 'loading' || view.status === 'loaded') && view.deviceId === measurement.deviceId;
    if (!isThere || disturbed || changed) {
      this.#measuring.delete(view.id);
      return;
    }
    if (measurement.settledBytes !== null && measurement.othersBeforeBytes === null && !isUsed(view)) {
      this.#measuring.set(view.id, beforeFirstUse(measurement, sight, nowMs));
      return;
    }
    const begins =
      measurement.settledBytes === null
        ? view.status === 'loaded'
        : isUsed(view) && view.observed.busy === false;
    const started =
      begins && measurement.loadedAtMs === null ? { ...measurement, loadedAtMs: nowMs } : measurement;
    const others = this.#othersOf(view, measurement.deviceId, sight, models, nowMs);
    const step = measureStep(started, sight.free(view.deviceId, nowMs), others, sight.processesAtMs);
    if (step.type === 'go on') {
      this.#measuring.set(view.id, step.measurement);
      return;
    }
    this.#measuring.delete(view.id);
    if (step.type === 'given up') return;
    if (measurement.settledBytes === null) this.#measuring.set(view.id, afterFirstUse(started, step.bytes));
    models.remember(view.id, { settledBytes: step.bytes });
    if (processBytes(view, sight, nowMs) === null) this.#learn(view, step.bytes, sight, nowMs);
  }

  /** Another model came shortly before that reading or after it, and would be counted with this one; or left, and gives back what this one takes. */
  #hasJustMoved(view: ModelView, models: Models, readingAtMs: number, nowMs: number): boolean {
    const others = models.views().filter((other) => other.id !== view.id);
    const listed = new Set([view.id, ...others.map((other) => other.id)]);
    for (const [id, rest] of this.#rests) {
      if (listed.has(id)) continue;
      // Its server no longer answers, or no longer lists it: what it held may be on its way back.
      const leftAtMs = rest.kind === 'less' ? rest.sinceMs : rest.seenAtMs;
      if (readingAtMs - leftAtMs < GIVING_BACK_MS) return true;
      this.#rests.delete(id);
    }
    return others.some((other) => {
      // In the same step some are looked at only after this one.
      const rest = restOf(other.status, this.#rests.get(other.id), nowMs);
      if (rest.kind === 'whole')
        return other.deviceId === view.deviceId && readingAtMs - rest.sinceMs < COMING_MS;
      return readingAtMs - rest.sinceMs < GIVING_BACK_MS;
    });
  }

  /**
   * The other models that hold memory on a device, and which of them sleep, and what agents have there, as one
   * text. null: a reserved job is there, which takes and gives back as it likes.
   */
  #holdersBeside(modelId: string, deviceId: string, models: Models): string | null {
    const lines = this.#bookings().filter((line) => line.kind !== 'model' && line.deviceId === deviceId);
    if (lines.some((line) => line.kind === 'reserved')) return null;
    return [
      ...models
        .views()
        .filter((other) => other.id !== modelId && other.deviceId === deviceId && holdsMemory(other.status))
        .map((other) => `${other.id} ${other.status === 'sleeping'}`),
      ...lines.map((line) => `${line.id} ${line.state} ${line.measuredBytes ?? line.predictedBytes}`),
    ]
      .sort()
      .join('\n');
  }

  /** What others hold there; who they were when the load began is kept with it. */
  #othersOf(view: ModelView, deviceId: string, sight: Sight, models: Models, nowMs: number): number | null {
    const modelPids = new Set(models.views().flatMap((one) => one.observed.process?.pid ?? []));
    const before = this.#others.get(view.id) ?? null;
    const ownPid = view.observed.process?.pid ?? null;
    const known = before?.heldByPid ?? null;
    const now = otherHolders(sight.processesKnown(nowMs), deviceId, modelPids, known, ownPid);
    if (before === null && now !== null) this.#others.set(view.id, now);
    return now?.bytes ?? null;
  }

  /** Its server put all of it elsewhere, or a part. */
  #isPartly(view: ModelView, bytes: number, sight: Sight, nowMs: number): boolean {
    const card = sight.device(view.deviceId);
    const processes = sight.processes(nowMs);
    if (isMissing(view, bytes)) return true;
    if (card !== null && spilledBytes(view, card, processes) > 0) return true;
    // Split over several cards, it takes a part of what is predicted on each.
    const pid = view.observed.process?.pid ?? null;
    const isSplit =
      pid === null
        ? sight.devices().filter(({ memory }) => memory === 'discrete').length > 1
        : processes.some((use) => use.pid === pid && use.deviceId !== view.deviceId && use.bytes !== 0);
    return !isSplit && isLessened(view, bytes, sight.free(view.deviceId, nowMs).freeBytes);
  }

  #learn(view: ModelView, bytes: number, sight: Sight, nowMs: number): void {
    // That would teach that it needs less.
    if (this.#isPartly(view, bytes, sight, nowMs)) return;
    const last = this.#learned.get(view.id);
    if (last !== undefined && bytes <= last * (1 + LEARN_SHARE)) return;
    this.#learned.set(view.id, bytes);
    this.#forecaster.learn(view, bytes);
  }
}

/** What a model holds on its device: all of it, less (asleep or gone), or on the way between them; since when, and when it was seen last, in monotonic ms. */
interface Rest {
  readonly kind: 'whole' | 'less' | 'on the way';
  /** Some of it at least. */
  readonly holds: boolean;
  readonly sinceMs: number;
  readonly seenAtMs: number;
}

/** A model that has never held anything is at rest for ever. */
function restOf(status: ModelStatus, before: Rest | undefined, nowMs: number): Rest {
  const holds = holdsMemory(status);
  const kind =
    status === 'loading' || status === 'stopping'
      ? 'on the way'
      : holds && status !== 'sleeping'
        ? 'whole'
        : 'less';
  const rest = { kind, holds, seenAtMs: nowMs } as const;
  if (kind !== 'on the way' && kind === before?.kind && holds === before.holds)
    return { ...rest, sinceMs: before.sinceMs };
  return { ...rest, sinceMs: before === undefined && !holds ? Number.NEGATIVE_INFINITY : nowMs };
}

/** What moves until its first use is not its own, where the driver does not tell whose it is. */
function beforeFirstUse(measurement: LoadMeasurement, sight: Sight, nowMs: number): LoadMeasurement {
  const reading = sight.readingAt(measurement.deviceId, nowMs - BEFORE_MS);
  if (reading === null || reading.freeBytes === null || isStale(reading, nowMs - BEFORE_MS))
    return measurement;
  return { ...measurement, freeBeforeBytes: reading.freeBytes + (measurement.settledBytes ?? 0) };
}

/** By the driver's own figure for its proven process; null: there is none, or not for all of it, and what a server claims is no measurement. */
function processBytes(view: ModelView, sight: Sight, nowMs: number): number | null {
  const pid = view.observed.process?.pid ?? null;
  const mine = sight.processes(nowMs).filter((use) => use.pid === pid && use.deviceId === view.deviceId);
  if (mine.length === 0 || mine.some((use) => use.bytes === null)) return null;
  return mine.reduce((sum, use) => sum + (use.bytes ?? 0), 0);
}

/** It has served something since it was loaded. */
function isUsed(view: ModelView): boolean {
  const { lastBusyAtMs, sinceMs } = view.observed;
  return lastBusyAtMs !== null && lastBusyAtMs >= sinceMs;
}
