import { assertNever } from '../../../shared/errors.ts';

/**
 * Whether a model works, told without asking it anything that could wake it or keep it awake
 * (rule 12): the counters of `/metrics` where they are passive, and the CPU time of its process.
 */
export interface Activity {
  /** null: can't be told. */
  readonly busy: boolean | null;
  /** Monotonic ms, not before the end of its last request; null: never seen busy. */
  readonly lastBusyAtMs: number | null;
  /** The last reading of its CPU time; null: none yet, or its process is not known. */
  readonly cpu: CpuReading | null;
  /** Monotonic ms since when its CPU has been quiet without a break; null: it is not. */
  readonly quietSinceMs: number | null;
}

export interface CpuReading {
  readonly pid: number;
  readonly startTimeTicks: number;
  /** utime + stime. */
  readonly cpuMs: number;
  readonly atMs: number;
}

export type MetricsEvidence =
  | { readonly processing: number; readonly deferred: number }
  /** Asked, and no answer came in time: as in the middle of a prompt's batch, or when it hangs. */
  | 'late'
  /** Not asked, or not to be trusted. */
  | null;

export const UNSEEN: Activity = { busy: null, lastBusyAtMs: null, cpu: null, quietSinceMs: null };

/** Shorter windows than this say little against the kernel's 10 ms ticks. */
const WINDOW_MS = 400;
/**
 * A llama-server that waits uses no CPU at all; one that generates, on a GPU too, uses some for every
 * token (sampling, building the graph). Above the first share of a core it works; at or under the
 * second, or one tick, it is quiet; between them nothing is concluded.
 */
const BUSY_SHARE = 0.03;
const QUIET_SHARE = 0.01;
const TICK_MS = 10;
/** With CPU time alone: idle after this long quiet, since one long batch on a GPU may use none for a while. */
const QUIET_FOR_MS = 2_500;

/** `short`: too soon after the last reading. `first`: nothing to compare with. `none`: no reading. */
type CpuVerdict = 'busy' | 'quiet' | 'unsure' | 'short' | 'first' | 'none';

/** Activity after one look. `cpu` null: its process is not known or could not be read. */
export function observe(
  before: Activity,
  atMs: number,
  cpu: CpuReading | null,
  metrics: MetricsEvidence,
): Activity {
  const verdict = cpuVerdict(before.cpu, cpu);
  const next = {
    ...before,
    // A window too short keeps its beginning, so that quick looks add up.
    cpu: verdict === 'short' ? before.cpu : cpu,
    quietSinceMs: quietSince(before, verdict, atMs),
  };
  const working = { ...next, busy: true, lastBusyAtMs: atMs };
  if (verdict === 'busy') return working;
  if (metrics !== null && metrics !== 'late') {
    if (metrics.processing + metrics.deferred > 0) return working;
    // Its last request ended somewhere between the looks: the later end is the safe one.
    return { ...next, busy: false, lastBusyAtMs: before.busy === true ? atMs : before.lastBusyAtMs };
  }
  switch (verdict) {
    case 'quiet':
      return metrics === 'late' ? { ...next, busy: null } : afterQuiet(before, next, atMs);
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
  const isFirstQuiet = before.busy === true && before.quietSinceMs === null;
  const isLongQuiet = next.quietSinceMs !== null && atMs - next.quietSinceMs >= QUIET_FOR_MS;
  return {
    ...next,
    lastBusyAtMs: isFirstQuiet ? atMs : before.lastBusyAtMs,
    busy: isLongQuiet ? false : before.busy,
  };
}

function quietSince(before: Activity, verdict: CpuVerdict, atMs: number): number | null {
  if (verdict === 'short') return before.quietSinceMs;
  return verdict === 'quiet' ? (before.quietSinceMs ?? before.cpu?.atMs ?? atMs) : null;
}

/** One that is not loaded works on nothing; what was seen of it before is kept. */
export function atRest(before: Activity): Activity {
  return { busy: false, lastBusyAtMs: before.lastBusyAtMs, cpu: null, quietSinceMs: null };
}

/** Loading or stopping: nobody can say without asking it. */
export function inTransit(before: Activity): Activity {
  return { busy: null, lastBusyAtMs: before.lastBusyAtMs, cpu: null, quietSinceMs: null };
}

function cpuVerdict(before: CpuReading | null, now: CpuReading | null): CpuVerdict {
  if (now === null) return 'none';
  if (before === null || before.pid !== now.pid || before.startTimeTicks !== now.startTimeTicks)
    return 'first';
  const usedMs = now.cpuMs - before.cpuMs;
  if (usedMs < 0) return 'first';
  const windowMs = now.atMs - before.atMs;
  if (windowMs < WINDOW_MS) return 'short';
  if (usedMs > Math.max(TICK_MS, BUSY_SHARE * windowMs)) return 'busy';
  return usedMs <= Math.max(TICK_MS, QUIET_SHARE * windowMs) ? 'quiet' : 'unsure';
}

/** The two gauges of llama-server's `/metrics`; null when they are not in the text. */
export function parseMetrics(text: string): { processing: number; deferred: number } | null {
  const processing = gauge(text, 'llamacpp:requests_processing');
  const deferred = gauge(text, 'llamacpp:requests_deferred');
  return processing === null ? null : { processing, deferred: deferred ?? 0 };
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
