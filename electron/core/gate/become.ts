import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { basename } from 'node:path';
import type { FileLocker } from './locker.ts';
import { findProgram, type Program } from './program.ts';

export type Runnable = Extract<Program, { readonly kind: 'runnable' }>;

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
  for (const fd of descriptors) locker?.handOn(fd);
  locker?.prepareExec();
  return process.execve(program.file, [...program.args], definedOnly(env));
}

/** Signals that are passed on; the others end or stop both, or are the terminal's to send to both. */
const PASSED: readonly NodeJS.Signals[] = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGCONT',
];

export interface Supervision {
  /** The lock's, which the command shares: it keeps the lane too, for as long as it keeps them open. */
  readonly descriptors: readonly number[];
  readonly locker: FileLocker | null;
  /** Whether the command is ended when we are killed outright, where the system can do that. */
  readonly endsWithUs: boolean;
}

/**
 * Runs the command as a child and stays until it ends, so that the lane is held whatever the child
 * does with its descriptors: a program that becomes a daemon, or sudo, closes all it does not know.
 * Also what is done where there is no exec. Gives the exit status, 128 + n for a signal.
 *
 * When we are killed outright the child is ended with us, or else goes on and keeps the lane itself.
 * Signals we can see are passed on, save those that a terminal's keys send: they reach the child by
 * themselves, and a second one would cut its clean-up short.
 */
export function supervise(
  program: Runnable,
  env: Readonly<Record<string, string | undefined>>,
  { descriptors, locker, endsWithUs }: Supervision,
): Promise<number> {
  // Not needed to become a program, and 9 ms to load (measured, Node 24).
  const { spawn } = process.getBuiltinModule('node:child_process');
  const { isatty } = process.getBuiltinModule('node:tty');
  for (const fd of descriptors) locker?.handOn(fd);
  locker?.blockStreams();
  return new Promise((resolve) => {
    const [name = program.file, ...args] = program.args;
    const bound = endsWithUs ? boundToUs(program.file, name, env) : null;
    const fromKeys: readonly NodeJS.Signals[] = isatty(0) ? ['SIGINT', 'SIGQUIT'] : [];
    let child: ChildProcess | null = null;
    const pass = (signal: NodeJS.Signals): void => {
      if (!fromKeys.includes(signal)) child?.kill(signal);
    };
    // Before it runs: it may say that it does, and be sent a signal, while we wait for our share of a busy machine.
    for (const signal of PASSED) process.on(signal, pass);
    const end = (status: number): void => {
      for (const signal of PASSED) process.off(signal, pass);
      resolve(status);
    };
    child = spawn(bound?.file ?? program.file, [...(bound?.args ?? []), ...args], {
      argv0: bound?.argv0 ?? name,
      env: definedOnly(env),
      stdio: ['inherit', 'inherit', 'inherit', ...descriptors],
    });
    child.once('error', () => end(127));
    child.once('exit', (code, signal) =>
      end(signal === null ? (code ?? 1) : 128 + constants.signals[signal]),
    );
  });
}

/**
 * The kernel ends the command when we end (PR_SET_PDEATHSIG, prctl(2)), which only the command's own
 * process can ask for: util-linux' setpriv does, and then becomes it. A set-uid program such as sudo
 * loses it. null: no setpriv here.
 *
 * If we were gone before it asked, nothing comes any more: so whoever is its parent by then is looked at.
 */
function boundToUs(
  file: string,
  name: string,
  env: Readonly<Record<string, string | undefined>>,
): { readonly file: string; readonly argv0: string; readonly args: readonly string[] } | null {
  const setpriv = findProgram(['setpriv'], process.env.PATH);
  if (setpriv.kind !== 'runnable') return null;
  // It looks for what it runs as a shell does, and hands the name on.
  const run = basename(file) === name ? name : file;
  const check = survivesShell(env) ? ['/bin/sh', '-c', CHECK_PARENT, 'sh', String(process.pid)] : [];
  return { file: setpriv.file, argv0: 'setpriv', args: ['--pdeathsig', 'KILL', '--', ...check, run] };
}

const CHECK_PARENT = '[ "$PPID" = "$1" ] || kill -KILL $$; shift; exec "$@"';

/** dash drops a variable whose name is none of a shell's; then the command's environment counts for more. */
function survivesShell(env: Readonly<Record<string, string | undefined>>): boolean {
  return env.PWD !== undefined && Object.keys(env).every((name) => /^[A-Za-z_]\w*$/.test(name));
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const defined: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) defined[name] = value;
  return defined;
}
