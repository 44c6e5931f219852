/**
 * Keeps one server that is ours: starts it, writes its log, and ends it with all that it has started, also
 * where this program's own parent is killed. Whatever descends from the server and is left by its parent
 * comes to this process (PR_SET_CHILD_SUBREAPER, prctl(2)), so that nothing of it can get away.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../../../shared/errors.ts';
import { procfs } from '../../process/procfs.ts';
import { secrets } from '../../security/secrets.ts';
import { type BoundedLog, boundedLog } from './bounded-log.ts';
import { descendants } from './family.ts';
import type { FromKeeper, ToKeeper } from './keeper-messages.ts';

const PR_SET_CHILD_SUBREAPER = 36;
const SETPRIV = '/usr/bin/setpriv';
const LOOK_EVERY_MS = 50;
/** A killed process with gigabytes on a device may take this long to be gone. */
const KILL_LIMIT_MS = 5_000;

const proc = procfs();
let child: ChildProcess | null = null;
let log: BoundedLog | null = null;
let graceMs = 10_000;
let stopping: Promise<void> | null = null;

function say(message: FromKeeper): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

function becomeSubreaper(): void {
  if (process.platform !== 'linux') return;
  try {
    const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi');
    const prctl = koffi.load(null).func('int prctl(int option, ulong a, ulong b, ulong c, ulong d)');
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  } catch {
    // Then only what still has its parent is found.
  }
}

function note(text: string): void {
  log?.write(`[landlord ${new Date().toISOString()}] ${text}\n`);
}

function run(message: Extract<ToKeeper, { type: 'run' }>): void {
  log = boundedLog(message.logFile);
  graceMs = message.graceMs;
  becomeSubreaper();
  const [program = '', ...args] = message.command;
  // Should this process be killed, the kernel ends the server.
  const guarded = process.platform === 'linux' && existsSync(SETPRIV);
  const argv = guarded ? ['--pdeathsig', 'KILL', '--', program, ...args] : args;
  secrets.learnFromCommand(message.command);
  note(`starting ${secrets.hide(message.command.join(' '))}`);
  // Electron's fork sets it for us; a server that is an Electron app itself would start as plain Node.
  const { ELECTRON_RUN_AS_NODE: _ours, ...env } = process.env;
  const started = spawn(guarded ? SETPRIV : program, argv, {
    cwd: message.cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child = started;
  started.stdout.on('data', (chunk: Buffer) => log?.write(chunk));
  started.stderr.on('data', (chunk: Buffer) => log?.write(chunk));
  started.once('error', (error) => {
    note(`could not be started: ${error.message}`);
    say({ type: 'refused', reason: messageOf(error) });
    leave();
  });
  started.once('spawn', () => say({ type: 'started', pid: started.pid ?? 0 }));
  started.once('exit', (exitCode, signal) => {
    note(signal === null ? `ended with exit code ${exitCode}` : `ended by ${signal}`);
    // A server that is gone leaves nothing of itself behind.
    void stop().then(() => {
      say({ type: 'over', exitCode, signal });
      leave();
    });
  });
}

function stop(): Promise<void> {
  stopping ??= end();
  return stopping;
}

async function end(): Promise<void> {
  const isRunning = (): boolean => child !== null && child.exitCode === null && child.signalCode === null;
  const endAtMs = performance.now() + graceMs;
  if (isRunning()) child?.kill('SIGTERM');
  while (performance.now() < endAtMs && isRunning()) await sleep(LOOK_EVERY_MS);
  // What it started goes when it goes; what does not is asked, and then ended.
  signalAll('SIGTERM');
  const askedUntilMs = Math.max(endAtMs, performance.now() + 1_000);
  while (performance.now() < askedUntilMs && descendants(proc, process.pid).length > 0)
    await sleep(LOOK_EVERY_MS);
  const killUntilMs = performance.now() + KILL_LIMIT_MS;
  while (performance.now() < killUntilMs && descendants(proc, process.pid).length > 0) {
    signalAll('SIGKILL');
    await sleep(LOOK_EVERY_MS);
  }
}

function signalAll(signal: NodeJS.Signals): void {
  for (const relative of descendants(proc, process.pid)) {
    if (proc.stat(relative.pid)?.startTimeTicks !== relative.startTimeTicks) continue;
    try {
      process.kill(relative.pid, signal);
    } catch {
      // Gone in between, or of another user.
    }
  }
}

function leave(): void {
  // What was said goes out first.
  setTimeout(() => process.exit(0), 20);
}

process.on('message', (message: ToKeeper) => {
  if (message.type === 'run') run(message);
  else void stop().then(leave);
});
process.on('disconnect', () => void stop().then(() => process.exit(0)));
for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
  process.on(signal, () => void stop().then(() => process.exit(0)));
}
