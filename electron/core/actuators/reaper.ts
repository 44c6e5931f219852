import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import type { ProcessIdentity } from '../process/identity.ts';
import type { FromReaper, ToReaper } from './reaper-messages.ts';

/** A proven process with a pidfd held on it, ready to be signalled. */
export interface ArmedSignal extends Disposable {
  /** Resolves when the process is gone, or the limit has passed (`goneAfterMs` null), or it was refused. */
  kill(): Promise<Result<{ readonly goneAfterMs: number | null }>>;
}

/** Start-up of a Node child plus the proof; past it the child itself is taken for stuck. */
const ARM_LIMIT_MS = 3_000;
const KILL_LIMIT_MS = 12_000;

const CHILD = fileURLToPath(new URL('./reaper-child.ts', import.meta.url));

/** Proves that `identity` is still what was recorded and holds it for a signal. Errors: not_proven, not_permitted, not_supported, timed_out. */
export async function armSignal(
  identity: ProcessIdentity,
  childPath: string = CHILD,
): Promise<Result<ArmedSignal>> {
  let child: ChildProcess;
  try {
    child = fork(childPath, [], {
      // Said, or Electron's own fork takes its helper program for it on macOS.
      execPath: process.execPath,
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
  } catch (error) {
    // Without memory for another process, and for other rare reasons, `fork` throws instead of telling.
    return notStarted(error);
  }
  child.unref();
  child.channel?.unref();
  const answer = await ask(child, { type: 'arm', identity }, ARM_LIMIT_MS);
  if (!answer.ok) {
    dismiss(child);
    return answer;
  }
  if (answer.value.type === 'refused') {
    dismiss(child);
    return { ok: false, error: answer.value.error };
  }
  return ok({
    async kill() {
      const done = await ask(child, { type: 'kill' }, KILL_LIMIT_MS);
      if (!done.ok) return done;
      if (done.value.type === 'refused') return { ok: false, error: done.value.error };
      return ok({ goneAfterMs: done.value.type === 'signalled' ? done.value.goneAfterMs : null });
    },
    [Symbol.dispose]: () => dismiss(child),
  });
}

function notStarted(error: unknown): Result<never> {
  return fail('internal', `The reaper process could not be started: ${messageOf(error)}.`);
}

function dismiss(child: ChildProcess): void {
  if (child.connected) child.disconnect();
}

function ask(child: ChildProcess, message: ToReaper, limitMs: number): Promise<Result<FromReaper>> {
  return new Promise((resolve) => {
    const done = (result: Result<FromReaper>): void => {
      clearTimeout(timer);
      child.off('message', onMessage);
      child.off('exit', onExit);
      child.off('error', onError);
      resolve(result);
    };
    const onMessage = (answer: FromReaper): void => done(ok(answer));
    const onExit = (): void => done(fail('internal', 'The reaper process ended before it answered.'));
    const onError = (error: Error): void => done(notStarted(error));
    const timer = setTimeout(
      () =>
        done(
          fail(
            'timed_out',
            `The proof of process identity took longer than ${limitMs / 1000} s; no signal was sent.`,
          ),
        ),
      limitMs,
    );
    child.on('message', onMessage);
    child.on('exit', onExit);
    child.on('error', onError);
    // It could not be started, and the error is on its way.
    if (child.pid === undefined) return;
    child.send(message, (error) => {
      if (error !== null) done(fail('internal', `The reaper process can't be reached: ${error.message}.`));
    });
  });
}
