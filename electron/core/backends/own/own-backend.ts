import { fail, ok } from '../../../../shared/errors.ts';
import type { Backend, BackendChange, BackendSnapshot, ObservedModel } from '../backend.ts';
import { SINGLE_NOTE } from '../llama-cpp-router.ts';
import { LOG_SAYS } from '../router-state.ts';
import { whyInLog } from './load-failure.ts';
import type { OwnStatus, Supervisor } from './supervisor.ts';

/**
 * Where a server of one model, which waits for its use, gives its memory back by being ended:
 *
 *   here ─► ending ─► away ─► coming ─► here
 */
type Stay = 'here' | 'ending' | 'away' | 'coming';

const RESTS_NOTE = 'Its memory is given back by ending its server, which starts again with its next use.';

/** A server logs much as it starts; what failed is among this many lines. */
const LOG_LINES = 1_000;
/** Its last words may reach the log after its end was told: so long the load counts as not over yet. */
const LOG_LATE_MS = 600;

/** A backend whose server is ours to run. Its adapter is the same as for any other. */
export function ownBackend(
  inner: Backend,
  options: {
    /** `onChange` is called when the process starts, ends or is started again. */
    readonly supervisor: (onChange: () => void) => Supervisor;
    readonly start: 'now' | 'use';
    readonly nowMs: () => number;
  },
): Backend {
  let listener: ((change: BackendChange) => void) | null = null;
  let stay: Stay = 'here';
  let sinceMs = 0;
  /** Its one model, as it was seen last. */
  let last: ObservedModel | null = null;
  const emit = (model: string | null, what: BackendChange['what']): void => {
    listener?.({ backend: inner.name, model, what, atMs: options.nowMs() });
  };
  const supervisor = options.supervisor(() => {
    emit(null, 'list');
    void inner.refresh();
  });
  /** Of each model's last failed load, since when that is told. */
  const reasons = new Map<string, { readonly sinceMs: number; readonly failure: string }>();
  /** A router tells only that a load failed; its log, which is ours, tells why. */
  const explained = (model: ObservedModel): ObservedModel => {
    if (model.status !== 'failed' || model.failure?.endsWith(LOG_SAYS) !== true) return model;
    const known = reasons.get(model.name);
    if (known?.sinceMs === model.sinceMs) return { ...model, failure: known.failure };
    const why = whyInLog(supervisor.log(LOG_LINES), model.name);
    if (why === null && options.nowMs() - model.sinceMs < LOG_LATE_MS)
      return { ...model, status: 'loading', busy: null, failure: null };
    const logs = `\`landlord logs ${inner.name}\``;
    const said = why === null ? `${logs} says why.` : `“${why}”; ${logs} says more.`;
    const failure = model.failure.slice(0, -LOG_SAYS.length) + said;
    reasons.set(model.name, { sinceMs: model.sinceMs, failure });
    return { ...model, failure };
  };
  const become = (next: Stay, what: BackendChange['what']): void => {
    stay = next;
    sinceMs = options.nowMs();
    emit(last?.name ?? null, what);
  };

  const snapshot = (): BackendSnapshot => {
    const told = inner.snapshot();
    const seen = { ...told, models: told.models.map(explained) };
    const own = supervisor.look();
    if (stay === 'coming' && seen.status === 'up') stay = 'here';
    const why = own.status === 'idle' ? `${inner.name} is started with the first request for it.` : own.note;
    const whole = {
      ...seen,
      // What is ours and does not run says more than that nothing listens.
      error: seen.status === 'up' ? seen.error : (why ?? seen.error),
      notes: own.note === null ? notesOf(seen) : [own.note, ...notesOf(seen)],
      own,
    };
    if (stay === 'here' || last === null) return options.start === 'use' ? withoutFixed(whole) : whole;
    const model = { ...free(last), ...whileAway(stay, own.status, own.note), sinceMs };
    return { ...whole, status: 'up', error: null, models: [model], isSingle: true, tellsBusy: true };
  };

  const notesOf = ({ notes }: BackendSnapshot): readonly string[] =>
    options.start === 'use' ? notes.map((note) => (note === SINGLE_NOTE ? RESTS_NOTE : note)) : notes;

  /** Whether it can be ended for the sake of its memory: only where its users expect that it has to be started. */
  const canRest = (wanted: string): boolean => {
    const seen = inner.snapshot();
    const [only] = seen.models;
    if (options.start !== 'use' || seen.isSingle !== true || seen.status !== 'up' || only === undefined)
      return false;
    if (only.name !== wanted && !only.aliases.includes(wanted)) return false;
    if (supervisor.look().status !== 'running') return false;
    last = only;
    return true;
  };

  return {
    ...inner,
    start(onChange) {
      listener = onChange;
      inner.start(onChange);
      if (options.start === 'now') supervisor.start();
    },
    async stop() {
      listener = null;
      await Promise.all([inner.stop(), supervisor.stop()]);
    },
    snapshot,
    async unload(model, signal) {
      if (stay === 'ending' || stay === 'away') return ok(undefined);
      if (!canRest(model)) return await inner.unload(model, signal);
      become('ending', 'list');
      void supervisor
        .rest()
        // Until its adapter has seen it gone, too, it would pass for one that is back.
        .then(() => inner.refresh())
        .then(() => {
          if (stay === 'ending') become('away', 'unloaded');
        });
      return ok(undefined);
    },
    async load(model, signal) {
      if (stay === 'here') return await inner.load(model, signal);
      if (stay === 'ending')
        return fail('model_busy', `${inner.name}/${model} is being unloaded; load it again when it is gone.`);
      if (stay === 'away') {
        become('coming', 'loading');
        supervisor.start();
      }
      return ok(undefined);
    },
    async confirmIdle(model, signal) {
      return stay === 'here' || stay === 'coming' ? await inner.confirmIdle(model, signal) : { busy: false };
    },
    wake() {
      if (stay === 'away') become('coming', 'loading');
      supervisor.start();
    },
    async restart() {
      stay = 'here';
      await supervisor.restart();
    },
  };
}

/** What its server can't do is done by ending it. */
function free({ isFixed: _, ...model }: ObservedModel): ObservedModel {
  return model;
}

function withoutFixed(snapshot: BackendSnapshot): BackendSnapshot {
  const isOurs = snapshot.own?.status === 'running' && snapshot.isSingle === true;
  return isOurs ? { ...snapshot, models: snapshot.models.map(free) } : snapshot;
}

function whileAway(
  stay: Exclude<Stay, 'here'>,
  own: OwnStatus,
  note: string | null,
): Pick<ObservedModel, 'status' | 'busy' | 'process' | 'processNote' | 'loadProgress' | 'failure'> {
  const none = { process: null, processNote: null, loadProgress: null, failure: null };
  if (stay === 'ending') return { ...none, status: 'stopping', busy: null };
  if (stay === 'away') return { ...none, status: 'unloaded', busy: false };
  // It ended at once, or its port is taken: it is tried again by itself, and this is what is known.
  if (own === 'waiting' || own === 'taken') return { ...none, status: 'failed', busy: false, failure: note };
  return { ...none, status: 'loading', busy: null };
}
