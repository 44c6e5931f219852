import { assertNever } from '../../../shared/errors.ts';

/**
 * Whether a model works and when it was last used, told without asking it anything that could wake it
 * or keep it awake (rule 12): by the counters of `/metrics` where they are passive, and by the CPU time
 * of its process. A request of a few milliseconds is over before anybody looks: it shows in the counters
 * that have moved since, and in what its first thread has run.
 */
export interface Activity {
  /** null: can't be told. */
  readonly busy: boolean | null;
  /** Monotonic ms, not before the end of its last request; null: never seen used. */
  readonly lastBusyAtMs: number | null;
  /** The last reading of its CPU time; null: none yet, or its process is not known. */
  readonly cpu: CpuReading | null;
  /** The reading since which its CPU has been quiet without a break; null: it is not. */
  readonly quietFrom: CpuReading | null;
  /** Its monotonic counters when last read, as `parseMetrics` gives them; null: not read in this load. */
  readonly counters: string | null;
  /** It was seen before it was loaded: its counters began at nothing, and before our eyes. */
  readonly isFresh: boolean;
  /** The tasks its slots last told of, when it was asked; null: it has not been in this load. */
  readonly asked: { readonly tasks: string; readonly atMs: number } | null;
}

export interface CpuReading {
  readonly pid: number;
  readonly startTimeTicks: number;
  /** utime + stime, in steps of 10 ms. */
  readonly cpuMs: number;
  /** CPU time of its first thread, to the microsecond; null or missing: the kernel does not tell. */
  readonly firstThreadMs?: number | null;
  readonly atMs: number;
}

export interface Metrics {
  readonly processing: number;
  readonly deferred: number;
  /** Everything in it that only ever grows; null or missing: it tells no such thing. */
  readonly counters?: string | null;
}

export type MetricsEvidence =
  | Metrics
  /** Asked, and no answer came in time: as in the middle of a prompt's batch, or when it hangs. */
  | 'late'
  /** Not asked, or not to be trusted. */
  | null;

export const UNSEEN: Activity = {
  busy: null,
  lastBusyAtMs: null,
  cpu: null,
  quietFrom: null,
  counters: null,
  isFresh: false,
  asked: null,
};

/** Shorter windows than this say little against the kernel's 10 ms ticks. */
const WINDOW_MS = 400;
/**
 * A llama-server that waits uses next to nothing; one that generates, on a GPU too, uses some for every
 * token (sampling, building the graph). Above the first share of a core it works; above the second it
 * has worked for a moment.
 */
const BUSY_SHARE = 0.03;
const QUIET_SHARE = 0.01;
const TICK_MS = 10;
/**
 * Its first thread runs every decode. Measured on build 11669 with the smallest model there can be, in
 * windows of a second, also with three others fighting for two cores: waiting 0.03–0.09 ms, asked for
 * its counters or its slots each second up to 0.17 ms, a chat of one token or an embedding 0.46–1.5 ms
 * (any real model: many times that). At or under the first it has waited, above the second it was used,
 * between them nothing is concluded.
 */
const WAITED_MS = 0.15;
const USED_MS = 0.25;
const WAITING_SHARE = 0.000_1;
/** With CPU time alone: idle after this long quiet, since one long batch on a GPU may use none for a while. */
const QUIET_FOR_MS = 2_500;
/** With nothing but ticks: five short requests may fit between two of them. */
const QUIET_TICKS_FOR_MS = 15_000;

/**
 * `used`: it has worked for a moment since the last look. `short`: too soon after the last reading.
 * `first`: nothing to compare with. `none`: no reading.
 */
type CpuVerdict = 'busy' | 'used' | 'unsure' | 'quiet' | 'short' | 'first' | 'none';

/** Activity after one look. `cpu` null: its process is not known or could not be read. */
export function observe(
  before: Activity,
  atMs: number,
  cpu: CpuReading | null,
  metrics: MetricsEvidence,
): Activity {
  const counted = metrics === 'late' ? null : metrics;
  const counters = counted?.counters ?? null;
  const verdict = cpuVerdict(before, cpu, counters !== null);
  const isUsed = verdict === 'used' || hasCounted(before, counters);
  const next = {
    ...withCounters(before, counters),
    // A window too short keeps its beginning, so that quick looks add up.
    cpu: verdict === 'short' ? before.cpu : cpu,
    quietFrom: verdict === 'short' ? before.quietFrom : quietFrom(before, verdict),
    lastBusyAtMs: isUsed ? atMs : before.lastBusyAtMs,
  };
  const working = { ...next, busy: true, lastBusyAtMs: atMs };
  if (verdict === 'busy') return working;
  if (counted !== null) {
    if (counted.processing + counted.deferred > 0) return working;
    // Its last request ended somewhere between the looks: the later end is the safe one.
    return { ...next, busy: false, lastBusyAtMs: before.busy === true ? atMs : next.lastBusyAtMs };
  }
  switch (verdict) {
    case 'quiet':
      return metrics === 'late' ? { ...next, busy: null } : afterQuiet(before, next, atMs);
    case 'used':
    case 'unsure':
      return metrics === 'late' ? working : { ...next, busy: before.busy === true ? true : null };
    case 'short':
      return next;
    case 'first':
    case 'none':
      return { ...next, busy: null };
    default:
      return assertNever(verdict, 'verdict on CPU time');
  }
}

function afterQuiet(before: Activity, next: Activity, atMs: number): Activity {
  const isFirstQuiet = before.busy === true && before.quietFrom === null;
  const neededMs = typeof next.cpu?.firstThreadMs === 'number' ? QUIET_FOR_MS : QUIET_TICKS_FOR_MS;
  const isLongQuiet = next.quietFrom !== null && atMs - next.quietFrom.atMs >= neededMs;
  return {
    ...next,
    lastBusyAtMs: isFirstQuiet ? atMs : next.lastBusyAtMs,
    busy: isLongQuiet ? false : before.busy,
  };
}

function quietFrom(before: Activity, verdict: CpuVerdict): CpuReading | null {
  return verdict === 'quiet' ? (before.quietFrom ?? before.cpu) : null;
}

/** Whether it has served something since its counters were last read, or since it was loaded before our eyes. */
function hasCounted(before: Activity, counters: string | null): boolean {
  if (counters === null) return false;
  return before.counters === null ? before.isFresh && /[1-9]/.test(counters) : counters !== before.counters;
}

function withCounters(before: Activity, counters: string | null): Activity {
  return counters === null ? before : { ...before, counters, isFresh: false };
}

/**
 * Activity after the model itself was asked and works on nothing. `isUsed`: it has served something
 * that no look had seen yet, so that its idle time begins now.
 */
export function afterAsking(
  before: Activity,
  atMs: number,
  told: { readonly counters: string | null; readonly tasks: string | null },
): { readonly activity: Activity; readonly isUsed: boolean } {
  const { asked } = before;
  const hasNewTasks = asked !== null && told.tasks !== null && told.tasks !== asked.tasks;
  const isUsed =
    hasCounted(before, told.counters) ||
    // What a look has seen since it was last asked is what the new tasks are.
    (hasNewTasks && (before.lastBusyAtMs ?? Number.NEGATIVE_INFINITY) < asked.atMs);
  const activity = {
    ...withCounters(before, told.counters),
    asked: told.tasks === null ? asked : { tasks: told.tasks, atMs },
    lastBusyAtMs: isUsed ? atMs : before.lastBusyAtMs,
  };
  return { activity, isUsed };
}

/** One that is not loaded works on nothing; when it was last used is kept. */
export function atRest(before: Activity): Activity {
  return { ...UNSEEN, busy: false, lastBusyAtMs: before.lastBusyAtMs, isFresh: true };
}

/** Loading or stopping: nobody can say without asking it. */
export function inTransit(before: Activity): Activity {
  return { ...UNSEEN, lastBusyAtMs: before.lastBusyAtMs, isFresh: true };
}

function cpuVerdict(before: Activity, now: CpuReading | null, isCounted: boolean): CpuVerdict {
  if (now === null) return 'none';
  const { cpu, quietFrom } = before;
  if (cpu === null || cpu.pid !== now.pid || cpu.startTimeTicks !== now.startTimeTicks) return 'first';
  const usedMs = now.cpuMs - cpu.cpuMs;
  const ranMs = firstThreadMs(cpu, now);
  if (usedMs < 0 || (ranMs !== null && ranMs < 0)) return 'first';
  const windowMs = now.atMs - cpu.atMs;
  if (windowMs < WINDOW_MS) return 'short';
  if (Math.max(usedMs, ranMs ?? 0) > Math.max(TICK_MS, BUSY_SHARE * windowMs)) return 'busy';
  // Counters are exact, and reading them costs more the more slots there are.
  if (isCounted) return 'quiet';
  if (usedMs > Math.max(TICK_MS, QUIET_SHARE * windowMs)) return 'used';
  const waitingMs = WAITING_SHARE * windowMs;
  if (ranMs !== null && ranMs > USED_MS + waitingMs) return 'used';
  if (ranMs !== null) return ranMs > WAITED_MS + waitingMs ? 'unsure' : 'quiet';
  // Ticks alone: short requests show only as ticks that add up.
  if (quietFrom === null) return 'quiet';
  const quietMs = now.cpuMs - quietFrom.cpuMs;
  return quietMs > TICK_MS + WAITING_SHARE * (now.atMs - quietFrom.atMs) ? 'used' : 'quiet';
}

function firstThreadMs(before: CpuReading, now: CpuReading): number | null {
  const from = before.firstThreadMs ?? null;
  const to = now.firstThreadMs ?? null;
  return from === null || to === null ? null : to - from;
}

/** llama-server's `/metrics`: its two gauges, and its counters as one text; null when they are not in it. */
export function parseMetrics(text: string): Metrics | null {
  const processing = gauge(text, 'llamacpp:requests_processing');
  const deferred = gauge(text, 'llamacpp:requests_deferred');
  return processing === null ? null : { processing, deferred: deferred ?? 0, counters: countersIn(text) };
}

/**
 * The values of all that ends in `_total` (tokens read and written, decodes): which of them there are
 * changes from build to build, and each moves only when a request is served. null: there are none.
 */
function countersIn(text: string): string | null {
  const values = [...text.matchAll(/^llamacpp:\w+_total(?:\{[^}]*\})?\s+([0-9.eE+-]+)\s*$/gm)];
  return values.length === 0 ? null : values.map((match) => match[1]).join(' ');
}

function gauge(text: string, name: string): number | null {
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue;
    // Labels may stand between the name and the value.
    const match = /^[^\s{]+(?:\{[^}]*\})?\s+([0-9.eE+-]+)\s*$/.exec(line);
    const value = Number(match?.[1] ?? Number.NaN);
    if (Number.isFinite(value)) return value;
  }
  return null;
}
