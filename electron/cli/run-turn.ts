import { acquireTurn } from '../core/gate/acquire.ts';
import { become, supervise } from '../core/gate/become.ts';
import { createGate, type Gate } from '../core/gate/gate.ts';
import { createTeller } from '../core/gate/news.ts';
import { findProgram } from '../core/gate/program.ts';
import type { GateReport } from '../core/gate/reports.ts';
import type { TurnClass } from '../core/gate/sidecar.ts';
import { TURN_VARIABLE, type Turn } from '../core/gate/turn.ts';
import type { Invocation } from './arguments.ts';
import { loneWordNote } from './backend-name.ts';
import type { Run } from './commands.ts';
import { compileCacheDir } from './compile-cache.ts';
import { EXIT } from './exit-codes.ts';
import { plain } from './terminal.ts';
import { usageError } from './usage.ts';

const LONGEST_WAIT_S = 3600;

/** Takes the lane and becomes the command. Its exit code is the command's own, or 64, 75, 126, 127. */
export const runTurn: Run = async (invocation, terminal) => {
  const request = readRequest(invocation);
  if (typeof request === 'string') return usageError(invocation.command, request, terminal);
  // Looked for before the lane is taken, and before anybody waits for it.
  const program = findProgram(request.command, process.env.PATH);
  if (program.kind !== 'runnable') {
    terminal.err(`landlord turn: ${plain(program.why)}`);
    return program.kind === 'not_found' ? EXIT.notFound : EXIT.notAllowed;
  }
  const teller = createTeller();
  const gate = createGate({ teller });
  const turn = await acquireTurn(gate, request.backend, {
    session: request.session,
    model: request.model,
    class: request.class,
    waitMs: request.waitMs,
    onReport: (report) => terminal.err(reportLine(report)),
  });
  // After this there is no more of us, or nothing that waits.
  await teller.settled();
  if (turn.kind === 'busy') {
    terminal.err(plain(`${turn.code}: ${turn.message}`));
    return EXIT.busy;
  }
  const note = turn.kind === 'skipped' && turn.why === 'not_local' ? loneWordNote(request.backend) : null;
  if (note !== null) terminal.err(`landlord turn: ${note}`);
  const env = commandEnv(turn);
  const descriptors = turn.kind === 'held' ? turn.descriptors : [];
  const locker = lockerOf(gate);
  if (!request.supervise) become(program, env, descriptors, locker);
  const status = await supervise(program, env, { descriptors, locker, endsWithUs: request.supervise });
  // What the command has left behind may have the lock open still; the turn is over all the same.
  turn[Symbol.dispose]();
  return status;
};

interface TurnRequest {
  readonly backend: string;
  readonly session: string | null;
  readonly model: string | null;
  readonly class: TurnClass;
  readonly waitMs: number;
  readonly supervise: boolean;
  readonly command: readonly string[];
}

/** A string says what is wrong. */
function readRequest(invocation: Invocation): TurnRequest | string {
  const backend = invocation.text('backend');
  if (backend === null || backend.trim() === '') {
    return '--backend is missing: the URL of the backend whose lane it takes.';
  }
  const turnClass = invocation.text('class') ?? 'interactive';
  if (turnClass !== 'interactive' && turnClass !== 'batch') {
    return `--class is interactive or batch, not ${turnClass}.`;
  }
  const wait = invocation.text('wait') ?? '0';
  const waitS = Number(wait);
  if (!/^\d+(\.\d+)?$/.test(wait) || waitS > LONGEST_WAIT_S) {
    return `--wait takes seconds from 0 to ${LONGEST_WAIT_S}, not ${wait}.`;
  }
  return {
    backend,
    session: invocation.text('session'),
    model: invocation.text('model'),
    class: turnClass,
    waitMs: waitS * 1000,
    supervise: invocation.flag('supervise'),
    command: invocation.positionals,
  };
}

function commandEnv(turn: Turn): Record<string, string | undefined> {
  const env: Record<string, string | undefined> = { ...process.env };
  // `build/landlord` sets this for its own start; the command must not write into our cache.
  if (env.NODE_COMPILE_CACHE === compileCacheDir()) delete env.NODE_COMPILE_CACHE;
  if (turn.kind === 'held' || turn.kind === 'nested') return { ...env, ...turn.env };
  // A turn without its lane must not pass as one that has it.
  if (turn.kind === 'open') delete env[TURN_VARIABLE];
  return env;
}

/** Also for a turn without a lane: Node's signals and streams are to be put right all the same. */
function lockerOf(gate: Gate): Parameters<typeof become>[3] {
  const locker = gate.world.locker();
  return locker.ok ? locker.value : null;
}

function reportLine(report: GateReport): string {
  return `landlord turn: ${plain(report.message)}`;
}
