import { basename } from 'node:path/posix';
import type { ProcessFacts } from '../../process/identity.ts';
import { serverProgram } from '../../process/programs.ts';
import type { Found } from './prove-kind.ts';

export interface ServerCheck {
  readonly name: string;
  readonly outcome: 'ok' | 'failed' | 'skipped';
  /** Sentences; the first says the result. */
  readonly detail: readonly string[];
}

/** What can be seen of this machine's processes. */
export interface Seen {
  /** Server processes, with what can be read of them; null: processes can't be listed here. */
  readonly processes: readonly ProcessFacts[] | null;
  /** Whoever listens on a port, server or not; left out: only `processes` are known. */
  readonly listeners?: (port: number) => readonly ProcessFacts[];
}

/** A port where a server is looked for, and something else is; none where nothing listens. */
export function inTheWay(
  port: number,
  found: Exclude<Found, { type: 'server' }>,
  seen: Seen,
): readonly ServerCheck[] {
  if (found.type === 'silent' && found.why === 'nothing') return [];
  const name = `port ${port}`;
  const who = whoListens(port, seen);
  if (found.type === 'loading')
    return [{ name, outcome: 'skipped', detail: [`${who} is loading its model: ask again when it has.`] }];
  const programs = listenersOn(port, seen).flatMap((one) => serverProgram(one.command ?? []) ?? []);
  const late =
    found.type === 'silent'
      ? 'takes connections and gives no answer'
      : found.wantsKey
        ? 'wants a key before it says what it is'
        : 'answers as none of the servers we know';
  if (programs.includes('lmstudio') && HOMES[port] !== 'LM Studio') {
    // Its window talks to its helpers over ports of their own.
    const detail = [`${who} is there, and its server is off: \`lms server start\` starts it.`];
    return [{ name: 'LM Studio', outcome: 'skipped', detail }];
  }
  if (programs.length > 0) {
    const advice =
      found.type === 'silent'
        ? 'it hangs, or is still starting: look at its log.'
        : 'name it in the config as a backend, with its kind and apiKeyEnv, to have it watched.';
    return [{ name, outcome: 'failed', detail: [`${who} ${late}: ${advice}`] }];
  }
  const home = HOMES[port];
  const blocked =
    home === undefined ? [] : [`${home} can not start there while that has the port: give it another one.`];
  return [{ name, outcome: 'skipped', detail: [`${who} ${late}: it is left alone.`, ...blocked] }];
}

/** Who is at home where. */
const HOMES: Readonly<Record<number, string>> = {
  1234: 'LM Studio',
  8000: 'vLLM, or an older Lemonade,',
  8080: 'llama-server, or llama-swap,',
  11434: 'Ollama',
  13305: 'Lemonade',
};

/** Servers that listen nowhere: still starting, or stuck. What another of them started is its own affair. */
export function deaf(processes: readonly ProcessFacts[]): readonly ServerCheck[] {
  const pids = new Set(processes.map((process) => process.pid));
  return processes
    .filter(
      (one) =>
        one.state !== 'Z' &&
        one.listeningPorts?.length === 0 &&
        one.routerPort === null &&
        !pids.has(one.parentPid) &&
        SERVES.test(serverProgram(one.command ?? []) ?? ''),
    )
    .map((one) => ({
      name: `process ${one.pid}`,
      outcome: 'skipped',
      detail: [`${nameOf(one)} listens on no port here: it is starting, hangs, or is no server.`],
    }));
}

/** Programs that do nothing but serve; `ollama` and `lms` are also what people type. */
const SERVES = /^(?:llama-server|llama-swap)$/;

function listenersOn(port: number, { listeners, processes }: Seen): readonly ProcessFacts[] {
  const all = listeners?.(port) ?? processes ?? [];
  return all.filter((one) => one.state !== 'Z' && one.listeningPorts?.includes(port) === true);
}

export function pidsOn(port: number, seen: Seen): readonly number[] {
  return listenersOn(port, seen).map((one) => one.pid);
}

/** As a clause's subject: `process 42 (nginx)`. */
export function whoListens(port: number, seen: Seen): string {
  const [one, ...others] = listenersOn(port, seen);
  if (one === undefined) return "a program that can not be seen from here (another user's, or a container's)";
  return others.length === 0 ? nameOf(one) : `${nameOf(one)} with ${others.length} more`;
}

function nameOf({ pid, command }: ProcessFacts): string {
  return `process ${pid} (${basename(command?.[0] ?? 'unknown')})`;
}
