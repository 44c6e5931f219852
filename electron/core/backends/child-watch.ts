import type { ModelStatus } from '../../../shared/state.ts';
import type { Clock } from '../clock.ts';
import type { ProcessFacts, ProcessIdentity, ServerQuery } from '../process/identity.ts';
import {
  isLlamaServer,
  likelyServer,
  type ProcessTimes,
  proveServer,
  routerProcess,
  type ServerInspector,
} from '../process/proof.ts';
import {
  type Activity,
  afterAsking,
  atRest,
  type CpuReading,
  inTransit,
  type MetricsEvidence,
  observe,
  UNSEEN,
} from './activity.ts';

/** As much of a model as is needed to look at its process. */
export interface Watchable {
  readonly name: string;
  readonly status: ModelStatus;
}

/** A model's process and what it is seen to do. */
export interface Child {
  readonly activity: Activity;
  readonly process: ProcessIdentity | null;
  /** Why `process` is null, in a sentence; null when it is proven or there is nothing to prove. */
  readonly note: string | null;
  /** Its CPU time can be read, so that busy will be told. */
  readonly isWatched: boolean;
}

export interface ChildWatch {
  start(): void;
  stop(): Promise<void>;
  /** Looks for the processes of models that have none yet, now. */
  poke(): void;
  /** A load has begun: what its model was seen to do before holds no more, also where it is over by the next look. */
  loading(): void;
  /**
   * Takes in what a loaded model answered when it was asked and works on nothing; true: it has served
   * something that no look had seen.
   */
  asked(model: string, told: { readonly counters: string | null; readonly tasks: string | null }): boolean;
  child(model: string): Child;
}

interface Found {
  /** Port and alias it was looked up by; another port means another process. */
  readonly port: number;
  readonly process: ProcessIdentity | null;
  /** Whose CPU time is read: the proven one, or the likely one. */
  readonly pid: number | null;
  readonly startTimeTicks: number | null;
  /** Its first thread runs every decode, as in a llama-server; else only the whole process says something. */
  readonly decodesFirst: boolean;
  readonly note: string | null;
  readonly nextTryAtMs: number;
  readonly tries: number;
}

/** The inspector reads /proc in another process, which a driver can hang: no answer by then is no knowledge. */
const INSPECT_MS = 3_000;
const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 30_000;

/**
 * Proves each running model's process once, sees when it is gone, and tells busy from idle about once
 * a second by its CPU time and, where `metrics` gives them, the server's own counters.
 */
export function childWatch<Model extends Watchable>(options: {
  readonly clock: Clock;
  readonly inspector: ServerInspector;
  readonly tickMs: number;
  /** How to find this model's process; null: it has none here (no port yet, another machine). */
  readonly queryFor: (model: Model) => ServerQuery | null;
  /** Programs that may be the server that started them; left out: a llama-server. */
  readonly isOwner?: (command: readonly string[]) => boolean;
  readonly models: () => Iterable<Model>;
  /** Passive counters, or null where there are none. */
  readonly metrics: (model: Model) => Promise<MetricsEvidence>;
  readonly onTick: () => void;
  readonly onActivity: (model: string, what: 'busy' | 'idle') => void;
  /** A process that was there is not any more. */
  readonly onGone: (model: string) => void;
}): ChildWatch {
  const { clock, inspector } = options;
  const found = new Map<string, Found>();
  const activities = new Map<string, Activity>();
  let router: ProcessFacts | null = null;
  let timer: NodeJS.Timeout | null = null;
  let ticking: Promise<void> | null = null;
  let proving: Promise<void> | null = null;
  let retry: NodeJS.Timeout | null = null;
  let isStopped = false;

  const findRouter = async (port: number): Promise<ProcessFacts | null> => {
    router ??= routerProcess(
      await inTime(inspector.find({ port, alias: null, routerPort: null })),
      port,
      options.isOwner,
    );
    return router;
  };

  const prove = async (model: Model, query: ServerQuery): Promise<void> => {
    const parent = query.routerPort === null ? null : await findRouter(query.routerPort);
    const facts = await inTime(inspector.find(query));
    const proof = proveServer(facts, query, parent);
    const likely = proof.proven ? proof.facts : likelyServer(facts, query);
    const tries = (found.get(model.name)?.tries ?? 0) + 1;
    if (!proof.proven) router = null;
    found.set(model.name, {
      port: query.port,
      process: proof.proven ? proof.identity : null,
      pid: likely?.pid ?? null,
      startTimeTicks: likely?.startTimeTicks ?? null,
      decodesFirst: isLlamaServer(likely?.command ?? []),
      note: proof.proven ? null : proof.why,
      tries,
      nextTryAtMs: clock.monotonicMs() + Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (tries - 1)),
    });
  };

  const proveDue = async (): Promise<void> => {
    for (const model of [...options.models()]) {
      const query = isPresent(model) ? options.queryFor(model) : null;
      const known = found.get(model.name);
      if (query === null) {
        found.delete(model.name);
        continue;
      }
      const isKnown = known?.port === query.port;
      if (
        known !== undefined &&
        isKnown &&
        (known.process !== null || clock.monotonicMs() < known.nextTryAtMs)
      ) {
        continue;
      }
      if (!isKnown) found.delete(model.name);
      await prove(model, query);
      if (isStopped) return;
    }
  };

  /** One at a time: finding walks over /proc. A new child listens a moment after it is started, so it is tried again soon. */
  const proveOnce = (): Promise<void> => {
    proving ??= proveDue()
      .catch(() => undefined)
      .finally(() => {
        proving = null;
        if (retry !== null) clearTimeout(retry);
        const waiting = [...found.values()].filter((entry) => entry.process === null);
        const dueMs = Math.min(...waiting.map((entry) => entry.nextTryAtMs)) - clock.monotonicMs();
        retry =
          dueMs < options.tickMs && !isStopped
            ? setTimeout(() => void proveOnce(), Math.max(0, dueMs))
            : null;
      });
    return proving;
  };

  /** CPU readings by model; a process that is gone is forgotten and told. */
  const readCpu = async (): Promise<ReadonlyMap<string, CpuReading>> => {
    const pids = [...found.values()].flatMap((entry) => (entry.pid === null ? [] : [entry.pid]));
    const readings = new Map<string, CpuReading>();
    if (pids.length === 0) return readings;
    if (router !== null) pids.push(router.pid);
    const times = await inTime<readonly ProcessTimes[]>(inspector.times?.(pids) ?? inspector.facts(pids));
    const facts = new Map(times.map((process) => [process.pid, process]));
    const atMs = clock.monotonicMs();
    if (router !== null && !isSame(facts.get(router.pid), router.startTimeTicks)) router = null;
    for (const [name, entry] of found) {
      if (entry.pid === null) continue;
      const process = facts.get(entry.pid);
      if (process !== undefined && isSame(process, entry.startTimeTicks)) {
        const { pid, startTimeTicks, cpuMs, firstThreadMs } = process;
        const ranMs = entry.decodesFirst ? (firstThreadMs ?? null) : null;
        readings.set(name, { pid, startTimeTicks, cpuMs, firstThreadMs: ranMs, atMs });
        continue;
      }
      found.delete(name);
      options.onGone(name);
    }
    return readings;
  };

  const look = (model: Model, cpu: CpuReading | null, metrics: MetricsEvidence): void => {
    const before = activities.get(model.name) ?? UNSEEN;
    const after =
      model.status === 'loaded'
        ? observe(before, cpu?.atMs ?? clock.monotonicMs(), cpu, metrics)
        : model.status === 'loading' || model.status === 'stopping'
          ? inTransit(before)
          : atRest(before);
    activities.set(model.name, after);
    if (after.busy === true && before.busy !== true) options.onActivity(model.name, 'busy');
    if (model.status === 'loaded' && after.busy === false && before.busy !== false) {
      options.onActivity(model.name, 'idle');
    }
  };

  const tick = async (): Promise<void> => {
    options.onTick();
    await proveOnce();
    // Not read is not gone: without a reading nothing is concluded, and nothing forgotten.
    const readings = await readCpu().catch(() => new Map<string, CpuReading>());
    const models = [...options.models()];
    for (const name of activities.keys()) {
      if (!models.some((model) => model.name === name)) activities.delete(name);
    }
    await Promise.all(
      models.map(async (model) => {
        const metrics = model.status === 'loaded' ? await options.metrics(model) : null;
        if (!isStopped) look(model, readings.get(model.name) ?? null, metrics);
      }),
    );
  };

  const tickOnce = (): void => {
    ticking ??= tick()
      .catch(() => undefined)
      .finally(() => {
        ticking = null;
      });
  };

  return {
    start() {
      timer ??= setInterval(tickOnce, options.tickMs);
    },
    async stop() {
      isStopped = true;
      if (timer !== null) clearInterval(timer);
      await ticking;
      await proving;
      if (retry !== null) clearTimeout(retry);
    },
    poke() {
      if (!isStopped) void proveOnce();
    },
    loading() {
      for (const { name, status } of options.models()) {
        const before = activities.get(name);
        if (before !== undefined && status === 'loading') activities.set(name, inTransit(before));
      }
    },
    asked(name, told) {
      const { activity, isUsed } = afterAsking(activities.get(name) ?? UNSEEN, clock.monotonicMs(), told);
      activities.set(name, activity);
      return isUsed;
    },
    child(name) {
      const entry = found.get(name);
      return {
        activity: activities.get(name) ?? UNSEEN,
        process: entry?.process ?? null,
        note: entry?.note ?? null,
        isWatched: entry !== undefined && entry.pid !== null,
      };
    },
  };
}

/** Rejects when the answer does not come in time. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer about processes')), INSPECT_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

function isPresent(model: Watchable): boolean {
  return model.status !== 'unloaded' && model.status !== 'failed';
}

function isSame(process: ProcessTimes | undefined, startTimeTicks: number | null): boolean {
  return process !== undefined && process.state !== 'Z' && process.startTimeTicks === startTimeTicks;
}
