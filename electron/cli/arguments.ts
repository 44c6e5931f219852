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
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({
      args: [...args],
      options: command.options,
      allowPositionals: true,
      strict: true,
    });
  } catch (thrown) {
    return fail('bad_input', firstSentence(messageOf(thrown)));
  }
  const { values, positionals } = parsed;
  if (positionals.length !== command.argumentCount)
    return fail('bad_input', countMessage(command, positionals));
  if (positionals.includes('')) return fail('bad_input', 'An argument is empty.');
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

function countMessage(command: CommandInfo, given: readonly string[]): string {
  if (given.length > command.argumentCount) {
    return `${given[command.argumentCount]} is one argument too many.`;
  }
  return 'An argument is missing.';
}

/** parseArgs adds advice for programmers after its first sentence. */
function firstSentence(message: string): string {
  return `${message.split(/\.\s/, 1)[0]?.replace(/\.$/, '')}.`;
}
