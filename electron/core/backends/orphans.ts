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

function objection(process: ProcessFacts, living: readonly ProcessFacts[]): string | null {
  const command = process.command ?? [];
  const parent = living.find((one) => one.pid === process.parentPid);
  const isOlder = parent !== undefined && parent.startTimeTicks <= process.startTimeTicks;
  if (process.routerPort !== null && serverProgram(command) === 'llama-server') {
    if (isOlder && serverProgram(parent.command ?? []) === 'llama-server') return null;
    return `the llama.cpp router on port ${process.routerPort} that started it is gone`;
  }
  if (!isModelRunner(command)) return null;
  if (isOlder && serverProgram(parent.command ?? []) === 'ollama') return null;
  return 'the Ollama that started it is gone';
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
