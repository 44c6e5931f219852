import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../../../../shared/errors.ts';
import type { FromKeeper, ToKeeper } from './keeper-messages.ts';

export interface KeptRun {
  /** Of the server itself; null until it has started. */
  readonly pid: number | null;
  /** Asks it to stop, ends what does not, and resolves when nothing of it is left. */
  stop(): Promise<void>;
}

export type RunEnd =
  | { readonly kind: 'ended'; readonly exitCode: number | null; readonly signal: string | null }
  | { readonly kind: 'refused'; readonly reason: string };

const CHILD = fileURLToPath(new URL('./keeper-child.ts', import.meta.url));
/** Beyond its own limits: then the keeper itself is stuck. */
const STUCK_MS = 8_000;

/** Starts a command under a keeper of its own, in a session of its own. `onEnd` is called once. */
export function keep(
  run: Omit<Extract<ToKeeper, { type: 'run' }>, 'type'>,
  onStarted: () => void,
  onEnd: (end: RunEnd) => void,
): KeptRun {
  let keeper: ChildProcess;
  try {
    keeper = fork(CHILD, [], {
      // Said, or Electron's own fork takes its helper program for it on macOS.
      execPath: process.execPath,
      execArgv: [
        ...['--max-semi-space-size=1', '--max-old-space-size=64'],
        '--disable-warning=ExperimentalWarning',
      ],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      // Ctrl-C in the runtime's terminal is the runtime's; it stops its servers in order.
      detached: true,
    });
  } catch (error) {
    // Without memory for another process, and for other rare reasons, `fork` throws instead of telling.
    queueMicrotask(() => onEnd({ kind: 'refused', reason: messageOf(error) }));
    return { pid: null, stop: async () => undefined };
  }
  let pid: number | null = null;
  let end: RunEnd | null = null;
  const gone = Promise.withResolvers<void>();
  const over = (how: RunEnd): void => {
    if (end !== null) return;
    end = how;
    onEnd(how);
  };
  keeper.on('message', (message: FromKeeper) => {
    switch (message.type) {
      case 'started':
        pid = message.pid;
        onStarted();
        break;
      case 'over':
        over({ kind: 'ended', exitCode: message.exitCode, signal: message.signal });
        break;
      case 'refused':
        over({ kind: 'refused', reason: message.reason });
    }
  });
  keeper.once('exit', () => {
    over({ kind: 'ended', exitCode: null, signal: null });
    gone.resolve();
  });
  keeper.once('error', (error) => {
    over({ kind: 'refused', reason: error.message });
    gone.resolve();
  });
  const tell = (message: ToKeeper): void => {
    if (keeper.connected) keeper.send(message, () => {});
  };
  tell({ type: 'run', ...run });
  return {
    get pid() {
      return end === null ? pid : null;
    },
    async stop() {
      tell({ type: 'stop' });
      const stuck = setTimeout(() => keeper.kill('SIGKILL'), run.graceMs + STUCK_MS);
      await gone.promise;
      clearTimeout(stuck);
    },
  };
}
