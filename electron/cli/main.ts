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
  const terminal = processTerminal();
  try {
    process.exitCode = await run(args, terminal);
  } catch (thrown) {
    terminal.err(`landlord: an error that was not foreseen: ${plain(messageOf(thrown))}`);
    process.exitCode = 1;
  }
}

/**
 * Node makes its streams on their first use, which loads all it has of sockets and terminals: 7 ms that a
 * `turn` with nothing to say does without (measured, Node 24).
 */
function processTerminal(): Terminal {
  const shown = once(() => {
    const { isTTY, columns } = stream('stdout');
    return capabilities({ isTty: isTTY === true, columns, env: process.env });
  });
  return {
    out: (text) => void stream('stdout').write(`${text}\n`),
    err: (text) => void stream('stderr').write(`${text}\n`),
    get color() {
      return shown().color;
    },
    get unicode() {
      return shown().unicode;
    },
    get columns() {
      return shown().columns;
    },
  };
}

const watched = new Set<NodeJS.WriteStream>();

function stream(name: 'stdout' | 'stderr'): NodeJS.WriteStream {
  const found: NodeJS.WriteStream = process[name];
  if (!watched.has(found)) {
    watched.add(found);
    // A reader that has seen enough (`landlord events | head`) is no error. Who does not hear why still
    // learns by the exit code: a busy turn is 75, and no success.
    found.on('error', (error: NodeJS.ErrnoException) => {
      if (name === 'stdout') process.exit(error.code === 'EPIPE' ? 0 : 1);
    });
  }
  return found;
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
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
