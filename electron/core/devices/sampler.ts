import { type ChildProcess, spawn } from 'node:child_process';
import { getCompileCacheDir } from 'node:module';
import { fileURLToPath } from 'node:url';
import { fail, ok, type Result } from '../../../shared/errors.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { ProcessFacts, ServerQuery } from '../process/identity.ts';
import { type BackOff, backOff } from './back-off.ts';
import type { DeviceSample, SamplerTrouble, SampleSet } from './sample.ts';
import type { FromSampler, SamplerConfig, ToSampler } from './sampler-messages.ts';

export interface Sampler {
  /** Begins reading; the listener is called for each turn, and when the sampler itself has trouble. */
  start(listener: (set: SampleSet) => void): void;
  /** Resolves within half a second, whatever state the child is in. */
  stop(): Promise<void>;
  /** Facts of those that exist. `timed_out` when the child does not answer in time. */
  facts(pids: readonly number[], timeoutMs?: number): Promise<Result<readonly ProcessFacts[]>>;
  /** Processes that have `--port <port>` on their command line or listen there. */
  find(query: ServerQuery, timeoutMs?: number): Promise<Result<readonly ProcessFacts[]>>;
  /** Inference servers of kinds we know, by their command lines. */
  servers(timeoutMs?: number): Promise<Result<readonly ProcessFacts[]>>;
  /** Processes whose resident memory is to be read, on devices whose memory is the system's. */
  watch(pids: readonly number[]): void;
  /** Takes the next reading at once, though not sooner than 80 ms after the last. */
  hurry(): void;
  /** Looks for devices anew with the next reading, which is taken at once. */
  lookAgain(): void;
}

export interface ChildSamplerOptions extends Partial<SamplerConfig> {
  /** Node to run the child with; default: the one that runs us. */
  readonly nodePath?: string;
  readonly childPath?: string;
  /**
   * Folder for V8's code cache where this process has none of its own to share; null: none. With one,
   * a second start needs no TypeScript loader: 54 MB resident instead of 90.
   */
  readonly compileCacheDir?: string | null;
  readonly clock?: Clock;
  readonly restart?: BackOff;
  /** Longest silence of the child before it is replaced; default the larger of 3 periods and 5 s. */
  readonly silenceMs?: number;
}

const STOP_LIMIT_MS = 500;
const LEAVE_LIMIT_MS = 200;
const ANSWER_LIMIT_MS = 2000;
/** Children that do not die of SIGKILL sit in the driver for ever; more of them would not help. */
const MOST_STUCK = 2;
export const CHILD_FLAGS = [
  '--max-semi-space-size=1',
  '--max-old-space-size=64',
  '--disable-warning=ExperimentalWarning',
];

type Answer = (facts: Result<readonly ProcessFacts[]>) => void;

/** The sampler in a process of its own, replaced when it dies or falls silent. */
export class ChildSampler implements Sampler {
  readonly #options: ChildSamplerOptions;
  readonly #config: SamplerConfig;
  readonly #clock: Clock;
  readonly #restart: BackOff;
  readonly #silenceMs: number;
  readonly #waiting = new Map<number, { readonly answer: Answer; readonly timer: NodeJS.Timeout }>();
  readonly #stuck = new Set<ChildProcess>();
  #listener: ((set: SampleSet) => void) | null = null;
  #child: ChildProcess | null = null;
  #watched: readonly number[] = [];
  #lastDevices: readonly DeviceSample[] = [];
  #heardAtMs = 0;
  readonly #beatMs: number;
  /** It was silent too long by the clock; that is not held against it before one more beat. */
  #isDoubted = false;
  #sequence = 0;
  #nextId = 1;
  #timer: NodeJS.Timeout | null = null;
  #dueAtMs = 0;
  #restarts = 0;

  constructor(options: ChildSamplerOptions = {}) {
    this.#options = options;
    this.#config = {
      devices: options.devices ?? null,
      periodMs: options.periodMs ?? 500,
      processPeriodMs: options.processPeriodMs ?? 2000,
      memory: options.memory ?? {},
    };
    this.#clock = options.clock ?? systemClock;
    this.#restart = options.restart ?? backOff(500, 30_000);
    this.#beatMs = Math.min(this.#config.periodMs, 1000);
    this.#silenceMs = options.silenceMs ?? Math.max(3 * this.#config.periodMs, 5000);
  }

  /** How often the child was replaced since the start. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Pid of the present child; null while there is none. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(listener: (set: SampleSet) => void): void {
    const isRunning = this.#listener !== null;
    this.#listener = listener;
    if (!isRunning) this.#spawn();
  }

  async stop(): Promise<void> {
    this.#listener = null;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const child = this.#child;
    this.#child = null;
    this.#refuseWaiting();
    if (child === null) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    end(child);
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, STOP_LIMIT_MS);
    });
    await Promise.race([gone, limit]);
    clearTimeout(timer);
    child.unref();
  }

  watch(pids: readonly number[]): void {
    this.#watched = [...pids];
    this.#send({ type: 'watch', pids: this.#watched });
  }

  hurry(): void {
    this.#send({ type: 'hurry' });
  }

  lookAgain(): void {
    this.#send({ type: 'look again' });
  }

  facts(pids: readonly number[], timeoutMs = ANSWER_LIMIT_MS): Promise<Result<readonly ProcessFacts[]>> {
    return this.#ask((id) => ({ type: 'facts', id, pids }), timeoutMs);
  }

  find(query: ServerQuery, timeoutMs = ANSWER_LIMIT_MS): Promise<Result<readonly ProcessFacts[]>> {
    return this.#ask((id) => ({ type: 'find', id, query }), timeoutMs);
  }

  servers(timeoutMs = ANSWER_LIMIT_MS): Promise<Result<readonly ProcessFacts[]>> {
    return this.#ask((id) => ({ type: 'servers', id }), timeoutMs);
  }

  #ask(message: (id: number) => ToSampler, timeoutMs: number): Promise<Result<readonly ProcessFacts[]>> {
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        resolve(notAnswered(timeoutMs));
      }, timeoutMs);
      this.#waiting.set(id, { answer: resolve, timer });
      if (!this.#send(message(id))) {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(notAnswered(0));
      }
    });
  }

  #send(message: ToSampler): boolean {
    const child = this.#child;
    if (child === null || !child.connected) return false;
    child.send(message, () => {});
    return true;
  }

  #spawn(): void {
    const path = this.#options.childPath ?? fileURLToPath(new URL('./sampler-child.ts', import.meta.url));
    const cache =
      process.env.NODE_COMPILE_CACHE ?? getCompileCacheDir() ?? this.#options.compileCacheDir ?? null;
    let child: ChildProcess;
    try {
      child = spawn(this.#options.nodePath ?? process.execPath, [...CHILD_FLAGS, path], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        env: {
          ...process.env,
          NODE_OPTIONS: '',
          ...(cache === null ? {} : { NODE_COMPILE_CACHE: cache }),
        },
      });
    } catch {
      // Without memory for another process, and for other rare reasons, `spawn` throws instead of telling.
      this.#lose(null, 'could not be started');
      return;
    }
    this.#child = child;
    this.#heardAtMs = this.#clock.monotonicMs();
    child.on('message', (message: FromSampler) => {
      if (this.#child === child) this.#hear(message);
    });
    child.on('error', () => this.#lose(child, 'could not be started'));
    child.on('exit', (code, signal) => {
      this.#stuck.delete(child);
      this.#lose(child, signal === null ? `ended with code ${code}` : `was ended by ${signal}`);
    });
    this.#send({ type: 'start', config: this.#config });
    this.#send({ type: 'watch', pids: this.#watched });
    this.#checkIn(this.#silenceMs);
  }

  #hear(message: FromSampler): void {
    this.#heardAtMs = this.#clock.monotonicMs();
    if (message.type === 'set') {
      this.#restart.worked();
      this.#lastDevices = message.set.devices;
      this.#publish(message.set);
      return;
    }
    const waiting = this.#waiting.get(message.id);
    if (waiting === undefined) return;
    clearTimeout(waiting.timer);
    this.#waiting.delete(message.id);
    waiting.answer(ok(message.facts));
  }

  #checkIn(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#listener === null) return;
    this.#dueAtMs = this.#clock.monotonicMs() + ms;
    this.#timer = setTimeout(() => this.#check(), ms);
  }

  /** Replaces a silent child, and starts one again when its time has come. Nothing wakes for a child that is heard. */
  #check(): void {
    const nowMs = this.#clock.monotonicMs();
    const child = this.#child;
    if (child !== null) {
      const leftMs = this.#heardAtMs + this.#silenceMs - nowMs;
      // While this process itself did not run, nobody listened: a beat in which it did has to pass in silence.
      const isLate = nowMs - this.#dueAtMs > this.#beatMs;
      const wasDoubted = this.#isDoubted;
      this.#isDoubted = leftMs <= 0;
      if (leftMs > 0 || !wasDoubted || isLate) {
        this.#checkIn(Math.max(leftMs, this.#beatMs));
        return;
      }
      this.#stuck.add(child);
      end(child);
      child.unref();
      this.#lose(child, `did not answer for ${Math.round(nowMs - this.#heardAtMs)} ms`);
      return;
    }
    if (!this.#restart.due(nowMs)) {
      this.#checkIn(this.#beatMs);
      return;
    }
    if (this.#stuck.size >= MOST_STUCK) {
      this.#restart.failed(nowMs);
      this.#checkIn(this.#restart.waitMs + 1);
      this.#tell({
        code: 'sampler-stuck',
        message: 'The graphics driver does not answer, and processes that ask it hang. Restart the machine.',
        deviceId: null,
      });
      return;
    }
    this.#restarts += 1;
    this.#spawn();
  }

  #lose(child: ChildProcess | null, why: string): void {
    if (this.#child !== child) return;
    this.#child = null;
    this.#refuseWaiting();
    this.#restart.failed(this.#clock.monotonicMs());
    this.#isDoubted = false;
    this.#checkIn(this.#restart.waitMs + 1);
    this.#tell({
      code: 'sampler-restarted',
      message: `The process that reads the devices ${why}; it is started again in ${this.#restart.waitMs} ms.`,
      deviceId: null,
    });
  }

  /** The last devices go out again with their own times, so that they grow stale by themselves. */
  #tell(trouble: SamplerTrouble): void {
    const takenAtMs = this.#clock.monotonicMs();
    this.#publish({
      sequence: 0,
      takenAtMs,
      devices: this.#lastDevices,
      processes: null,
      troubles: [trouble],
    });
  }

  #publish(set: SampleSet): void {
    this.#sequence += 1;
    this.#listener?.({ ...set, sequence: this.#sequence });
  }

  #refuseWaiting(): void {
    for (const { answer, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      answer(notAnswered(0));
    }
    this.#waiting.clear();
  }
}

/**
 * Told by its channel, so that it ends the tool that it may be waiting for. SIGKILL works on a stopped
 * process too; one inside the driver goes when the driver lets it.
 */
function end(child: ChildProcess): void {
  if (child.connected) child.disconnect();
  const timer = setTimeout(() => child.kill('SIGKILL'), LEAVE_LIMIT_MS);
  child.once('exit', () => clearTimeout(timer));
}

function notAnswered(afterMs: number): Result<never> {
  return fail(
    'timed_out',
    'The process that reads the devices did not answer; it is being replaced. Try again in a moment.',
    { afterMs },
  );
}
