import { fail, ok, type Result } from '../../shared/errors.ts';
import type { AgentState } from '../../shared/state.ts';
import { parseBytes, parseDuration } from '../core/settings/units.ts';
import type { FoundRuntime } from '../core/state-dir/discover-runtime.ts';
import type { Invocation } from './arguments.ts';
import type { Run } from './commands.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { resolveModelName } from './model-name.ts';
import { ask, fetchState, findRuntime, runtimeChoice } from './runtime-client.ts';
import { plain } from './terminal.ts';
import { usageError } from './usage.ts';

/** A request to the runtime; a `model` goes into the path once its id is known. */
export interface ActionRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly model: string | null;
}

/** Every command that asks the runtime to do one thing and tells how it went. */
export const runAction: Run = async (invocation, terminal) => {
  const { command } = invocation;
  const request = actionRequest(invocation);
  if (!request.ok) return usageError(command, request.error.message, terminal);
  const choice = runtimeChoice(invocation);
  if (!choice.ok) return usageError(command, choice.error.message, terminal);

  const runtime = await findRuntime(choice.value);
  const done = runtime.ok ? await send(runtime.value, request.value) : runtime;
  if (!done.ok) {
    terminal.err(`landlord ${command.name}: ${plain(done.error.message)}`);
    return exitCodeOf(done.error);
  }
  terminal.out(plain(done.value));
  return EXIT.done;
};

/** What the command line asks for. Errors are `bad_input`. */
export function actionRequest(invocation: Invocation): Result<ActionRequest> {
  const { command, positionals } = invocation;
  const argument = positionals[0] ?? '';
  const plainRequest = (body: Readonly<Record<string, unknown>> = {}): Result<ActionRequest> =>
    ok({ path: `/api/${command.name}`, body, model: null });
  switch (command.name) {
    case 'load':
    case 'unload':
      return ok({ path: command.name, body: { force: invocation.flag('force') }, model: argument });
    case 'pin':
    case 'unpin':
      return ok({ path: command.name, body: {}, model: argument });
    case 'sleep': {
      const forMs = readDuration(invocation);
      return forMs.ok ? plainRequest({ for: forMs.value }) : forMs;
    }
    case 'make-room': {
      const bytes = parseBytes(argument);
      if (!bytes.ok) return fail('bad_input', `${argument} is not an amount of memory; ${bytes.hint}.`);
      if (bytes.value === 0) return fail('bad_input', 'SIZE must be more than 0.');
      return plainRequest({ bytes: bytes.value, device: invocation.text('device') });
    }
    case 'guards': {
      if (!['on', 'observe', 'pause'].includes(argument)) {
        return fail('bad_input', `The guards can be on, observe or pause, not ${argument}.`);
      }
      const forMs = readDuration(invocation);
      if (!forMs.ok) return forMs;
      if (forMs.value !== null && argument !== 'pause') {
        return fail('bad_input', `--for goes with pause; ${argument} stays until it is changed.`);
      }
      return plainRequest({ mode: argument, for: forMs.value, backend: invocation.text('backend') });
    }
    case 'drain':
      return plainRequest({
        ...(invocation.flag('kill') ? { kill: true } : {}),
        ...(invocation.flag('restart-unit') ? { restartUnit: true } : {}),
      });
    case 'accept':
      return plainRequest({ offer: argument });
    default:
      return plainRequest();
  }
}

function engineAgent(agent: AgentState): readonly string[] {
  return agent.source === 'engine' ? [agent.id] : [];
}

async function send(runtime: FoundRuntime, request: ActionRequest): Promise<Result<string>> {
  let path = request.path;
  if (request.model !== null) {
    const state = await fetchState(runtime);
    if (!state.ok) return state;
    const id = resolveModelName(request.model, [
      ...state.value.models.map((model) => model.id),
      // An agent of the engine can be put away as a model can be unloaded.
      ...(request.path === 'unload' ? state.value.agents.flatMap(engineAgent) : []),
    ]);
    if (!id.ok) return id;
    path = `/api/models/${encodeURIComponent(id.value)}/${request.path}`;
  }
  const answer = await ask(runtime, 'POST', path, request.body);
  if (!answer.ok) return answer;
  const { value } = answer;
  const told = typeof value === 'object' && value !== null && 'message' in value ? value.message : null;
  return ok(typeof told === 'string' ? told : 'Done.');
}

/** `--for` in milliseconds; null: not given. */
function readDuration(invocation: Invocation): Result<number | null> {
  const text = invocation.text('for');
  if (text === null) return ok(null);
  const parsed = parseDuration(text);
  if (!parsed.ok) return fail('bad_input', `--for ${text} is not a duration; ${parsed.hint}.`);
  return parsed.value > 0 ? ok(parsed.value) : fail('bad_input', '--for must be longer than 0.');
}
