import type { ProcessFacts, ProcessIdentity } from '../process/identity.ts';
import { isModelRunner, serverProgram } from '../process/programs.ts';

/** A model's process whose own server is gone, so that nobody serves through it or will ever end it. */
export interface Orphan {
  readonly facts: ProcessFacts;
  /** What proves it, as a clause. */
  readonly why: string;
}

/**
 * Pure. Only what is proven counts: a router's child names its router's port in its environment, an Ollama
 * runner is one by its command line; each is an orphan where its parent is no such server any more. A
 * server that stands by itself may be somebody's service, whoever its parent is: it is none.
 */
export function orphansAmong(processes: readonly ProcessFacts[]): readonly Orphan[] {
  const living = processes.filter((process) => process.state !== 'Z' && process.state !== 'X');
  return living.flatMap((process) => {
    const why = objection(process, living);
    return why === null ? [] : [{ facts: process, why }];
  });
}

/**
 * Pure. Servers of one model that belong to nobody known here: what started them is gone (an app that
 * crashed, a terminal that was closed), no service keeps them, and no backend listens where they do. Somebody
 * may still use one, so that it is shown and only ever ended by a person. `knownPorts`: of all backends.
 */
export function straysAmong(
  processes: readonly ProcessFacts[],
  knownPorts: ReadonlySet<number>,
): readonly Orphan[] {
  const orphans = new Set(orphansAmong(processes).map(({ facts }) => facts.pid));
  return processes.flatMap((facts) => {
    const { command, listeningPorts, state } = facts;
    if (facts.isAlone !== true || state === 'Z' || state === 'X' || orphans.has(facts.pid)) return [];
    // Whose ports can't be read, or who has none yet, may be anybody's.
    if (command === null || listeningPorts === null || listeningPorts.length === 0) return [];
    const isServer = serverProgram(command) === 'llama-server' || isModelRunner(command);
    if (!isServer || listeningPorts.some((port) => knownPorts.has(port))) return [];
    const why = `what started it is gone, and no server known here is at port ${listeningPorts.join(', ')}`;
    return [{ facts, why }];
  });
}

function objection(process: ProcessFacts, living: readonly ProcessFacts[]): string | null {
  const command = process.command ?? [];
  const parent = living.find((one) => one.pid === process.parentPid);
  const isOlder = parent !== undefined && parent.startTimeTicks <= process.startTimeTicks;
  if (process.routerPort !== null && serverProgram(command) === 'llama-server') {
    if (isOlder && serverProgram(parent.command ?? []) === 'llama-server') return null;
    return `the llama.cpp router on port ${process.routerPort} that started it is gone`;
  }
  if (!isModelRunner(command) && !isOfOllama(command)) return null;
  if (isOlder && serverProgram(parent.command ?? []) === 'ollama') return null;
  return 'the Ollama that started it is gone';
}

/** Newer releases of Ollama run a llama-server of their own, beside their other libraries. */
function isOfOllama(command: readonly string[]): boolean {
  return serverProgram(command) === 'llama-server' && /\/ollama\//.test(command[0] ?? '');
}

/** For a proven end; null: it listens nowhere, or its command can't be read, so it can't be proven again. */
export function orphanIdentity({ facts }: Orphan): ProcessIdentity | null {
  const [port] = facts.listeningPorts ?? [];
  if (port === undefined || facts.command === null) return null;
  return {
    pid: facts.pid,
    startTimeTicks: facts.startTimeTicks,
    command: facts.command,
    port,
    parentPid: facts.parentPid,
    parentStartTimeTicks: facts.parentStartTimeTicks,
  };
}
