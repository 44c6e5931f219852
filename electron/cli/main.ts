import { messageOf } from '../../shared/errors.ts';
import { nearest } from '../core/settings/did-you-mean.ts';
import { parseInvocation } from './arguments.ts';
import { COMMANDS, helpText, overview } from './commands.ts';
import { EXIT } from './exit-codes.ts';
import { exitOnSignals } from './signals.ts';
import { capabilities, plain, type Terminal } from './terminal.ts';
import { usageError } from './usage.ts';

/** Runs one command line and says with which code to exit. */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined) {
    terminal.err(overview());
    return EXIT.usage;
  }
  if (name === '--version' || name === '-V') {
    terminal.out((await import('../core/version.ts')).version());
    return EXIT.done;
  }
  if (name === 'help' || name === '--help' || name === '-h') return help(rest[0], terminal);
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command === undefined) return unknownCommand(name, terminal);
  if (asksForHelp(rest)) return help(name, terminal);

  const invocation = parseInvocation(command, rest);
  if (!invocation.ok) return usageError(command, invocation.error.message, terminal);
  if (command.handlesSignals !== true) exitOnSignals();
  const start = await command.load();
  return start(invocation.value, terminal);
}

/** The real process: its streams, its signals, its exit code. */
export async function runFromProcess(args: readonly string[]): Promise<void> {
  const { stdout, stderr, env } = process;
  // A reader that has seen enough (`landlord events | head`) is no error.
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  }
  const terminal: Terminal = {
    out: (text) => void stdout.write(`${text}\n`),
    err: (text) => void stderr.write(`${text}\n`),
    ...capabilities({ isTty: stdout.isTTY === true, columns: stdout.columns, env }),
  };
  try {
    process.exitCode = await run(args, terminal);
  } catch (thrown) {
    terminal.err(`landlord: an error that was not foreseen: ${plain(messageOf(thrown))}`);
    process.exitCode = 1;
  }
}

function help(name: string | undefined, terminal: Terminal): number {
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (name !== undefined && command === undefined) return unknownCommand(name, terminal);
  terminal.out(command === undefined ? overview() : helpText(command));
  return EXIT.done;
}

function unknownCommand(name: string, terminal: Terminal): number {
  const close = nearest(
    name,
    COMMANDS.map((command) => command.name),
  );
  const hint = close === null ? '' : ` Did you mean ${close}?`;
  terminal.err(`landlord: there is no command ${plain(name)}.${hint}`);
  terminal.err('Usage: landlord COMMAND [OPTIONS]; `landlord --help` lists the commands.');
  return EXIT.usage;
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h');
}
