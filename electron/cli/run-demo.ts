import type { Result } from '../../shared/errors.ts';
import type { Stage } from '../core/demo/stage.ts';
import { type Invocation, readPort } from './arguments.ts';
import type { Run } from './commands.ts';
import { demoStage } from './demo-stage.ts';
import { EXIT } from './exit-codes.ts';
import { firstSignal, signalExitCode } from './signals.ts';
import { plain } from './terminal.ts';
import { usageError } from './usage.ts';

/** The simulated morning; its own module plays it, here it gets a terminal and an end. */
export const runDemoCommand: Run = async (invocation, terminal) => {
  const port = readPort(invocation, 0);
  if (!port.ok) return usageError(invocation.command, port.error.message, terminal);
  const stopping = new AbortController();
  let exitCode: number = EXIT.done;
  void firstSignal().then((signal) => {
    exitCode = signalExitCode(signal);
    stopping.abort();
  });
  const { stdout, env } = process;
  const isLive = stdout.isTTY === true && env.TERM !== 'dumb';
  using stage = demoStage({
    ...terminal,
    overwrite: isLive ? (text) => void stdout.write(`\r\u001b[K${text}`) : null,
  });
  const played = await play(invocation, port.value, stopping.signal, stage);
  stage[Symbol.dispose]();
  if (played.ok) return EXIT.done;
  terminal.err(`landlord demo: ${plain(played.error.message)}`);
  return played.error.code === 'cancelled' ? exitCode : EXIT.failed;
};

async function play(
  invocation: Invocation,
  port: number | null,
  signal: AbortSignal,
  stage: Stage,
): Promise<Result<void>> {
  if (invocation.flag('agents')) {
    const { runAgentsDemo } = await import('../core/demo/agents-demo.ts');
    return await runAgentsDemo({ signal, stage });
  }
  const { runDemo } = await import('../core/demo/demo.ts');
  const { findLlamaServer } = await import('../core/demo/find-llama-server.ts');
  const server = invocation.flag('simulated') ? 'asked for' : ((await findLlamaServer()) ?? 'none found');
  return await runDemo({ port, signal, server, stage });
}
