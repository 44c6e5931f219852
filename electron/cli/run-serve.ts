import { fstatSync } from 'node:fs';
import type { Result } from '../../shared/errors.ts';
import { formatBytes } from '../../shared/format.ts';
import type { LandlordState } from '../../shared/state.ts';
import type { Runtime, RuntimeOptions } from '../core/runtime.ts';
import type { RuntimeApi } from '../core/runtime-api.ts';
import { type Invocation, readPort } from './arguments.ts';
import type { Run } from './commands.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { firstSignal } from './signals.ts';
import { plain, type Terminal } from './terminal.ts';
import { usageError } from './usage.ts';

/** `startRuntime`, as far as it is needed here. */
export type StartRuntime = (
  options: Pick<RuntimeOptions, 'configPath' | 'stateDir' | 'port'>,
) => Promise<Result<Pick<Runtime, 'state' | 'onState' | 'url' | 'openUrl' | 'stop'>>>;

/** How long the first reading of devices and backends is waited for before it is told of. */
const FIRST_LOOK_MS = 3000;
/** What was said is out by then. */
const LEAVE_LIMIT_MS = 1_000;

export const runServe: Run = async (invocation, terminal) => {
  // Before anything starts: a signal during the start stops what has started.
  const signal = firstSignal();
  leaveArenas(process.env);
  const { startRuntime } = await import('../core/runtime.ts');
  const code = await serve(invocation, terminal, startRuntime, signal, goesToJournal(process.env));
  // All is in order now, and no child that hangs in a driver, nor the rest of one that could not be started, holds up the end.
  setTimeout(() => process.exit(code), LEAVE_LIMIT_MS).unref();
  return code;
};

/** What the launcher has set for this process's own malloc, which has read it by now, is nothing for servers that it runs. */
export function leaveArenas(env: Record<string, string | undefined>): void {
  if (env.VRAM_LANDLORD_OWN_ARENAS !== undefined) delete env.MALLOC_ARENA_MAX;
  delete env.VRAM_LANDLORD_OWN_ARENAS;
}

/**
 * Whether what is printed is kept by the journal, where a group of users may read it: the address that opens
 * the page is none of theirs. `JOURNAL_STREAM` is the journal's own file (systemd.exec(5)), also for children.
 */
export function goesToJournal(env: Readonly<Record<string, string | undefined>>, output = 1): boolean {
  if (env.JOURNAL_STREAM === undefined) return false;
  try {
    const { dev, ino } = fstatSync(output);
    return env.JOURNAL_STREAM === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** Starts a runtime, tells where its page is and what was found, and stops it in order on a signal. */
export async function serve(
  invocation: Invocation,
  terminal: Terminal,
  startRuntime: StartRuntime,
  signal: Promise<unknown>,
  toJournal = false,
): Promise<number> {
  const port = readPort(invocation, 0);
  if (!port.ok) return usageError(invocation.command, port.error.message, terminal);
  const started = await startRuntime({
    configPath: invocation.text('config'),
    stateDir: invocation.text('state-dir'),
    port: port.value,
  });
  if (!started.ok) {
    terminal.err(`landlord serve: ${plain(started.error.message)}`);
    return exitCodeOf(started.error);
  }
  const runtime = started.value;
  terminal.out(
    toJournal
      ? `VRAM Landlord is running at ${runtime.url}; \`landlord open\` opens its page`
      : `VRAM Landlord is running; its page opens once with ${runtime.openUrl}`,
  );
  const look = await Promise.race([firstLook(runtime), signal.then(() => null)]);
  if (look !== null) {
    terminal.out(plain(foundText(look)));
    for (const { severity, text } of look.notices)
      if (severity !== 'info') terminal.err(`landlord serve: ${plain(text)}`);
  }
  await signal;
  await runtime.stop();
  return EXIT.done;
}

/** `Radeon X 24.0 GB; router (llama.cpp) at http://127.0.0.1:8080, guarded` */
export function foundText(state: LandlordState): string {
  const devices = state.devices.map((device) => `${device.name} ${formatBytes(device.totalBytes)}`);
  const backends = state.backends.map((backend) => {
    const how = backend.guards === 'on' ? 'guarded' : 'observed only';
    return `${backend.name} (${backend.kind}) at ${backend.url}${backend.status === 'down' ? ' (down)' : ''}, ${how}`;
  });
  return [
    devices.length === 0 ? 'no device read yet' : devices.join(', '),
    backends.length === 0 ? 'no backend found yet' : backends.join('; '),
  ]
    .join(' · ')
    .replace(/^n/, 'N');
}

/** The first state in which a device and every backend has been looked at, or what stands after 3 s. */
function firstLook(runtime: Pick<RuntimeApi, 'state' | 'onState'>): Promise<LandlordState> {
  const isSeen = (state: LandlordState): boolean =>
    state.devices.length > 0 && state.backends.every((backend) => backend.status !== 'unknown');
  return new Promise((resolve) => {
    const finish = (state: LandlordState): void => {
      clearTimeout(timer);
      undo();
      resolve(state);
    };
    const timer = setTimeout(() => finish(runtime.state()), FIRST_LOOK_MS);
    const undo = runtime.onState((state) => {
      if (isSeen(state)) finish(state);
    });
    if (isSeen(runtime.state())) finish(runtime.state());
  });
}
