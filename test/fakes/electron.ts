/**
 * A stand-in for Electron, typed by its own declarations: records what the shell asks of it, and lets a
 * test play the person and the system. Electron's program is not needed.
 */
import { EventEmitter } from 'node:events';
import type { BrowserWindowConstructorOptions, CustomScheme, Event, IpcMain, Protocol } from 'electron';
import type {
  ElectronParts,
  PermissionSession,
  ShellApp,
  ShellWindow,
} from '../../electron/shell/electron-parts.ts';
import type { FencedContents } from '../../electron/shell/fence.ts';
import type { IpcContents } from '../../electron/shell/ipc.ts';
import type { SenderEvent } from '../../electron/shell/ipc-sender.ts';
import { PAGE_URL } from '../../electron/shell/protocol.ts';

/** An event as far as the shell looks at it. */
export function fakeEvent(): Event & { readonly prevented: boolean } {
  let prevented = false;
  return {
    get prevented() {
      return prevented;
    },
    get defaultPrevented() {
      return prevented;
    },
    preventDefault: () => {
      prevented = true;
    },
  };
}

type PermissionHandler = Parameters<PermissionSession['setPermissionRequestHandler']>[0];
type CheckHandler = Parameters<PermissionSession['setPermissionCheckHandler']>[0];
type DeviceHandler = Parameters<PermissionSession['setDevicePermissionHandler']>[0];
type OpenHandler = Parameters<FencedContents['setWindowOpenHandler']>[0];

export class FakeContents extends EventEmitter {
  openHandler: OpenHandler | null = null;
  setWindowOpenHandler(handler: OpenHandler): void {
    this.openHandler = handler;
  }
  /** Whether the page may go there by this event. */
  goes(
    event: 'will-navigate' | 'will-redirect' | 'will-frame-navigate',
    url: string,
    isMainFrame = true,
  ): boolean {
    const details = Object.assign(fakeEvent(), { url, isMainFrame });
    this.emit(event, details, url);
    return !details.defaultPrevented;
  }
}

type IpcHandler = Parameters<IpcMain['handle']>[1];
type RequestHandler = Parameters<Protocol['handle']>[1];

/** The window's contents as main sees them: what is sent to the page is kept, or carried to one. */
export class FakeWindowContents implements IpcContents {
  readonly id: number;
  readonly sent: { readonly channel: string; readonly args: readonly unknown[] }[] = [];
  carry: ((channel: string, ...args: readonly unknown[]) => void) | null = null;
  destroyed = false;
  constructor(id: number) {
    this.id = id;
  }
  send(channel: string, ...args: readonly unknown[]): void {
    this.sent.push({ channel, args });
    this.carry?.(channel, ...args);
  }
  isDestroyed(): boolean {
    return this.destroyed;
  }
}

/** ipcMain: what it handles, and a page to ask it. */
export class FakeIpcMain implements Pick<IpcMain, 'handle'> {
  readonly handlers = new Map<string, IpcHandler>();
  handle(channel: string, listener: IpcHandler): void {
    if (this.handlers.has(channel))
      throw new Error(`Attempted to register a second handler for '${channel}'`);
    this.handlers.set(channel, listener);
  }
  /** As ipcRenderer.invoke: both ways through structured clone. */
  async invoke(event: SenderEvent, channel: string, ...args: readonly unknown[]): Promise<unknown> {
    const handler = this.handlers.get(channel);
    if (handler === undefined) throw new Error(`No handler registered for '${channel}'`);
    const answer: unknown = await Reflect.apply(handler, null, [event, ...structuredClone(args)]);
    return structuredClone(answer);
  }
}

let nextContentsId = 1;

export class FakeWindow extends EventEmitter {
  readonly webContents = new FakeWindowContents(nextContentsId++);
  readonly options: BrowserWindowConstructorOptions;
  readonly loaded: string[] = [];
  readonly calls: string[] = [];
  minimized = false;
  focused = false;
  loadFails = false;
  constructor(options: BrowserWindowConstructorOptions) {
    super();
    this.options = options;
  }
  async loadURL(url: string): Promise<void> {
    this.loaded.push(url);
    if (this.loadFails) throw new Error('ERR_CONNECTION_REFUSED');
    this.emit('ready-to-show');
  }
  isMinimized(): boolean {
    return this.minimized;
  }
  minimize(): void {
    this.calls.push('minimize');
    this.minimized = true;
  }
  restore(): void {
    this.calls.push('restore');
  }
  show(): void {
    this.calls.push('show');
  }
  focus(): void {
    this.calls.push('focus');
  }
  destroy(): void {
    this.webContents.destroyed = true;
    this.emit('closed');
  }
  /** An event as the window's page causes it, in its top frame. */
  sender(change: Partial<SenderEvent> = {}): SenderEvent {
    return { sender: this.webContents, senderFrame: { parent: null, url: PAGE_URL }, ...change };
  }
}

export interface FakeElectron extends ElectronParts {
  /** What was asked of the app, in order. */
  readonly calls: string[];
  readonly windows: FakeWindow[];
  readonly errors: string[];
  readonly menus: unknown[];
  readonly ipcMain: FakeIpcMain;
  /** Addresses that were opened outside. */
  readonly openedOutside: string[];
  readonly schemes: CustomScheme[];
  /** Handlers of `partition scheme`. */
  readonly served: Map<string, RequestHandler>;
  /** By partition. */
  readonly permissions: Map<
    string,
    { request: PermissionHandler; check: CheckHandler; device: DeviceHandler }
  >;
  ready(): void;
  emit(event: string, ...args: readonly unknown[]): void;
  /** A new page, as Electron announces it. */
  createContents(): FakeContents;
  /** Closes the last window as a person does; like Electron, tells when none is left. */
  closeWindow(): void;
  /** Plays a quit to its end; false when it was taken back. */
  quits(): boolean;
}

export function createFakeElectron(
  options: { readonly lock?: boolean; readonly switches?: readonly string[] } = {},
): FakeElectron {
  const events = new EventEmitter();
  const calls: string[] = [];
  const windows: FakeWindow[] = [];
  const errors: string[] = [];
  const menus: unknown[] = [];
  const openedOutside: string[] = [];
  const schemes: CustomScheme[] = [];
  const served: FakeElectron['served'] = new Map();
  const permissions: FakeElectron['permissions'] = new Map();
  const { promise: whenReady, resolve: becomeReady } = Promise.withResolvers<void>();

  const on: ShellApp['on'] = Object.assign((event: string, listener: (...args: unknown[]) => void) => {
    events.on(event, listener);
    return fake.app;
  });
  const fake: FakeElectron = {
    calls,
    windows,
    errors,
    menus,
    openedOutside,
    schemes,
    served,
    permissions,
    ipcMain: new FakeIpcMain(),
    protocol: { registerSchemesAsPrivileged: (list) => void schemes.push(...list) },
    shell: {
      openExternal: async (address) => {
        openedOutside.push(address);
      },
    },
    app: {
      requestSingleInstanceLock: () => {
        calls.push('lock');
        return options.lock ?? true;
      },
      disableHardwareAcceleration: () => void calls.push('no acceleration'),
      commandLine: { hasSwitch: (name) => options.switches?.includes(name) ?? false },
      enableSandbox: () => void calls.push('sandbox'),
      whenReady: () => whenReady,
      quit: () => void calls.push('quit'),
      exit: (code) => void calls.push(`exit ${code ?? 0}`),
      on,
    },
    createWindow: (windowOptions) => {
      const window = new FakeWindow(windowOptions);
      windows.push(window);
      return asShellWindow(window);
    },
    session: {
      fromPartition: (partition) => {
        const kept = { request: null, check: null, device: null } as {
          request: PermissionHandler;
          check: CheckHandler;
          device: DeviceHandler;
        };
        permissions.set(partition, kept);
        return {
          protocol: {
            handle: (scheme, handler) => void served.set(`${partition} ${scheme}`, handler),
          },
          setPermissionRequestHandler: (handler) => {
            kept.request = handler;
          },
          setPermissionCheckHandler: (handler) => {
            kept.check = handler;
          },
          setDevicePermissionHandler: (handler) => {
            kept.device = handler;
          },
        };
      },
    },
    dialog: { showErrorBox: (_title, text) => void errors.push(text) },
    menu: { setApplicationMenu: (menu) => void menus.push(menu) },
    ready: () => {
      calls.push('ready');
      becomeReady();
    },
    emit: (event, ...args) => void events.emit(event, ...args),
    createContents: () => {
      const contents = new FakeContents();
      events.emit('web-contents-created', fakeEvent(), contents);
      return contents;
    },
    closeWindow: () => {
      const event = fakeEvent();
      windows.at(-1)?.emit('close', event);
      if (event.prevented) return;
      windows.at(-1)?.destroy();
      events.emit('window-all-closed');
    },
    quits: () => {
      const event = fakeEvent();
      events.emit('before-quit', fakeEvent());
      for (const window of windows.filter((one) => !one.webContents.destroyed)) {
        const closing = fakeEvent();
        window.emit('close', closing);
        if (closing.prevented) return false;
        window.destroy();
      }
      events.emit('will-quit', event);
      return !event.prevented;
    },
  };
  return fake;
}

/** An emitter's `on` takes any event; the window's declared one is a list of known ones. */
function asShellWindow(window: FakeWindow): ShellWindow {
  const parts: Omit<ShellWindow, 'on' | 'once'> = {
    webContents: window.webContents,
    loadURL: (url) => window.loadURL(url),
    show: () => window.show(),
    focus: () => window.focus(),
    isFocused: () => window.focused,
    isMinimized: () => window.isMinimized(),
    minimize: () => window.minimize(),
    restore: () => window.restore(),
    destroy: () => window.destroy(),
  };
  return Object.assign(Object.create(window), parts);
}
