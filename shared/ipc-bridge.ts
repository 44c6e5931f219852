/**
 * The API the preload gives the page, made from the schema over any transport: Electron's ipcRenderer,
 * or a stand-in that carries the same messages.
 */
import {
  CALL_NAMES,
  type CallName,
  type Calls,
  callChannel,
  PUSH_NAMES,
  type PushName,
  pushChannel,
} from './ipc-schema.ts';

/** As much of ipcRenderer as is used; a listener gets the text alone, never Electron's event. */
export interface BridgeTransport {
  invoke(channel: string, args: unknown): Promise<unknown>;
  /** Returns its own undo. */
  listen(channel: string, listener: (text: unknown) => void): () => void;
}

/** Each subscription returns its own undo; what comes is JSON text of the push's type. */
export type Subscriptions = {
  readonly [Name in PushName]: (listener: (json: string) => void) => () => void;
};

export interface Bridge {
  readonly call: Calls;
  readonly on: Subscriptions;
}

/** The name under `window`. */
export const BRIDGE_NAME = 'landlord';

export function makeBridge(transport: BridgeTransport): Bridge {
  const send = (name: CallName, args: unknown): Promise<unknown> => transport.invoke(callChannel(name), args);
  const listen = (name: PushName, listener: (json: string) => void): (() => void) =>
    transport.listen(pushChannel(name), (text) => {
      if (typeof text === 'string') listener(text);
    });
  return {
    // The main process answers each call with its own Result: the page and it come from one build.
    call: record(CALL_NAMES, (name) => (args: unknown) => send(name, args)) as Calls,
    on: record(PUSH_NAMES, (name) => (listener: (json: string) => void) => listen(name, listener)),
  };
}

function record<Name extends string, T>(names: readonly Name[], make: (name: Name) => T): Record<Name, T> {
  const made: Partial<Record<Name, T>> = {};
  for (const name of names) made[name] = make(name);
  return made as Record<Name, T>;
}
