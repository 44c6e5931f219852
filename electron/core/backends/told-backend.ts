import type { Clock } from '../clock.ts';
import { withEnvironment } from '../ledger/footprint/environment-flags.ts';
import { isLlamaServer, type ServerInspector } from '../process/proof.ts';
import type { MetricsEvidence } from './activity.ts';
import type { Backend, BackendChange, BackendSnapshot, BusyAnswer, ObservedModel } from './backend.ts';
import { type Child, childWatch } from './child-watch.ts';
import type { Ask, Dialect } from './dialects/dialect.ts';
import { httpClient } from './http.ts';
import { childSlots } from './router-slots.ts';
import { toldActions } from './told-actions.ts';
import { NONE_TOLD, reduceTold, type ToldInput, type ToldState, type WatchedModel } from './told-state.ts';
import { type ToldLink, toldWatch, UNLINKED } from './told-watch.ts';

export interface ToldTimings {
  readonly pollMs: number;
  readonly firstBackoffMs: number;
  readonly lastBackoffMs: number;
  readonly requestTimeoutMs: number;
  /** How often processes are looked at. */
  readonly tickMs: number;
  /** An answer to a load or an unload that takes longer is waited for behind the caller's back. */
  readonly acceptMs: number;
}

const DEFAULT_TIMINGS: ToldTimings = {
  pollMs: 1_000,
  firstBackoffMs: 200,
  lastBackoffMs: 5_000,
  requestTimeoutMs: 5_000,
  tickMs: 1_000,
  acceptMs: 1_500,
};

/**
 * A server that is read on a cadence: llama-swap, Ollama, LM Studio, Lemonade. What differs between them is
 * in their dialect; what is held of their models, and how their processes are proven and seen at work, is here.
 */
export function toldBackend(options: {
  readonly name: string;
  readonly url: string;
  readonly clock: Clock;
  readonly inspector: ServerInspector;
  readonly dialect: Dialect;
  readonly apiKey?: string | null;
  readonly timings?: Partial<ToldTimings>;
}): Backend {
  const { name, url, clock, dialect } = options;
  const timings = { ...DEFAULT_TIMINGS, ...options.timings };
  const http = httpClient(url, options.apiKey ?? null);
  const stopped = new AbortController();
  const ask: Ask = { http, timeoutMs: timings.requestTimeoutMs, signal: stopped.signal };
  let models: ToldState = NONE_TOLD;
  let link: ToldLink = UNLINKED;
  let listener: ((change: BackendChange) => void) | null = null;

  const emit = (model: string | null, what: BackendChange['what']): void => {
    try {
      listener?.({ backend: name, model, what, atMs: clock.monotonicMs() });
    } catch {
      // A listener that fails must not end the watching.
    }
  };

  const apply = (input: ToldInput): void => {
    const step = reduceTold(models, input, dialect);
    models = step.state;
    for (const change of step.changes) emit(change.model, change.what);
    if (step.changes.some((change) => change.what === 'loading')) children.loading();
    if (step.changes.length > 0) children.poke();
  };

  const watch = toldWatch({
    ask,
    dialect,
    clock,
    timings,
    onInput: apply,
    onLink(now) {
      const before = link;
      link = now;
      if (now.status === before.status && now.error === before.error) return;
      emit(null, now.status === 'up' ? 'up' : now.status === 'down' ? 'down' : 'list');
    },
  });

  const children = childWatch<WatchedModel>({
    clock,
    inspector: options.inspector,
    tickMs: timings.tickMs,
    queryFor: (model) => model.told.query,
    isOwner: dialect.isServer,
    models: () => models.values(),
    metrics: async (model) => toldEvidence(model),
    onTick: () => undefined,
    onActivity: (model, what) => emit(model, what),
    onGone: () => void watch.refresh(),
  });

  const find = (wanted: string): WatchedModel | null =>
    models.get(wanted) ?? [...models.values()].find((model) => model.told.aliases.includes(wanted)) ?? null;

  const actions = toldActions({
    backend: name,
    ask,
    dialect,
    acceptMs: timings.acceptMs,
    find,
    apply,
    nowMs: () => clock.monotonicMs(),
    refresh: watch.refresh,
  });

  return {
    name,
    kind: dialect.kind,
    url,
    start(onChange) {
      listener = onChange;
      watch.start();
      children.start();
    },
    async stop() {
      listener = null;
      stopped.abort();
      await Promise.all([watch.stop(), children.stop()]);
      http.close();
    },
    snapshot: () => snapshot(),
    load: actions.load,
    unload: actions.unload,
    confirmIdle: (model, signal) => confirmIdle(model, signal),
    refresh: watch.refresh,
    slots: childSlots(slotsPort),
  };

  /** One that sleeps by itself would be woken by the question. */
  function slotsPort(wanted: string): number | null {
    const told = find(wanted)?.told;
    const args = told?.args ?? [];
    const sleeps = args.some((word) => word.startsWith('--sleep-idle-seconds'));
    return told === undefined || sleeps || !isLlamaServer(args) ? null : told.port;
  }

  function snapshot(): BackendSnapshot {
    const observed = [...models.values()].map((model) => observedOf(model));
    return {
      name,
      kind: dialect.kind,
      url,
      status: link.status,
      sinceMs: link.sinceMs,
      error: link.error,
      version: link.version,
      models: observed,
      takenAtMs: link.listedAtMs ?? 0,
      tellsBusy: observed.every((model) => model.status !== 'loaded' || model.busy !== null),
      notes: [
        ...[...models.values()].flatMap((model) => (model.oddStatus === null ? [] : [oddNote(model)])),
        ...dialect.notes([...models.values()].map((model) => model.told)),
      ],
    };
  }

  function observedOf(model: WatchedModel): ObservedModel {
    const { told, status } = model;
    const child = children.child(model.name);
    const isPresent = status !== 'unloaded' && status !== 'failed';
    const process = isPresent ? child.process : null;
    const lastBusyAtMs = latest(child.activity.lastBusyAtMs, model.lastUsedAtMs);
    const busy = busyOf(model, child);
    return {
      name: model.name,
      aliases: told.aliases,
      status,
      busy,
      lastBusyAtMs,
      sinceMs: model.sinceMs,
      args: told.args === null ? null : withEnvironment(told.args, process?.variables ?? []),
      modelPath: told.modelPath,
      port: isPresent ? (told.port ?? process?.port ?? null) : null,
      process,
      processNote: process !== null || !isPresent ? null : processNote(model, child),
      contextTokens: told.contextTokens,
      loadProgress: null,
      reportedBytes: isPresent ? told.reportedBytes : null,
      weightsBytes: told.weightsBytes,
      expiresAtMs: status === 'loaded' ? expiryOf(model, busy, lastBusyAtMs) : null,
      stopTimeoutMs: null,
      failure: model.failure,
      ...(told.isFixed === true ? { isFixed: true } : {}),
    };
  }

  function processNote(model: WatchedModel, child: Child): string {
    if (model.oddStatus !== null) return oddNote(model);
    if (child.note !== null) return child.note;
    return model.told.query === null ? dialect.noProcess : 'Its process has not been looked for yet.';
  }

  function expiryOf(model: WatchedModel, busy: boolean | null, lastBusyAtMs: number | null): number | null {
    const { expiresAtEpochMs, ttlMs } = model.told;
    if (expiresAtEpochMs !== null) return clock.monotonicMs() + (expiresAtEpochMs - clock.epochMs());
    // Counted from the end of the last request, so not while one runs.
    return ttlMs === null || busy !== false ? null : Math.max(lastBusyAtMs ?? 0, model.sinceMs) + ttlMs;
  }

  async function confirmIdle(wanted: string, signal: AbortSignal): Promise<BusyAnswer> {
    await watch.refresh();
    const model = find(wanted);
    if (model === null) return { busy: null, why: `${name} lists no model ${wanted}` };
    if (model.status === 'loading' || model.status === 'stopping') {
      return { busy: null, why: `${model.name} is ${model.status}: nothing can be asked of it` };
    }
    if (model.status !== 'loaded') return { busy: false };
    if (model.oddStatus !== null) return { busy: null, why: oddNote(model).replace(/\.$/, '') };
    const child = children.child(model.name);
    const now = observedOf(model);
    if (now.busy === true) return { busy: true, detail: `${model.name} serves a request` };
    const { process } = child;
    const port = process !== null && isLlamaServer(process.command) ? process.port : null;
    const asked = await dialect.confirmIdle({ ...ask, signal }, model.told, port);
    if (asked !== null && asked.busy !== null) return asked;
    if (now.busy === false) return { busy: false };
    const why =
      asked?.busy === null ? asked.why : `${dialect.title} does not tell whether ${model.name} works`;
    return { busy: null, why: `${why}: it counts as busy` };
  }
}

/** What the server tells counts as a gauge would. */
function toldEvidence(model: WatchedModel): MetricsEvidence {
  const { busy } = model.told;
  return busy === null ? null : { processing: busy ? 1 : 0, deferred: 0 };
}

/** What was told last, and what its process was seen to do since; unknown where neither says. */
function busyOf(model: WatchedModel, child: Child): boolean | null {
  switch (model.status) {
    case 'loaded':
      if (model.oddStatus !== null) return null;
      if (model.told.busy === true || child.activity.busy === true) return true;
      return model.told.busy ?? (child.isWatched ? child.activity.busy : null);
    case 'loading':
    case 'stopping':
      return null;
    default:
      return false;
  }
}

function oddNote(model: WatchedModel): string {
  return `The state of ${model.name} is one this version does not know (“${model.oddStatus}”): it counts as ${model.status}, and nobody can say whether it is busy.`;
}

function latest(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.max(one, other);
}
