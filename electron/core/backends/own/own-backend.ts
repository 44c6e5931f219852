import type { Backend, BackendChange, BackendSnapshot } from '../backend.ts';
import type { Supervisor } from './supervisor.ts';

/** A backend whose server is ours to run. Its adapter is the same as for any other. */
export function ownBackend(
  inner: Backend,
  options: {
    /** `onChange` is called when the process starts, ends or is started again. */
    readonly supervisor: (onChange: () => void) => Supervisor;
    readonly start: 'now' | 'use';
  },
): Backend {
  let listener: ((change: BackendChange) => void) | null = null;
  const supervisor = options.supervisor(() => {
    listener?.({ backend: inner.name, model: null, what: 'list', atMs: 0 });
    void inner.refresh();
  });

  const snapshot = (): BackendSnapshot => {
    const seen = inner.snapshot();
    const own = supervisor.look();
    const why = own.status === 'idle' ? `${inner.name} is started with the first request for it.` : own.note;
    return {
      ...seen,
      // What is ours and does not run says more than that nothing listens.
      error: seen.status === 'up' ? seen.error : (why ?? seen.error),
      notes: own.note === null ? seen.notes : [own.note, ...seen.notes],
      own,
    };
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
    wake: () => supervisor.start(),
    restart: () => supervisor.restart(),
  };
}
