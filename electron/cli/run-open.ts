import type { Run } from './commands.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { ask, findRuntime, runtimeChoice } from './runtime-client.ts';
import { plain } from './terminal.ts';
import { usageError } from './usage.ts';

/** Prints an address that lets a browser in once. */
export const runOpen: Run = async (invocation, terminal) => {
  const choice = runtimeChoice(invocation);
  if (!choice.ok) return usageError(invocation.command, choice.error.message, terminal);
  const runtime = await findRuntime(choice.value);
  const answer = runtime.ok ? await ask(runtime.value, 'POST', '/api/open') : runtime;
  if (!answer.ok) {
    terminal.err(`landlord open: ${plain(answer.error.message)}`);
    return exitCodeOf(answer.error);
  }
  const { value } = answer;
  const url = typeof value === 'object' && value !== null && 'url' in value ? String(value.url) : '';
  terminal.out(plain(url));
  return EXIT.done;
};
