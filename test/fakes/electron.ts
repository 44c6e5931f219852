/**
 * A stand-in for Electron, typed by its own declarations: records what the shell asks of it, and lets a
 * test play the person and the system. Electron's program is not needed.
 */
import { EventEmitter } from 'node:events';
import type { BrowserWindowConstructorOptions, Event } from 'electron';
import type {
  ElectronParts,
  PermissionSession,
  ShellApp,
  ShellWindow,
} from '../../electron/shell/electron-parts.ts';
import type { FencedContents } from '../../electron/shell/fence.ts';

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

export class FakeWindow extends EventEmitter {
  readonly options: BrowserWindowConstructorOptions;
  readonly loaded: string[] = [];
  readonly calls: string[] = [];
  minimized = false;
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
    this.emit('closed');
  }
}

export interface FakeElectron extends ElectronParts {
  /** What was asked of the app, in order. */
  readonly calls: string[];
  readonly windows: FakeWindow[];
  readonly errors: string[];
  readonly menus: unknown[];
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

export function createFakeElectron(options: { readonly lock?: boolean } = {}): FakeElectron {
  const events = new EventEmitter();
  const calls: string[] = [];
  const windows: FakeWindow[] = [];
  const errors: string[] = [];
  const menus: unknown[] = [];
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
    permissions,
    app: {
      requestSingleInstanceLock: () => {
        calls.push('lock');
        return options.lock ?? true;
      },
      disableHardwareAcceleration: () => void calls.push('no acceleration'),
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
      windows.at(-1)?.destroy();
      events.emit('window-all-closed');
    },
    quits: () => {
      const event = fakeEvent();
      events.emit('will-quit', event);
      return !event.prevented;
    },
  };
  return fake;
}

/** An emitter's `on` takes any event; the window's declared one is a list of known ones. */
function asShellWindow(window: FakeWindow): ShellWindow {
  const parts: Omit<ShellWindow, 'on' | 'once'> = {
    loadURL: (url) => window.loadURL(url),
    show: () => window.show(),
    focus: () => window.focus(),
    isMinimized: () => window.isMinimized(),
    restore: () => window.restore(),
    destroy: () => window.destroy(),
  };
  return Object.assign(Object.create(window), parts);
}
