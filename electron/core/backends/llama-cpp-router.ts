import type { Clock } from '../clock.ts';
import { withEnvironment } from '../ledger/footprint/environment-flags.ts';
import type { ProcessIdentity, ServerQuery } from '../process/identity.ts';
import type { ServerInspector } from '../process/proof.ts';
import { type MetricsEvidence, parseMetrics } from './activity.ts';
import type { Backend, BackendChange, BackendSnapshot, ObservedModel } from './backend.ts';
import { type ChildWatch, childWatch } from './child-watch.ts';
import { httpClient } from './http.ts';
import { NOT_TOLD } from './models-list.ts';
import { hostAndPort, isThisMachine } from './own-address.ts';
import { routerActions } from './router-actions.ts';
import { routerSlots } from './router-slots.ts';
import { NO_MODELS, type RouterInput, reduce, type TrackedModel } from './router-state.ts';
import { type Link, NO_LINK, routerWatch, type WatchTimings } from './router-watch.ts';
import { hasPassiveMetrics } from './server-props.ts';

export interface LlamaCppTimings extends WatchTimings {
  /** How often processes are looked at, and counters where they are passive. */
  readonly tickMs: number;
  readonly metricsTimeoutMs: number;
}

export const SINGLE_NOTE = 'A single llama-server can be watched but not unloaded; a router can.';

/** What a guard asks for because of an event goes first; this is needed by the end of a race's grace. */
const ASK_AFTER_MS = 25;

const DEFAULT_TIMINGS: LlamaCppTimings = {
  resyncMs: 30_000,
  pollMs: 750,
  firstBackoffMs: 200,
  lastBackoffMs: 5_000,
  requestTimeoutMs: 5_000,
  tickMs: 1_000,
  metricsTimeoutMs: 400,
};

/**
 * A llama.cpp router, or a plain llama-server as a router of one model that can't be unloaded.
 * Watching asks only what leaves models as they are (rule 12): see `router-watch.ts` and `activity.ts`.
 */
export function llamaCppBackend(options: {
  readonly name: string;
  /** Without a trailing slash or `/v1`. */
  readonly url: string;
  readonly clock: Clock;
  readonly inspector: ServerInspector;
  /** The key itself, not the variable's name. */
  readonly apiKey?: string | null;
  /** What it was started with, where it is ours to run. */
  readonly command?: readonly string[] | null;
  readonly timings?: Partial<LlamaCppTimings>;
}): Backend {
  const { name, url, clock } = options;
  const timings = { ...DEFAULT_TIMINGS, ...options.timings };
  const http = httpClient(url, options.apiKey ?? null);
  const { host, port: ownPort } = hostAndPort(url);
  const isLocal = isThisMachine(host);
  let models = NO_MODELS;
  let link = NO_LINK;
  let listener: ((change: BackendChange) => void) | null = null;
  const environments: Environments = new Map();

  const emit = (model: string | null, what: BackendChange['what']): void => {
    try {
      listener?.({ backend: name, model, what, atMs: clock.monotonicMs() });
    } catch {
      // A listener that fails must not end the watching.
    }
  };

  const isSingle = (): boolean => link.props?.role === 'single';

  let asking: NodeJS.Timeout | null = null;
  let asksList = false;
  /** Looks for processes, and reads the list where it is wanted, once for all that happens in a row. */
  const askSoon = (wantsList: boolean): void => {
    asksList ||= wantsList;
    asking ??= setTimeout(() => {
      asking = null;
      if (asksList) void watch.refresh();
      asksList = false;
      children.poke();
    }, ASK_AFTER_MS);
  };

  const apply = (input: RouterInput): void => {
    const step = reduce(models, input);
    models = step.state;
    for (const change of step.changes) emit(change.model, change.what);
    if (input.type === 'tick') return;
    // An event names no port: the list has it. Its process is looked for as soon as there is one.
    const lacksPort = (model: TrackedModel): boolean =>
      model.port === null && (model.status === 'loading' || model.status === 'loaded');
    if (step.changes.some((change) => change.what === 'loading')) children.loading();
    const wantsList = input.type === 'status' && !isSingle() && [...models.values()].some(lacksPort);
    if (input.type === 'list' || step.changes.length > 0 || wantsList) askSoon(wantsList);
  };

  const watch = routerWatch({
    http,
    clock,
    timings,
    onInput: apply,
    onLink: (now) => {
      const before = link;
      link = now;
      if (now.status === before.status && now.error === before.error) return;
      emit(null, now.status === 'up' ? 'up' : now.status === 'down' ? 'down' : 'list');
    },
  });

  const queryFor = (model: TrackedModel): ServerQuery | null => {
    if (!isLocal) return null;
    if (isSingle()) return { port: ownPort, alias: null, routerPort: null };
    return model.port === null ? null : { port: model.port, alias: model.name, routerPort: ownPort };
  };

  const metrics = async (model: TrackedModel): Promise<MetricsEvidence> => {
    if (!model.tellsMetrics || link.status !== 'up' || !hasPassiveMetrics(link.props?.build ?? null)) {
      return null;
    }
    const query = isSingle() ? '' : `?model=${encodeURIComponent(model.name)}&autoload=false`;
    const answer = await http.get(`/metrics${query}`, { timeoutMs: timings.metricsTimeoutMs });
    if (answer.kind === 'failed') return answer.reason === 'timed_out' ? 'late' : null;
    return answer.status === 200 ? parseMetrics(answer.text) : null;
  };

  const children: ChildWatch = childWatch({
    clock,
    inspector: options.inspector,
    tickMs: timings.tickMs,
    queryFor,
    models: () => models.values(),
    metrics,
    onTick: () => apply({ type: 'tick', atMs: clock.monotonicMs() }),
    onActivity: (model, what) => emit(model, what),
    onGone: () => void watch.refresh(),
  });

  const find = (wanted: string): TrackedModel | null =>
    models.get(wanted) ?? [...models.values()].find((model) => model.aliases.includes(wanted)) ?? null;

  const actions = routerActions({
    backend: name,
    http,
    isSingle,
    find,
    apply,
    nowMs: () => clock.monotonicMs(),
    refresh: watch.refresh,
    seenBusy: (model) => children.child(model).activity.busy,
    isTold: () => link.status === 'up' && link.events === 'open' && link.props?.role === 'router',
    asked: children.asked,
  });

  return {
    name,
    kind: 'llama.cpp',
    url,
    start(onChange) {
      listener = onChange;
      watch.start();
      children.start();
    },
    async stop() {
      listener = null;
      if (asking !== null) clearTimeout(asking);
      await Promise.all([watch.stop(), children.stop()]);
      http.close();
    },
    snapshot: () =>
      snapshotOf({
        name,
        url,
        isLocal,
        link,
        models: [...models.values()],
        children,
        environments,
        command: options.command ?? null,
        nowMs: clock.monotonicMs(),
      }),
    load: actions.load,
    unload: actions.unload,
    confirmIdle: actions.confirmIdle,
    slots: routerSlots({ http, isSingle, find }),
    refresh: watch.refresh,
  };
}

function snapshotOf(view: {
  readonly name: string;
  readonly url: string;
  readonly isLocal: boolean;
  readonly link: Link;
  readonly models: readonly TrackedModel[];
  readonly children: ChildWatch;
  readonly environments: Environments;
  readonly command: readonly string[] | null;
  readonly nowMs: number;
}): BackendSnapshot {
  const { link, models } = view;
  const observed = models.map((model) => observedOf(model, view));
  return {
    name: view.name,
    kind: 'llama.cpp',
    url: view.url,
    status: link.status,
    sinceMs: link.sinceMs,
    error: link.error,
    version: link.props?.version ?? null,
    models: observed,
    takenAtMs: link.events === 'open' && link.status === 'up' ? view.nowMs : (link.listedAtMs ?? 0),
    tellsBusy: observed.every(
      (model) =>
        model.status !== 'loaded' || model.busy !== null || view.children.child(model.name).isWatched,
    ),
    notes: notesOf(view),
    ...(link.props?.role === 'single' ? { isSingle: true } : {}),
  };
}

function observedOf(
  model: TrackedModel,
  view: {
    readonly children: ChildWatch;
    readonly environments: Environments;
    readonly command: readonly string[] | null;
    readonly link: Link;
    readonly isLocal: boolean;
    readonly url: string;
  },
): ObservedModel {
  const child = view.children.child(model.name);
  const isPresent = model.status !== 'unloaded' && model.status !== 'failed';
  const process = isPresent ? child.process : null;
  const isElsewhere = isPresent && !view.isLocal;
  const isSingle = view.link.props?.role === 'single';
  return {
    name: model.name,
    aliases: model.aliases,
    status: model.status,
    busy: busyOf(model, child.activity.busy),
    lastBusyAtMs: child.activity.lastBusyAtMs,
    sinceMs: model.sinceMs,
    args: argsOf(model, process, view.environments, isSingle ? view.command : null),
    modelPath: model.modelPath,
    port: isSingle ? hostAndPort(view.url).port : model.port,
    process,
    processNote:
      process !== null || !isPresent
        ? null
        : isElsewhere
          ? `${view.url} is on another machine: its processes can't be seen from here.`
          : (child.note ?? unprovenNote(model)),
    contextTokens: model.contextTokens,
    loadProgress: model.loadProgress,
    reportedBytes: null,
    stopTimeoutMs: model.stopTimeoutMs,
    failure: model.failure,
    ...(isSingle ? { isOnly: true, isFixed: true } : {}),
  };
}

/** What the last process of each model had in its environment: the next one will have it too. */
type Environments = Map<string, NonNullable<ProcessIdentity['variables']>>;

/** As its process was really started: its environment counts too, where it can be read. */
function argsOf(
  model: TrackedModel,
  process: ProcessIdentity | null,
  environments: Environments,
  /** Before its process is found it has the same flags as after. */
  command: readonly string[] | null,
): readonly string[] | null {
  if (process !== null) environments.set(model.name, process.variables ?? []);
  const args = model.args ?? command ?? process?.command ?? null;
  return args === null ? null : withEnvironment(args, environments.get(model.name) ?? []);
}

function oddNote(model: TrackedModel): string {
  const word =
    model.oddStatus === NOT_TOLD ? 'is not told' : `is one this version does not know (“${model.oddStatus}”)`;
  return `The state of ${model.name} ${word}: it counts as ${model.status}, and nobody can say whether it is busy.`;
}

function unprovenNote(model: TrackedModel): string {
  if (model.oddStatus !== null) return oddNote(model);
  return model.status === 'loaded' && model.port === null
    ? 'The server has not told the port of its process.'
    : 'Its process has not been looked for yet.';
}

/** What was seen a moment ago counts only while it is loaded. */
function busyOf(model: TrackedModel, seen: boolean | null): boolean | null {
  switch (model.status) {
    case 'loaded':
      return model.oddStatus === null ? seen : null;
    case 'loading':
    case 'stopping':
      return null;
    default:
      return false;
  }
}

function notesOf(view: { readonly link: Link; readonly models: readonly TrackedModel[] }): readonly string[] {
  const notes: string[] = [];
  const { link, models } = view;
  for (const model of models) {
    if (model.oddStatus !== null) {
      notes.push(oddNote(model));
    }
  }
  if (link.events === 'unsupported') {
    notes.push('This router has no event stream: its list is read every second, so changes show late.');
  } else if (link.events === 'failing' && link.status === 'up') {
    notes.push(
      'The event stream of this router does not open: its list is read every second, so changes show late.',
    );
  }
  const isOld = link.props !== null && !hasPassiveMetrics(link.props.build);
  const quiet = models.some((model) => model.status === 'loaded' && (isOld || !model.tellsMetrics));
  if (quiet) {
    notes.push(
      isOld
        ? "Reading this build's counters would keep its models awake: busy is told by the CPU time of their processes."
        : 'Started without --metrics: busy is told by the CPU time of the processes.',
    );
  }
  if (link.props?.role === 'single') {
    notes.push(SINGLE_NOTE);
  }
  return notes;
}
