import type { Result } from '../../shared/errors.ts';
import type { LandlordState } from '../../shared/state.ts';
import type { FoundRuntime } from '../core/state-dir/discover-runtime.ts';
import type { Invocation } from './arguments.ts';
import type { Run } from './commands.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { modelLines } from './model-text.ts';
import { fetchEvents, fetchState, findRuntime, runtimeChoice } from './runtime-client.ts';
import { statusText } from './status-text.ts';
import { plain, type Terminal } from './terminal.ts';
import { usageError } from './usage.ts';

const LATEST_EVENTS = 5;

export const runStatus: Run = (invocation, terminal) =>
  withState(invocation, terminal, async (runtime, state) => {
    if (invocation.flag('json')) return JSON.stringify(state);
    const events = await fetchEvents(runtime, { limit: String(LATEST_EVENTS) });
    return statusText(state, events.ok ? events.value : [], Date.now(), terminal);
  });

export const runModels: Run = (invocation, terminal) =>
  withState(invocation, terminal, async (_runtime, state) => {
    if (invocation.flag('json')) return JSON.stringify(state.models);
    const lines = modelLines(state.models, Date.now(), terminal);
    return lines.length === 0 ? 'No backend lists a model yet.' : lines.join('\n');
  });

async function withState(
  invocation: Invocation,
  terminal: Terminal,
  show: (runtime: FoundRuntime, state: LandlordState) => Promise<string>,
): Promise<number> {
  const choice = runtimeChoice(invocation);
  if (!choice.ok) return usageError(invocation.command, choice.error.message, terminal);
  const runtime = await findRuntime(choice.value);
  const state: Result<LandlordState> = runtime.ok ? await fetchState(runtime.value) : runtime;
  if (!runtime.ok || !state.ok) {
    const error = runtime.ok ? (state.ok ? null : state.error) : runtime.error;
    if (error === null) return EXIT.refused;
    terminal.err(`landlord ${invocation.command.name}: ${plain(error.message)}`);
    return exitCodeOf(error);
  }
  terminal.out(await show(runtime.value, state.value));
  return EXIT.done;
}
