import { createConnection } from 'node:net';
import type { Clock } from '../../clock.ts';
import { type BackOff, backOff } from '../../devices/back-off.ts';
import { secrets } from '../../security/secrets.ts';
import { lastLines } from './bounded-log.ts';
import { type KeptRun, keep, type RunEnd } from './keeper.ts';
import { lastWords } from './load-failure.ts';

/**
 *   idle ─► starting ─► running ─► waiting ─► starting …
 *     │        │           │                     waiting: it ended by itself, and is started again
 *     │        └► taken    └► stopped            taken: something that is not ours listens on its port
 *     └ until the first request, where `start: use` is set
 */
export type OwnStatus = 'idle' | 'starting' | 'running' | 'waiting' | 'taken' | 'stopped';

export interface OwnProcess {
  readonly status: OwnStatus;
  readonly pid: number | null;
  /** Monotonic ms. */
  readonly startedAtMs: number | null;
  readonly nextStartAtMs: number | null;
  /** How often it was started again after it had ended by itself. */
  readonly restarts: number;
  /** A sentence: why it does not run; null while all is well. */
  readonly note: string | null;
  readonly logFile: string;
  readonly lastLines: readonly string[];
}

export interface Supervisor {
  /** Starts it if it does not run and is not waiting to. */
  start(): void;
  /** Ends it, by force where it does not end by itself, and starts it at once. */
  restart(): Promise<void>;
  /** Ends it, and lets it wait for its next use. */
  rest(): Promise<void>;
  stop(): Promise<void>;
  look(): OwnProcess;
  /** The last lines of its log, read anew. */
  log(count: number): readonly string[];
}

export interface SupervisorOptions {
  readonly name: string;
  readonly command: readonly string[];
  /** Where it is to listen. */
  readonly host: string;
  readonly port: number;
  readonly cwd: string;
  readonly logFile: string;
  readonly clock: Clock;
  readonly onChange: () => void;
  readonly graceMs?: number;
  readonly restart?: { readonly firstMs: number; readonly mostMs: number };
  /** After running this long a failure is a first one again. */
  readonly healthyMs?: number;
  /** How often a port that is taken is looked at. */
  readonly takenMs?: number;
}

const LINES_IN_STATE = 8;
/** In which those of its last run are. */
const LINES_OF_RUN = 100;
const CONNECT_LIMIT_MS = 1_000;
/** The log is read again for the state no more often than this. */
const READ_LOG_EVERY_MS = 2_000;

/** Runs one server that is ours: started, restarted with back-off, stopped with all that it started. */
export function supervisor(options: SupervisorOptions): Supervisor {
  const { clock, name, port } = options;
  secrets.learnFromCommand(options.command);
  const { firstMs = 1_000, mostMs = 60_000 } = options.restart ?? {};
  const waits: BackOff = backOff(firstMs, mostMs);
  let status: OwnStatus = 'idle';
  let run: KeptRun | null = null;
  let startedAtMs: number | null = null;
  let nextStartAtMs: number | null = null;
  let restarts = 0;
  let note: string | null = null;
  let timer: NodeJS.Timeout | null = null;
  let launching: Promise<void> | null = null;
  let isResting = false;
  let lines: readonly string[] = [];
  let linesAtMs = Number.NEGATIVE_INFINITY;

  const set = (next: OwnStatus, why: string | null): void => {
    status = next;
    note = why;
    options.onChange();
  };

  const again = (afterMs: number): void => {
    nextStartAtMs = clock.monotonicMs() + afterMs;
    timer = setTimeout(() => {
      timer = null;
      nextStartAtMs = null;
      launch();
    }, afterMs);
  };

  const launch = (): void => {
    launching ??= tryLaunch().finally(() => {
      launching = null;
    });
  };

  const isStopped = (): boolean => status === 'stopped';

  const tryLaunch = async (): Promise<void> => {
    if (isStopped()) return;
    // Never adopted by guess: what listens there already is somebody else's.
    if (await isListening(options.host, port)) {
      if (isStopped()) return;
      set(
        'taken',
        `Port ${port} is in use by something that ${name} did not start: it is watched and left alone. Stop it, or take the command out of the config.`,
      );
      again(options.takenMs ?? 2_000);
      return;
    }
    if (isStopped()) return;
    set('starting', null);
    startedAtMs = clock.monotonicMs();
    run = keep(
      {
        command: options.command,
        cwd: options.cwd,
        logFile: options.logFile,
        graceMs: options.graceMs ?? 10_000,
      },
      () => {
        if (status === 'starting') set('running', null);
      },
      ended,
    );
  };

  const ended = (end: RunEnd): void => {
    run = null;
    linesAtMs = Number.NEGATIVE_INFINITY;
    if (isStopped() || isResting) return;
    const nowMs = clock.monotonicMs();
    if (startedAtMs !== null && nowMs - startedAtMs >= (options.healthyMs ?? 60_000)) waits.worked();
    waits.failed(nowMs);
    restarts += 1;
    const last = lastWords(lastLines(options.logFile, LINES_OF_RUN));
    const said = last === null ? '' : ` It said: “${secrets.hide(last)}”.`;
    set(
      'waiting',
      `${name} ${endText(end)}; it is started again in ${Math.ceil(waits.waitMs / 1000)} s. \`landlord logs ${name}\` says why.${said}`,
    );
    again(waits.waitMs);
  };

  return {
    start() {
      if (status === 'idle') launch();
    },
    async restart() {
      if (isStopped()) return;
      await launching;
      await run?.stop();
      if (timer !== null) clearTimeout(timer);
      timer = null;
      nextStartAtMs = null;
      launch();
      await launching;
    },
    async rest() {
      if (isStopped()) return;
      isResting = true;
      await launching;
      if (timer !== null) clearTimeout(timer);
      timer = null;
      nextStartAtMs = null;
      await run?.stop();
      isResting = false;
      startedAtMs = null;
      if (!isStopped()) set('idle', null);
    },
    async stop() {
      status = 'stopped';
      if (timer !== null) clearTimeout(timer);
      timer = null;
      nextStartAtMs = null;
      await launching;
      await run?.stop();
    },
    log: (count) => lastLines(options.logFile, count).map(secrets.hide),
    look() {
      const nowMs = clock.monotonicMs();
      if (nowMs - linesAtMs >= READ_LOG_EVERY_MS) {
        linesAtMs = nowMs;
        lines = lastLines(options.logFile, LINES_IN_STATE).map(secrets.hide);
      }
      return {
        status,
        pid: run?.pid ?? null,
        startedAtMs: run === null ? null : startedAtMs,
        nextStartAtMs,
        restarts,
        note,
        logFile: options.logFile,
        lastLines: lines,
      };
    },
  };
}

function endText(end: RunEnd): string {
  if (end.kind === 'refused') return `could not be started (${end.reason})`;
  if (end.signal !== null) return `was ended by ${end.signal}`;
  return end.exitCode === null
    ? 'ended, and nobody saw how'
    : `ended by itself with exit code ${end.exitCode}`;
}

/** Whether anything takes a connection there now. */
function isListening(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port });
    const done = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(CONNECT_LIMIT_MS, () => done(true));
    socket.once('connect', () => done(true));
    socket.once('error', () => done(false));
  });
}
