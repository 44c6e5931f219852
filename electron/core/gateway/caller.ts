import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { AgentSetting, Settings } from '../../../shared/settings.ts';
import { argvOf } from '../gate/inspect.ts';
import { bearerOf } from '../http/auth.ts';
import { peerOf } from './peers.ts';
import { programName } from './program-name.ts';

/** Who asks, by what is known without any configuration. */
export interface Caller {
  /** null: nothing tells, or it was not looked for. */
  readonly name: string | null;
  readonly from: 'header' | 'user' | 'key' | 'process' | 'nobody';
}

const LONGEST_NAME = 120;

/** The name a header, the body or the key gives; null: only the process can tell. */
export function statedCaller(
  request: IncomingMessage,
  user: string | null,
  agents: Settings['agents'],
): Caller | null {
  const session = one(request.headers['x-landlord-session'])?.trim();
  if (session !== undefined && session !== '')
    return { name: session.slice(0, LONGEST_NAME), from: 'header' };
  if (user !== null && user.trim() !== '') return { name: user.trim().slice(0, LONGEST_NAME), from: 'user' };
  // A key is a name only where the config has an agent of that name: any other is a secret.
  const key = bearerOf(request.headers.authorization) ?? one(request.headers['x-api-key']) ?? null;
  return key !== null && Object.hasOwn(agents, key) ? { name: key, from: 'key' } : null;
}

export interface CallingProcess {
  readonly pid: number | null;
  readonly name: string | null;
}

const processes = new WeakMap<Socket, Promise<CallingProcess>>();
const foundProcesses = new WeakMap<Socket, CallingProcess>();

/** The same where it has been found already, as for all but the first request of a connection; null: not yet. */
export function foundProcess(socket: Socket): CallingProcess | null {
  return foundProcesses.get(socket) ?? null;
}

/** The local process at the other end of a connection, looked for once a connection. */
export function callingProcess(socket: Socket): Promise<CallingProcess> {
  const known = processes.get(socket);
  if (known !== undefined) return known;
  const found = peerOf(socket).then((pid) => {
    const name = pid === null ? null : programName(argvOf(pid));
    const calling = { pid, name };
    foundProcesses.set(socket, calling);
    return calling;
  });
  processes.set(socket, found);
  return found;
}

/** An agent's own settings; `writer.py` is also the agent `writer`. */
export function agentSettingOf(name: string | null, settings: Settings): AgentSetting | null {
  if (name === null) return null;
  const { agents } = settings;
  if (Object.hasOwn(agents, name)) return agents[name] ?? null;
  const stem = name.replace(/\.[a-z]+$/, '');
  return Object.hasOwn(agents, stem) ? (agents[stem] ?? null) : null;
}

const TOLD_WAIT_MS = 3_600_000;
const OWN_WAIT_MS = 300_000;

function waitMs(told: boolean): number {
  return told ? TOLD_WAIT_MS : OWN_WAIT_MS;
}

export interface Conduct extends AgentSetting {
  /** How long it waits for memory; nobody's settings: while others' requests are what is in the way, a few minutes. */
  readonly memoryWaitMs: number;
  /** It waits whatever is in the way. */
  readonly toldToWait: boolean;
}

/**
 * Class and what to do when the lane is in use: the request's own word first, then the agent's
 * settings. Nobody's: interactive; its next fallback where there is one, else it waits as it would before the backend itself.
 */
export function conductOf(
  classHeader: string | string[] | undefined,
  setting: AgentSetting | null,
  hasFallbacks: boolean,
): Conduct {
  const stated = one(classHeader);
  const turnClass =
    stated === 'batch' || stated === 'interactive' ? stated : (setting?.class ?? 'interactive');
  const onBusy = setting?.onBusy ?? (turnClass === 'batch' ? 'wait' : hasFallbacks ? 'fallback' : 'wait');
  const toldToWait = setting?.onBusy === 'wait';
  return { class: turnClass, onBusy, toldToWait, memoryWaitMs: onBusy === 'wait' ? waitMs(toldToWait) : 0 };
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
