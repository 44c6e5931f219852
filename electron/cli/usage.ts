import { type CommandInfo, usageLine } from './commands.ts';
import { EXIT } from './exit-codes.ts';
import { plain, type Terminal } from './terminal.ts';

/** Says what is wrong with a command line, and how it is meant. */
export function usageError(command: CommandInfo, message: string, terminal: Terminal): number {
  terminal.err(`landlord ${command.name}: ${plain(message)}`);
  terminal.err(usageLine(command));
  return EXIT.usage;
}
