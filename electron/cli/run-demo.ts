import type { Result } from '../../shared/errors.ts';
import { readPort } from './arguments.ts';
import type { Run } from './commands.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { firstSignal } from './signals.ts';
import { plain } from './terminal.ts';
import { usageError } from './usage.ts';

export interface DemoOptions {
  /** null: any free port. */
  readonly port: number | null;
  /** Aborted on the first signal; the demo cleans up and ends. */
  readonly signal: AbortSignal;
  /** One or more whole lines for the terminal. */
  readonly print: (text: string) => void;
  readonly color: boolean;
}

export type RunDemo = (options: DemoOptions) => Promise<Result<unknown>>;

const DEMO_MODULE: string = '../core/demo/demo.ts';

/** The simulated morning; its own module plays it, here it gets a terminal and an end. */
export const runDemoCommand: Run = async (invocation, terminal) => {
  const port = readPort(invocation, 0);
  if (!port.ok) return usageError(invocation.command, port.error.message, terminal);
  const stopping = new AbortController();
  void firstSignal().then(() => stopping.abort());
  const loaded: { readonly runDemo: RunDemo } = await import(DEMO_MODULE);
  const played = await loaded.runDemo({
    port: port.value,
    signal: stopping.signal,
    print: terminal.out,
    color: terminal.color,
  });
  if (played.ok) return EXIT.done;
  terminal.err(`landlord demo: ${plain(played.error.message)}`);
  return exitCodeOf(played.error);
};
