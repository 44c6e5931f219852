/**
 * The main process's end of the schema: one handler a call, and each call's sender and arguments
 * checked before anything is done. A refusal is an answer like any other; nothing is thrown at a page.
 */
import type { IpcMain, WebContents } from 'electron';
import { fail, messageOf, ok, type Result } from '../../shared/errors.ts';
import {
  type AnswerOf,
  CALL_NAMES,
  type CallName,
  type Calls,
  callChannel,
  type PushName,
  pushChannel,
  readArgs,
} from '../../shared/ipc-schema.ts';
import type { Command } from '../core/runtime-api.ts';
import { startFeed } from './ipc-feed.ts';
import { type SenderEvent, whyRefused } from './ipc-sender.ts';
import type { RuntimeSource } from './runtime-source.ts';

export type IpcContents = Pick<WebContents, 'id' | 'send' | 'isDestroyed'>;

export interface IpcOptions {
  readonly ipcMain: Pick<IpcMain, 'handle'>;
  /** null until there is a runtime: everything is refused then. */
  readonly source: () => RuntimeSource | null;
  /** The window's contents; null while there is no window. */
  readonly contents: () => IpcContents | null;
  readonly stateIntervalMs?: number;
}

export interface Ipc {
  /** Ends the pushes, for instance when the window is closed. */
  unwatch(): void;
}

export function serveIpc(options: IpcOptions): Ipc {
  let endFeed = (): void => {};
  const unwatch = (): void => {
    endFeed();
    endFeed = () => {};
  };
  const watch = (source: RuntimeSource, contents: IpcContents): void => {
    unwatch();
    endFeed = startFeed({
      api: source.api,
      link: () => source.link(),
      onLink: (listener) => source.onLink(listener),
      intervalMs: options.stateIntervalMs ?? 250,
      send: (name: PushName, json) => {
        if (contents.isDestroyed()) unwatch();
        else contents.send(pushChannel(name), json);
      },
    });
  };

  const answer = async <Name extends CallName>(
    name: Name,
    event: SenderEvent,
    raw: unknown,
  ): Promise<Result<AnswerOf<Name>>> => {
    const contents = options.contents();
    const refused = whyRefused(event, contents?.id ?? null);
    if (refused !== null) return fail('not_permitted', `The call ${name} is not answered: ${refused}.`);
    const args = readArgs(name, raw);
    if (!args.ok) return args;
    const source = options.source();
    if (source === null || contents === null) return fail('no_runtime', 'The runtime is still starting.');
    const calls: Calls = handlers(source, { watch: () => watch(source, contents), unwatch });
    try {
      return await calls[name](args.value);
    } catch (thrown) {
      return fail('internal', `The call ${name} failed inside VRAM Landlord: ${messageOf(thrown)}.`);
    }
  };
  for (const name of CALL_NAMES) {
    options.ipcMain.handle(callChannel(name), (event, ...args: unknown[]) =>
      // One argument is sent; more would get around its limits.
      answer(name, event, args.length === 1 ? args[0] : undefined),
    );
  }
  return { unwatch };
}

function handlers(source: RuntimeSource, feed: { watch(): void; unwatch(): void }): Calls {
  const command = (what: Command): ReturnType<Calls['wake']> => source.api.command(what);
  return {
    load: (args) => command({ type: 'load', ...args }),
    unload: (args) => command({ type: 'unload', ...args }),
    pin: (args) => command({ type: 'pin', ...args }),
    unpin: (args) => command({ type: 'unpin', ...args }),
    sleep: (args) => command({ type: 'sleep', ...args }),
    wake: () => command({ type: 'wake' }),
    drain: () => command({ type: 'drain' }),
    accept: (args) => command({ type: 'accept', ...args }),
    makeRoom: (args) => command({ type: 'makeRoom', ...args }),
    restore: () => command({ type: 'restore' }),
    guards: async (args) =>
      args.forMs !== null && args.mode !== 'pause'
        ? fail(
            'bad_input',
            `guards: forMs goes with mode "pause" only; "${args.mode}" stays until it is changed.`,
          )
        : command({ type: 'guards', ...args }),
    events: ({ afterId, limit }) => source.api.events({ limit, ...(afterId === null ? {} : { afterId }) }),
    plan: (args) => source.api.ask('plan', args),
    loadAnyway: (args) => source.api.ask('loadAnyway', args),
    history: (args) => source.api.ask('history', args),
    settings: (args) => source.api.ask('settings', args),
    checkSetting: (args) => source.api.ask('checkSetting', args),
    changeSetting: (args) => source.api.ask('changeSetting', args),
    replay: (args) => source.api.ask('replay', args),
    testTurn: (args) => source.api.ask('testTurn', args),
    addModel: (args) => source.api.ask('addModel', args),
    forgetAgent: (args) => source.api.ask('forgetAgent', args),
    observation: (args) => source.api.ask('observation', args),
    watch: async () => {
      feed.watch();
      return ok(null);
    },
    unwatch: async () => {
      feed.unwatch();
      return ok(null);
    },
    host: () => source.host(),
  };
}
