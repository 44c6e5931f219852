import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * What exec would run for a command, found out before: `process.execve` that fails ends the process
 * with a stack trace.
 *
 *   runnable      `file` with `args`, args[0] included
 *   not_found     exit 127, as shells have it
 *   not_allowed   exit 126: there, but not to be run
 */
export type Program =
  | { readonly kind: 'runnable'; readonly file: string; readonly args: readonly string[] }
  | { readonly kind: 'not_found'; readonly why: string }
  | { readonly kind: 'not_allowed'; readonly why: string };

const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';

export function findProgram(command: readonly string[], path: string | undefined): Program {
  const [name, ...rest] = command;
  if (name === undefined || name === '') return { kind: 'not_found', why: 'No command was given.' };
  const candidates = name.includes('/')
    ? [name]
    : (path ?? DEFAULT_PATH).split(delimiter).map((folder) => join(folder === '' ? '.' : folder, name));
  let blocked: string | null = null;
  for (const file of candidates) {
    const state = fileState(file);
    if (state === 'absent') continue;
    if (state === 'runnable') return started(file, name, rest);
    blocked ??= file;
  }
  if (blocked !== null) return { kind: 'not_allowed', why: `${blocked} is not a program that may be run.` };
  return { kind: 'not_found', why: `${name}: command not found.` };
}

function fileState(file: string): 'runnable' | 'blocked' | 'absent' {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return 'absent';
    if (!stat.isFile()) return 'blocked';
    accessSync(file, constants.X_OK);
    return 'runnable';
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : null;
    return code === 'ENOENT' || code === 'ENOTDIR' ? 'absent' : 'blocked';
  }
}

/** The kernel knows `#!` and binaries; a script without `#!` is run by sh, as execvp(3) does. */
function started(file: string, name: string, rest: readonly string[]): Program {
  const head = readHead(file);
  const interpreter = /^#![ \t]*([^\s]+)/.exec(head)?.[1];
  if (interpreter !== undefined && fileState(interpreter) !== 'runnable') {
    return { kind: 'not_found', why: `${file} is to be run by ${interpreter}, which is not there.` };
  }
  const isScript = interpreter === undefined && head !== '' && !head.includes('\0');
  return isScript
    ? { kind: 'runnable', file: '/bin/sh', args: ['sh', file, ...rest] }
    : { kind: 'runnable', file, args: [name, ...rest] };
}

/** '' where it may be run but not read: then it is taken for a binary. */
function readHead(file: string): string {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY);
  } catch {
    return '';
  }
  try {
    const buffer = Buffer.alloc(256);
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0));
  } catch {
    return '';
  } finally {
    closeSync(fd);
  }
}
