import { basename } from 'node:path';
import { fail, ok, type Result } from '../../shared/errors.ts';
import { supervise } from '../core/gate/become.ts';
import { findProgram } from '../core/gate/program.ts';
import { parseBytes } from '../core/settings/units.ts';
import type { Invocation } from './arguments.ts';
import type { Run } from './commands.ts';
import { compileCacheDir } from './compile-cache.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { holdReservation, type ReservationWish } from './reservation-client.ts';
import { findRuntime, runtimeChoice } from './runtime-client.ts';
import { plain } from './terminal.ts';
import { usageError } from './usage.ts';

/**
 * Books memory, runs the command, and gives back when it ends. Its exit code is the command's own, or
 * 3 (no runtime), 64, 69, 75 (denied), 126, 127.
 *
 * The booking is this process's connection: however this process ends, the kernel closes it.
 */
export const runReserve: Run = async (invocation, terminal) => {
  const wish = readWish(invocation);
  if (!wish.ok) return usageError(invocation.command, wish.error.message, terminal);
  const choice = runtimeChoice(invocation);
  if (!choice.ok) return usageError(invocation.command, choice.error.message, terminal);
  const say = (text: string): void => terminal.err(`landlord reserve: ${plain(text)}`);
  // Looked for before models leave for it.
  const program = findProgram(invocation.positionals, process.env.PATH);
  if (program.kind !== 'runnable') {
    say(program.why);
    return program.kind === 'not_found' ? EXIT.notFound : EXIT.notAllowed;
  }
  const runtime = await findRuntime(choice.value);
  const held = runtime.ok ? await holdReservation(runtime.value, wish.value) : runtime;
  if (!held.ok) {
    say(held.error.message);
    return held.error.code === 'vram_denied' ? EXIT.busy : exitCodeOf(held.error);
  }
  held.value.onLost((why) => say(`The booking is over: ${why} The command goes on without it.`));
  const status = await supervise(program, commandEnv(), {
    descriptors: [],
    locker: null,
    endsWithUs: false,
  });
  held.value.release();
  return status;
};

function readWish(invocation: Invocation): Result<ReservationWish> {
  const text = invocation.text('bytes');
  if (text === null)
    return fail('bad_input', '--bytes is missing: the most that the job takes, such as 9GB.');
  const bytes = parseBytes(text);
  if (!bytes.ok) return fail('bad_input', `--bytes ${text} is not an amount of memory; ${bytes.hint}.`);
  if (bytes.value === 0) return fail('bad_input', '--bytes must be more than 0.');
  const name = invocation.text('name') ?? basename(invocation.positionals[0] ?? '').slice(0, 200);
  if (name === '' || name.length > 200) return fail('bad_input', '--name takes 1 to 200 characters.');
  return ok({ bytes: bytes.value, device: invocation.text('device'), name });
}

function commandEnv(): Record<string, string | undefined> {
  const env: Record<string, string | undefined> = { ...process.env };
  // `build/landlord` sets this for its own start; the command must not write into our cache.
  if (env.NODE_COMPILE_CACHE === compileCacheDir()) delete env.NODE_COMPILE_CACHE;
  return env;
}
