import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { FileLocker } from './locker.ts';
import type { Program } from './program.ts';

export type Runnable = Extract<Program, { readonly kind: 'runnable' }>;

export function canBecome(): boolean {
  return process.execve !== undefined;
}

/**
 * Becomes the command: same pid, same lock, no process of ours between them to be killed alone. The
 * lock's descriptors stay open across exec; everything else of Node's is close-on-exec. `locker` is
 * null where koffi is missing: then there is no lane to keep either.
 * Returns only where it can't be done; then nothing has changed.
 */
export function become(
  program: Runnable,
  env: Readonly<Record<string, string | undefined>>,
  descriptors: readonly number[],
  locker: FileLocker | null,
): false {
  if (process.execve === undefined) return false;
  if (!descriptors.every((fd) => locker?.makeInheritable(fd) === true)) return false;
  locker?.prepareExec();
  return process.execve(program.file, [...program.args], definedOnly(env));
}

/**
 * Where there is no exec: the command as a child that shares our descriptors of the lock, so that
 * either of the two keeps the lane. Gives its exit status, 128 + n for a signal.
 *
 * When we are killed outright the child goes on and keeps the lane until it ends; that is still one
 * turn at a time. Signals we can see are passed on, save those that a terminal's keys send: they
 * reach the child by themselves, and a second one would cut its clean-up short.
 */
export function supervise(
  program: Runnable,
  env: Readonly<Record<string, string | undefined>>,
  descriptors: readonly number[],
): Promise<number> {
  return new Promise((resolve) => {
    const [name = program.file, ...args] = program.args;
    const child = spawn(program.file, args, {
      argv0: name,
      env: definedOnly(env),
      stdio: ['inherit', 'inherit', 'inherit', ...descriptors],
    });
    const fromKeys: readonly NodeJS.Signals[] = process.stdin.isTTY === true ? ['SIGINT', 'SIGQUIT'] : [];
    const pass = (signal: NodeJS.Signals): void => {
      if (!fromKeys.includes(signal)) child.kill(signal);
    };
    const passed: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];
    for (const signal of passed) process.on(signal, pass);
    const end = (status: number): void => {
      for (const signal of passed) process.off(signal, pass);
      resolve(status);
    };
    child.once('error', () => end(127));
    child.once('exit', (code, signal) =>
      end(signal === null ? (code ?? 1) : 128 + constants.signals[signal]),
    );
  });
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const defined: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) defined[name] = value;
  return defined;
}
