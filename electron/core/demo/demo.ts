import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { play } from './acts.ts';
import { BIG } from './cast.ts';
import type { LlamaServer } from './demo-router.ts';
import { NotAsTold, type Stage } from './stage.ts';
import { type Players, prologue } from './story.ts';
import { buildWorld } from './world.ts';

export interface DemoOptions {
  /** null: any free port. */
  readonly port: number | null;
  /** Aborted on the first signal; the demo cleans up and ends. */
  readonly signal: AbortSignal;
  /** Or why stand-ins are to play. */
  readonly server: LlamaServer | 'none found' | 'asked for';
  readonly stage: Stage;
}

/**
 * Plays an October morning on a simulated card twice, watched and guarded, by the real runtime over a
 * real router. Everything it starts and writes is gone when it resolves.
 *
 * Errors: `cancelled` (the signal), `internal` (something did not happen as the story has it: said
 * which), and those of the router's and the runtime's start.
 */
export async function runDemo(options: DemoOptions): Promise<Result<void>> {
  const { stage, signal } = options;
  const server = typeof options.server === 'string' ? null : options.server;
  const cancelled = fail('cancelled', 'The demo was ended; all it had started is gone.');
  const built = await buildWorld({
    server,
    port: options.port,
    signal,
    onState: (state) => stage.live(state),
  }).catch((thrown: unknown) => fail('internal', `The demo could not be set up: ${messageOf(thrown)}.`));
  if (signal.aborted && !built.ok) return cancelled;
  if (!built.ok) return built;
  await using world = built.value;
  try {
    stage.say(
      prologue({
        totalBytes: world.device().totalBytes,
        players: playersOf(options.server),
        loadMs: BIG.bufferAtMs ?? BIG.rampMs,
        url: world.runtime.openUrl,
      }),
    );
    await play(world, stage, server !== null);
    return ok(undefined);
  } catch (thrown) {
    if (signal.aborted) return cancelled;
    if (!(thrown instanceof NotAsTold)) throw thrown;
    return fail(
      'internal',
      `This did not go as told: ${thrown.message}. Try it again when the machine is less busy.`,
    );
  }
}

function playersOf(server: DemoOptions['server']): Players {
  return typeof server === 'string' ? { real: false, why: server } : { real: true, version: server.version };
}
