import { fail, type LandlordError, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { ChatEngine, Embedded, EmbedRequest } from './engine-chat.ts';
import type {
  ContextRequest,
  Decoded,
  DecodeRequest,
  EngineFacts,
  EngineHost,
  EngineMemory,
  GeneratedPiece,
  LiveContext,
  LoadedModel,
  LoadRequest,
  MemoryUse,
  StateRecord,
} from './engine-host.ts';
import { type EngineProcess, nodeEngineProcess, type StartEngineProcess } from './engine-process.ts';
import type { EngineCalls, EngineOp, FromEngine, GpuChoice } from './messages.ts';
import { UseCount } from './use-count.ts';
import { Waiting } from './waiting.ts';
import { whyEnded } from './why-ended.ts';

export interface EngineHostOptions {
  /** Default `auto`: the best there is. */
  readonly gpu?: GpuChoice;
  /** Of every decode; default: one less than the machine has cores for arithmetic. */
  readonly threads?: number | null;
  readonly startProcess?: StartEngineProcess;
  readonly clock?: Clock;
  /** Longest silence of a child before it is replaced; default 30 s. */
  readonly silenceMs?: number;
  /** Longest piece of native work, a batch or a token; default 10 min, which no device takes that works. */
  readonly stepLimitMs?: number;
  /** Until the child must be up; default 120 s: a GPU's first start may compile for a long time. */
  readonly startLimitMs?: number;
}

/** One child. What it answers after it was given up is not heard. */
interface Child {
  readonly process: EngineProcess;
  readonly generation: number;
  readonly waiting: Waiting;
  facts: EngineFacts | null;
  /** Since the last beat. */
  heard: boolean;
  /** Asked to end: its end is no news. */
  stopping: boolean;
}

/** Signs of life asked for within the longest silence. */
const BEATS = 8;
const STOP_LIMIT_MS = 5_000;
const KILL_LIMIT_MS = 3_000;
/** What could not be started is not tried again sooner: a missing package does not come back in that time. */
const RETRY_AFTER_MS = 5_000;
/** Children that don't die of SIGKILL sit in the driver for ever; more of them would not help. */
const MOST_STUCK = 2;

/** The engine in a process of its own, started with the first call and replaced when it dies or falls silent. */
export class ChildEngineHost implements EngineHost, ChatEngine {
  readonly #options: EngineHostOptions;
  readonly #clock: Clock;
  readonly #startProcess: StartEngineProcess;
  readonly #silenceMs: number;
  readonly #endedListeners = new Set<(why: string) => void>();
  readonly #unloadingListeners = new Set<(modelId: string) => Promise<void>>();
  readonly #gone = new Map<Child, () => void>();
  readonly #use = new UseCount();
  /** Killed, but not gone yet. */
  #stuck = 0;
  #child: Child | null = null;
  #starting: Promise<Result<EngineFacts>> | null = null;
  #stopping: Promise<void> | null = null;
  #refused: { readonly error: LandlordError; readonly atMs: number } | null = null;
  /** One after the other. */
  #diedStarting = 0;
  #generation = 0;
  #beat: NodeJS.Timeout | null = null;

  constructor(options: EngineHostOptions = {}) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#startProcess = options.startProcess ?? nodeEngineProcess();
    this.#silenceMs = options.silenceMs ?? 30_000;
  }

  start(): Promise<Result<EngineFacts>> {
    // One that was asked to end takes nothing new; the next one comes when its memory is back.
    if (this.#stopping !== null) return this.#stopping.then(() => this.start());
    const facts = this.facts();
    if (facts !== null) return Promise.resolve(ok(facts));
    this.#starting ??= this.#spawn().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  facts(): EngineFacts | null {
    return this.#child?.facts ?? null;
  }

  onEnded(listener: (why: string) => void): () => void {
    this.#endedListeners.add(listener);
    return () => this.#endedListeners.delete(listener);
  }

  onUnloading(listener: (modelId: string) => Promise<void>): () => void {
    this.#unloadingListeners.add(listener);
    return () => this.#unloadingListeners.delete(listener);
  }

  async loadModel(request: LoadRequest, signal: AbortSignal): Promise<Result<LoadedModel>> {
    const { path, gpuLayers, onProgress } = request;
    return await this.#callAnew('loadModel', { path, gpuLayers }, signal, onProgress);
  }

  async releaseModel(modelId: string): Promise<Result<void>> {
    const last = await this.#callOn(modelId, 'unloadModel', { modelId, force: false });
    if (!last.ok || last.value) this.#use.forgetModel(modelId);
    return nothing(last);
  }

  async unloadModel(modelId: string): Promise<Result<void>> {
    if (!this.#isOurs(modelId)) return ok(undefined);
    await Promise.allSettled([...this.#unloadingListeners].map((listener) => listener(modelId)));
    // With its child a model is gone too.
    if (!this.#isOurs(modelId)) return ok(undefined);
    const gone = await this.#callOn(modelId, 'unloadModel', { modelId, force: true });
    this.#use.forgetModel(modelId);
    return nothing(gone);
  }

  estimateContext(request: ContextRequest): Promise<Result<MemoryUse>> {
    return this.#callOn(request.modelId, 'estimateContext', request);
  }

  async createContext(request: ContextRequest): Promise<Result<LiveContext>> {
    const made = await this.#callOn(request.modelId, 'createContext', request);
    if (made.ok) this.#use.contextOf(made.value.contextId, request.modelId);
    return made;
  }

  async disposeContext(contextId: string): Promise<Result<void>> {
    if (!this.#isOurs(contextId)) return ok(undefined);
    this.#use.forget(contextId);
    return nothing(await this.#callOn(contextId, 'disposeContext', contextId));
  }

  async clearContext(contextId: string): Promise<Result<void>> {
    return nothing(await this.#callOn(contextId, 'clearContext', contextId));
  }

  tokenize(modelId: string, text: string, special: boolean): Promise<Result<readonly number[]>> {
    return this.#callOn(modelId, 'tokenize', { modelId, text, special });
  }

  decode(
    request: DecodeRequest,
    onToken: (piece: GeneratedPiece) => void,
    signal: AbortSignal,
  ): Promise<Result<Decoded>> {
    return this.#use.during(request.contextId, () =>
      this.#callOn(request.contextId, 'decode', request, signal, onToken),
    );
  }

  readonly chat: ChatEngine['chat'] = (request, onDelta, signal) =>
    this.#use.during(request.contextId, () =>
      this.#callOn(request.contextId, 'chat', request, signal, onDelta),
    );

  readonly complete: ChatEngine['complete'] = (request, onDelta, signal) =>
    this.#use.during(request.contextId, () =>
      this.#callOn(request.contextId, 'complete', request, signal, onDelta),
    );

  openEmbeddings(modelId: string): Promise<Result<MemoryUse>> {
    return this.#callOn(modelId, 'openEmbeddings', modelId);
  }

  embed(request: EmbedRequest, signal: AbortSignal): Promise<Result<Embedded>> {
    return this.#use.during(request.modelId, () => this.#callOn(request.modelId, 'embed', request, signal));
  }

  isBusy(modelId: string): boolean {
    return this.#use.isBusy(modelId);
  }

  onUse(listener: (modelId: string, busy: boolean) => void): () => void {
    return this.#use.onChange(listener);
  }

  saveState(contextId: string, path: string): Promise<Result<StateRecord>> {
    return this.#callOn(contextId, 'saveState', { contextId, path });
  }

  async restoreState(contextId: string, record: StateRecord): Promise<Result<void>> {
    return nothing(await this.#callOn(contextId, 'restoreState', { contextId, record }));
  }

  readAhead(path: string, signal: AbortSignal): Promise<Result<number>> {
    return this.#callAnew('readAhead', path, signal);
  }

  memory(): Promise<Result<EngineMemory>> {
    return this.#callAnew('memory', null);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop().finally(() => {
      this.#stopping = null;
    });
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    await this.#starting;
    const child = this.#child;
    if (child === null) return;
    child.stopping = true;
    const gone = new Promise<void>((resolve) => this.#gone.set(child, resolve));
    child.process.send({ type: 'stop' });
    const kill = setTimeout(() => this.#giveUp(child, 'it did not stop when asked'), STOP_LIMIT_MS);
    let leave: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      leave = setTimeout(resolve, STOP_LIMIT_MS + KILL_LIMIT_MS);
    });
    await Promise.race([gone, limit]);
    clearTimeout(kill);
    clearTimeout(leave);
  }

  /** A call that needs nothing of an earlier child. */
  async #callAnew<Op extends EngineOp>(
    op: Op,
    ask: EngineCalls[Op]['ask'],
    signal?: AbortSignal,
    onTell?: (told: EngineCalls[Op]['tell']) => void,
  ): Promise<Result<EngineCalls[Op]['answer']>> {
    const started = await this.start();
    if (!started.ok) return started;
    const child = this.#child;
    if (child === null) return fail('engine_ended', 'The engine ended just after it started. Try again.');
    if (child.stopping) return this.#callAnew(op, ask, signal, onTell);
    return await child.waiting.ask(op, ask, signal, onTell);
  }

  /** A call on what an earlier call made, in the child that made it. */
  #callOn<Op extends EngineOp>(
    madeId: string,
    op: Op,
    ask: EngineCalls[Op]['ask'],
    signal?: AbortSignal,
    onTell?: (told: EngineCalls[Op]['tell']) => void,
  ): Promise<Result<EngineCalls[Op]['answer']>> {
    const child = this.#child;
    if (child === null || !this.#isOurs(madeId)) {
      return Promise.resolve(
        fail('engine_ended', 'The engine that held this has ended since; load the model again.'),
      );
    }
    return child.waiting.ask(op, ask, signal, onTell);
  }

  #isOurs(madeId: string): boolean {
    return this.#child !== null && madeId.startsWith(`${this.#child.generation}.`);
  }

  async #spawn(): Promise<Result<EngineFacts>> {
    const refused = this.#refused;
    if (refused !== null && this.#clock.monotonicMs() - refused.atMs < RETRY_AFTER_MS) {
      return { ok: false, error: refused.error };
    }
    if (this.#stuck >= MOST_STUCK) {
      return fail(
        'engine_unavailable',
        'Engine processes that were ended are still there: the graphics driver does not let them go. Restart the machine.',
      );
    }
    this.#generation += 1;
    const generation = this.#generation;
    const up = Promise.withResolvers<Result<EngineFacts>>();
    let started: ReturnType<StartEngineProcess>;
    try {
      started = this.#startProcess({
        onMessage: (message) => this.#hear(child, message, up.resolve),
        onExit: (end) => {
          const why = whyEnded(end);
          if (child.facts === null && this.#isPresent(child)) this.#diedStarting += 1;
          up.resolve(fail('engine_unavailable', `The engine could not be started: ${why}.`));
          this.#exited(child, why);
        },
      });
    } catch (error) {
      // Without memory for another process, and for other rare reasons, `spawn` throws instead of telling.
      return fail('engine_unavailable', `The engine could not be started: ${messageOf(error)}.`);
    }
    const child: Child = {
      process: started,
      generation,
      waiting: new Waiting((message) => child.process.send(message)),
      facts: null,
      heard: true,
      stopping: false,
    };
    this.#child = child;
    const { gpu = 'auto', threads = null, startLimitMs = 120_000 } = this.#options;
    child.process.send({ type: 'start', options: { gpu, threads, generation } });
    const limit = setTimeout(() => {
      up.resolve(fail('engine_unavailable', `The engine was not up within ${startLimitMs / 1000} s.`));
    }, startLimitMs);
    const result = await up.promise;
    clearTimeout(limit);
    if (result.ok) {
      this.#refused = null;
      this.#diedStarting = 0;
      this.#watch();
      return result;
    }
    // One that somebody killed says nothing of the next one; twice is no chance.
    if (this.#diedStarting !== 1) this.#refused = { error: result.error, atMs: this.#clock.monotonicMs() };
    child.stopping = true;
    this.#giveUp(child, 'it did not start');
    return result;
  }

  #hear(child: Child, message: FromEngine, up: (result: Result<EngineFacts>) => void): void {
    child.heard = true;
    switch (message.type) {
      case 'up':
        child.facts = message.facts;
        up(ok(message.facts));
        break;
      case 'unavailable':
        up({ ok: false, error: message.error });
        break;
      case 'tell':
        child.waiting.told(message.id, message.told);
        break;
      case 'answer':
        child.waiting.answered(message.id, message.result);
        break;
      case 'pong':
        if (message.stepMs > (this.#options.stepLimitMs ?? 600_000)) {
          this.#giveUp(child, `a step of its work has not ended for ${Math.round(message.stepMs / 1000)} s`);
        }
        break;
    }
  }

  /**
   * Asks for a sign of life; a child that gives none is taken for hung (a driver may hold it for ever).
   * Silence is counted in our own beats, so that a pause of this process is not held against the child.
   */
  #watch(): void {
    if (this.#beat !== null) clearInterval(this.#beat);
    let silentBeats = 0;
    this.#beat = setInterval(() => {
      const child = this.#child;
      if (child === null) return;
      silentBeats = child.heard ? 0 : silentBeats + 1;
      child.heard = false;
      if (silentBeats > BEATS) {
        this.#giveUp(child, `it did not answer for ${Math.round(this.#silenceMs / 1000)} s`);
      } else child.process.send({ type: 'ping' });
    }, this.#silenceMs / BEATS);
    this.#beat.unref();
  }

  /** Ends a child that does not end by itself. Its calls are answered now: SIGKILL waits where a driver hangs. */
  #giveUp(child: Child, why: string): void {
    if (!this.#isPresent(child)) return;
    this.#stuck += 1;
    child.process.kill();
    this.#lose(child, why);
  }

  #exited(child: Child, why: string): void {
    if (this.#isPresent(child)) this.#lose(child, why);
    else this.#stuck -= 1;
    this.#gone.get(child)?.();
    this.#gone.delete(child);
  }

  #isPresent(child: Child): boolean {
    return this.#child === child;
  }

  #lose(child: Child, why: string): void {
    this.#child = null;
    if (this.#beat !== null) clearInterval(this.#beat);
    this.#beat = null;
    child.waiting.end(
      child.stopping
        ? 'The engine was stopped. What was said is kept: ask again and it goes on.'
        : `The engine ended (${why}). It is started again with the next request, and what was said is kept.`,
    );
    if (!child.stopping && child.facts !== null) for (const listener of this.#endedListeners) listener(why);
  }
}

function nothing(result: Result<unknown>): Result<void> {
  return result.ok ? ok(undefined) : result;
}
