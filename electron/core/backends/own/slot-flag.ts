import { serverProgram } from '../../process/programs.ts';

/**
 * The command with llama-server's `--slot-save-path`, so that what it has read outlives an unload; a router
 * hands it on to its models. As it is where it says so itself, and where it runs anything else.
 */
export function withSlotFolder(command: readonly string[], folder: string): readonly string[] {
  const isSet = command.some((word) => word === '--slot-save-path' || word.startsWith('--slot-save-path='));
  if (isSet || serverProgram(withoutEnv(command)) !== 'llama-server') return command;
  return [...command, '--slot-save-path', folder];
}

/** Behind `env NAME=value …`, as people set variables for it. */
export function withoutEnv(command: readonly string[]): readonly string[] {
  if (!/(?:^|\/)env$/.test(command[0] ?? '')) return command;
  const at = command.findIndex((word, index) => index > 0 && !word.includes('=') && !word.startsWith('-'));
  return at < 0 ? command : command.slice(at);
}
