import { parseArgs } from 'node:util';
import { fail, messageOf, ok, type Result } from '../../shared/errors.ts';
import type { CommandInfo } from './commands.ts';

/** One call of a command, its options and arguments checked against the command's own list. */
export interface Invocation {
  readonly command: CommandInfo;
  readonly positionals: readonly string[];
  /** null: not given. */
  text(option: string): string | null;
  flag(option: string): boolean;
}

/** Errors are `bad_input`: the caller prints them with the usage line and exits 64. */
export function parseInvocation(command: CommandInfo, args: readonly string[]): Result<Invocation> {
  const takesCommand = command.argumentCount === 'command';
  const takesFlags = command.argumentCount === 'file and flags';
  const end = takesCommand || takesFlags ? args.indexOf('--') : -1;
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({
      args: joinNegatives(end < 0 ? args : args.slice(0, end), command),
      options: command.options,
      allowPositionals: true,
      strict: true,
    });
  } catch (thrown) {
    const hint = takesFlags && end < 0 ? ' Flags as llama-server has them follow --.' : '';
    return fail('bad_input', `${firstSentence(messageOf(thrown))}${hint}`);
  }
  const { values } = parsed;
  const wrong = takesCommand
    ? commandMessage(parsed.positionals, end, args)
    : countMessage(command.argumentCount, parsed.positionals);
  if (wrong !== null) return fail('bad_input', wrong);
  if (parsed.positionals.includes('')) return fail('bad_input', 'An argument is empty.');
  const rest = end < 0 ? [] : args.slice(end + 1);
  const positionals = takesCommand ? rest : [...parsed.positionals, ...rest];
  return ok({
    command,
    positionals,
    text(option) {
      const value = values[option];
      return typeof value === 'string' ? value : null;
    },
    flag: (option) => values[option] === true,
  });
}

/** `--port`; null: not given. */
export function readPort(invocation: Invocation, smallest: 0 | 1): Result<number | null> {
  return readCount(invocation, 'port', smallest, 65_535);
}

/** A whole number option; null: not given. */
export function readCount(
  invocation: Invocation,
  option: string,
  smallest: number,
  largest: number,
): Result<number | null> {
  const text = invocation.text(option);
  if (text === null) return ok(null);
  const count = Number(text);
  if (/^\d{1,9}$/.test(text) && count >= smallest && count <= largest) return ok(count);
  return fail('bad_input', `--${option} takes a whole number from ${smallest} to ${largest}, not ${text}.`);
}

/** null: as many as there should be. */
function countMessage(wanted: CommandInfo['argumentCount'], given: readonly string[]): string | null {
  const most = typeof wanted === 'number' ? wanted : 1;
  const least = wanted === 'optional' ? 0 : most;
  if (given.length > most) return `${given[most]} is one argument too many.`;
  return given.length < least ? 'An argument is missing.' : null;
}

/** null: a command follows `--`, and nothing but options comes before. */
function commandMessage(before: readonly string[], end: number, args: readonly string[]): string | null {
  if (end < 0) return 'The command is missing: write it after --.';
  if (before.length > 0) return `${before[0]} stands before --; the command belongs after it.`;
  return args.length === end + 1 ? 'The command after -- is missing.' : null;
}

/** parseArgs takes `--wait -1` for two options; the command itself has better words for a number it can't use. */
function joinNegatives(args: readonly string[], command: CommandInfo): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const before = joined.at(-1) ?? '';
    const takesText = before.startsWith('--') && command.options[before.slice(2)]?.type === 'string';
    if (takesText && /^-\d/.test(arg)) joined[joined.length - 1] = `${before}=${arg}`;
    else joined.push(arg);
  }
  return joined;
}

/** parseArgs adds advice for programmers after its first sentence. */
function firstSentence(message: string): string {
  return `${message.split(/\.\s/, 1)[0]?.replace(/\.$/, '')}.`;
}
