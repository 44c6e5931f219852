import type { Settings } from '../../shared/settings.ts';
import { Executor } from './actuators/executor.ts';
import type { Outcome } from './actuators/operation.ts';
import type { BackendChange, BackendSnapshot } from './backends/backend.ts';
import type { SampleSet } from './devices/sample.ts';
import { decide } from './guards/decide.ts';
import { emptyMemory, noteFreedNothing } from './guards/memory.ts';
import type { Decision, DeviceVerdict, GuardMemory, GuardWorld } from './guards/world.ts';
import { bookDevices, bookingId, bookModel } from './loop/book-keeping.ts';
import { Calm, stepInMs } from './loop/calm.ts';
import type { AgentsRoom, ControlLoopOptions } from './loop/control-options.ts';
import { executorView } from './loop/executor-view.ts';
import { Models } from './loop/models.ts';
import { Orders } from './loop/orders.ts';
import { eventOf, gaveNothing } from './loop/outcome-events.ts';
import { SamplerNews } from './loop/sampler-news.ts';
import { Sight } from './loop/sight.ts';
import { backendNews, modelEvents, type ToldModel, toldModel } from './loop/status-events.ts';
import { DeviceTeller, expired } from './loop/teller.ts';
import { Waiters } from './loop/waiters.ts';
import { WakeWatch } from './loop/wake-watch.ts';
import { movedBy, WallWatch } from './loop/wall-watch.ts';
import type { Wishes } from './loop/wishes.ts';
import { guardDevice, guardModel, guardWorld } from './loop/world.ts';

const READ_ON = new Set<BackendChange['what']>(['loading', 'loaded', 'sleeping', 'unloaded', 'crashed']);

/**
 * The one owner of mutable state:
 *   sample │ backend event │ command │ answer ─► reconcile ─► decide (pure) ─► act ─► log ─► publish
 * A step is synchronous: no two inputs interleave. What takes time is the executor's, and comes back as an input.
 */
export class ControlLoop {
  readonly sight = new Sight();
  readonly models = new Models();
  readonly executor: Executor;
  readonly #options: ControlLoopOptions;
  readonly #wakeWatch: WakeWatch;
  readonly #wallWatch: WallWatch;
  readonly #toldModels = new Map<string, ToldModel>();
  readonly #toldBackends = new Map<string, BackendSnapshot['status']>();
  readonly #devices = new DeviceTeller();
  readonly #samplerNews = new SamplerNews();
  readonly #calm = new Calm();
  /** What people have ordered and still wait for. */
  readonly orders = new Orders(() => this.step());
  readonly #promised = new Set<string>();
  readonly #waiters = new Waiters();
  readonly #outcomeListeners = new Set<(outcome: Outcome) => void>();
  #settings: Settings;
  #wishes: Wishes;
  #memory: GuardMemory = emptyMemory();
  #world: GuardWorld | null = null;
  #verdicts: readonly DeviceVerdict[] = [];
  #stepping = false;
  #again = false;
  #queued = false;
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: ControlLoopOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#wishes = options.wishes;
    this.#wakeWatch = new WakeWatch(options.bootMs, options.clock);
    this.#wallWatch = new WallWatch(() => this.#wakeWatch.bootMs, options.clock);
    this.executor = new Executor({
      effects: options.effects,
      clock: options.clock,
      onOutcome: (outcome) => this.#outcome(outcome),
      wake: () => this.wake(),
      view: executorView(this, options.clock),
    });
  }

  get settings(): Settings {
    return this.#settings;
  }

  get wishes(): Wishes {
    return this.#wishes;
  }

  /** The guards' last picture of the world; null before the first step. */
  get world(): GuardWorld | null {
    return this.#world;
  }

  get memory(): GuardMemory {
    return this.#memory;
  }

  verdict(deviceId: string): DeviceVerdict | null {
    return this.#verdicts.find((verdict) => verdict.deviceId === deviceId) ?? null;
  }

  // ——— inputs ———

  onSamples(set: SampleSet): void {
    const { clock, journal } = this.#options;
    this.sight.take(set);
    for (const event of this.#samplerNews.take(set, clock.monotonicMs())) journal.tell(event);
    if (this.#mayWait(set)) {
      this.#bookDevices();
      this.#schedule();
    } else this.step();
  }

  #mayWait(set: SampleSet): boolean {
    const isAwaited = this.#promised.size > 0 || !this.#waiters.none || !this.orders.none;
    if (isAwaited || this.#stopped || this.executor.operations().length > 0) return false;
    const { clock, ledger } = this.#options;
    const floorOf = (id: string): number | null => ledger.book(id)?.floorBytes ?? null;
    return this.#calm.mayWait(set, this.models.views(), this.#verdicts, floorOf, clock.monotonicMs());
  }

  onBackendChange(change: BackendChange): void {
    this.step();
    // What a model takes or gives back shows in the next reading, so that one is wanted now.
    if (READ_ON.has(change.what)) this.#options.effects.sampleSoon();
  }

  setSettings(settings: Settings): void {
    if (JSON.stringify(settings.devices) !== JSON.stringify(this.#settings.devices)) {
      this.sight.forget();
      this.#devices.forget();
    }
    this.#settings = settings;
    this.step();
  }

  setWishes(change: Partial<Wishes>): void {
    this.#wishes = { ...this.#wishes, ...change };
    this.#options.onWishes(this.#wishes);
    this.step();
  }

  /** Memory that others give back when they are asked; 0: none. */
  async guestsGive(deviceId: string, why: string): Promise<number> {
    return (await this.#options.guests?.(deviceId, why)) ?? 0;
  }

  /** What agents can give before any model has to leave; null: there are none. */
  get agents(): AgentsRoom | null {
    return this.#options.agents ?? null;
  }

  /** A load of ours is booked though its backend has not begun it yet. */
  promise(modelId: string, promised: boolean): void {
    if (promised) this.#promised.add(bookingId(modelId));
    else this.#promised.delete(bookingId(modelId));
  }

  isPromised(modelId: string): boolean {
    return this.#promised.has(bookingId(modelId));
  }

  /** Another step soon; many wishes for one make one. */
  wake(): void {
    if (this.#queued || this.#stopped) return;
    this.#queued = true;
    setImmediate(() => {
      this.#queued = false;
      this.step();
    });
  }

  /** Resolves true after a step in which `condition` held, or false when the limit has passed or the signal came. */
  until(condition: () => boolean, limitMs: number, signal?: AbortSignal): Promise<boolean> {
    return this.#waiters.until(condition, limitMs, signal);
  }

  /** Called with every outcome of an unload; returns its own undo. */
  onOutcome(listener: (outcome: Outcome) => void): () => void {
    this.#outcomeListeners.add(listener);
    return () => this.#outcomeListeners.delete(listener);
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.executor.stop();
  }

  // ——— the step ———

  step(): void {
    if (this.#stopped) return;
    if (this.#stepping) {
      this.#again = true;
      return;
    }
    this.#stepping = true;
    try {
      this.#look();
      this.#decide();
      this.executor.advance();
      this.#tell();
    } finally {
      this.#stepping = false;
    }
    this.#calm.stepped(this.sight.devices(), this.#options.clock.monotonicMs());
    this.#waiters.look();
    this.#options.onStep();
    this.#schedule();
    if (this.#again) {
      this.#again = false;
      this.wake();
    }
  }

  #look(): void {
    const { clock, ledger, fleet, journal, loads } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#wakeWatch.look()) {
      this.#options.effects.lookAgain();
      journal.tell({
        kind: 'resumed',
        reason: 'The machine was suspended. Readings from before do not count; devices are read anew.',
        numbers: { suspendedMs: Math.round(this.#wakeWatch.suspendedMs) },
      });
    }
    const moved = movedBy(this.#wallWatch.look(), this.#wishes);
    if (moved !== null) this.setWishes(moved);
    this.#expireWishes(clock.epochMs());
    this.#bookDevices();
    const backends = fleet.list();
    for (const { setting, snapshot } of backends) {
      const news = backendNews(this.#toldBackends.get(snapshot.name), snapshot, setting.found);
      for (const event of news.events) journal.tell(event);
      this.#toldBackends.set(snapshot.name, news.status);
    }
    const views = this.models.look({
      backends,
      settings: this.#settings,
      wishes: this.#wishes,
      sight: this.sight,
      executor: this.executor,
      nowMs,
    });
    this.#releaseGone();
    for (const view of views) {
      const told = this.#toldModels.get(view.id);
      loads.look(view, told?.status, this.sight, this.models, nowMs);
      for (const event of modelEvents(told, view, nowMs)) journal.tell(event);
      this.#toldModels.set(view.id, toldModel(told, view, nowMs));
      if (view.status === 'loaded' && told?.status !== 'loaded') {
        this.#noLongerMissing(view.id);
        this.#options.onLoaded?.(view);
      }
      bookModel(ledger, view, this.#promised.has(bookingId(view.id)), nowMs);
    }
  }

  #bookDevices(): void {
    const { ledger, floors, tenants } = this.#options;
    bookDevices(ledger, this.#settings, this.sight.devices(), (deviceId) => ({
      learnedBytes: floors.learned(deviceId),
      desktopBytes: tenants.desktopBytes(deviceId),
    }));
  }

  /** A model whose backend is gone, or no longer lists it, holds nothing that we know of. */
  #releaseGone(): void {
    for (const booking of this.#options.ledger.bookings())
      if (
        booking.kind === 'model' &&
        this.models.get(booking.name) === null &&
        !this.#promised.has(booking.id)
      )
        this.#options.ledger.release(booking.id);
    for (const id of this.#toldModels.keys()) if (this.models.get(id) === null) this.#toldModels.delete(id);
  }

  #decide(): void {
    const { clock, ledger } = this.#options;
    const nowMs = clock.monotonicMs();
    const devices = this.sight.devices().flatMap((sample) => {
      const book = ledger.book(sample.id, nowMs);
      return book === null ? [] : [guardDevice(sample, book, this.sight.evicting(sample.id), nowMs)];
    });
    const giving = this.#options.relieve?.(devices);
    this.#world = guardWorld({
      nowMs,
      devices:
        giving === undefined
          ? devices
          : devices.map((device) => ({ ...device, givingBytes: giving.get(device.id) ?? 0 })),
      // What is elsewhere takes no memory here: no rule is about it.
      models: this.models
        .views()
        .filter((view) => view.observed.isElsewhere !== true)
        .map((view) => guardModel(view, this.#options.uses)),
      asleep: this.#wishes.sleep !== null,
      settings: this.#settings,
      resumedAtMs: this.#wakeWatch.resumedAtMs,
      wantedFree: this.orders.wantedFree,
      drain: this.orders.draining ? { sparePinned: false, mayKill: this.orders.mayKill } : null,
    });
    const result = decide(this.#world, this.#memory);
    this.#memory = result.memory;
    this.#verdicts = result.verdicts;
    for (const decision of result.decisions) this.#act(decision);
  }

  #act(decision: Decision): void {
    const { journal, intents } = this.#options;
    if (decision.guarded === 'observe') {
      if (this.#wishes.guards !== null && this.#wishes.guards.pausedUntilMs !== null) return;
      const view = this.models.get(decision.modelId);
      journal.tell({
        kind: 'would_evict',
        model: decision.modelId,
        backend: decision.modelId.slice(0, decision.modelId.indexOf('/')),
        ...(view?.deviceId == null ? {} : { deviceId: view.deviceId }),
        reason: `Only watching, so nothing was done. ${decision.reason}`,
        numbers: decision.numbers,
      });
      return;
    }
    if (decision.type === 'kill') {
      this.executor.kill(decision.modelId);
      return;
    }
    if (this.executor.unload(decision)) intents.note(decision);
  }

  #outcome(outcome: Outcome): void {
    const { journal, intents } = this.#options;
    const { operation } = outcome;
    const event = eventOf(outcome);
    if (event !== null) journal.tell(event);
    if (outcome.type !== 'stuck' && outcome.type !== 'signal_refused') intents.clear(operation.modelId);
    if (outcome.type === 'left') this.#left(outcome);
    for (const listener of [...this.#outcomeListeners]) listener(outcome);
  }

  #left(outcome: Extract<Outcome, { type: 'left' }>): void {
    const { clock, journal, ledger } = this.#options;
    const { operation } = outcome;
    ledger.release(bookingId(operation.modelId));
    this.models.remember(operation.modelId, {
      lastEviction: { atMs: clock.epochMs(), reason: operation.reason, freedBytes: outcome.freedBytes },
    });
    if (gaveNothing(outcome)) {
      const free = this.sight.free(operation.deviceId, clock.monotonicMs()).freeBytes;
      this.#memory = noteFreedNothing(this.#memory, operation.modelId, clock.monotonicMs(), free);
      journal.tell({
        kind: 'freed_nothing',
        model: operation.modelId,
        ...(operation.deviceId === null ? {} : { deviceId: operation.deviceId }),
        reason: `${operation.modelId} left, but its memory did not come back. It will not be asked to leave again for that until something changes.`,
        numbers: { freedBytes: outcome.freedBytes, freeBytes: free },
      });
    }
    if (operation.cause !== 'person' && operation.cause !== 'ttl' && operation.cause !== 'batch_only')
      this.setWishes({
        restorable: [...this.#wishes.restorable.filter((id) => id !== operation.modelId), operation.modelId],
      });
  }

  #noLongerMissing(id: string): void {
    if (this.#wishes.restorable.includes(id))
      this.setWishes({ restorable: this.#wishes.restorable.filter((other) => other !== id) });
  }

  #expireWishes(epochMs: number): void {
    const over = expired(this.#wishes, epochMs);
    if (over === null) return;
    this.setWishes(over.change);
    for (const event of over.events) this.#options.journal.tell(event);
  }

  #tell(): void {
    const { clock, journal, ledger, tenants, lanes, fleet, effects } = this.#options;
    const nowMs = clock.monotonicMs();
    const views = this.models.views();
    tenants.look(this.sight, views, ledger, nowMs);
    const verdict = (deviceId: string): DeviceVerdict | null => this.verdict(deviceId);
    const { events, changing } = this.#devices.look({ sight: this.sight, ledger, tenants, verdict, nowMs });
    // Who is growing is to be known by the time it is told.
    if (changing) effects.sampleSoon();
    const found = lanes.look({ fleet, views, sight: this.sight, nowMs });
    for (const event of [...events, ...found]) journal.tell(event);
  }

  #schedule(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#stopped) return;
    const { raceGraceMs } = this.#settings;
    const inMs = stepInMs(this.executor.operations(), raceGraceMs, this.#options.clock.monotonicMs());
    this.#timer = setTimeout(() => this.step(), inMs);
  }
}
