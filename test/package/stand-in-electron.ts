/**
 * The module 'electron' for the packed main process where Electron's program is not there: plain Node
 * runs `main.js`, and this plays the system. Once the window is open it asks as the page would and
 * prints, as one line of JSON, what came of it; then it quits. Its types are Electron's own; they are
 * stripped before it is put beside the package.
 */
import { EventEmitter } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type * as Electron from 'electron';

const appPath = join(dirname(process.argv[1] ?? ''), '..', '..');
Object.assign(process, { resourcesPath: dirname(appPath) });

const handlers = new Map<string, Parameters<Electron.IpcMain['handle']>[1]>();
const pushed: { readonly channel: string; readonly value: Record<string, unknown> }[] = [];
const events = new EventEmitter();
let servePage: Parameters<Electron.Protocol['handle']>[1] | null = null;

const parts: Pick<
  Electron.App,
  | 'requestSingleInstanceLock'
  | 'disableHardwareAcceleration'
  | 'enableSandbox'
  | 'whenReady'
  | 'getAppPath'
  | 'getPath'
  | 'isPackaged'
  | 'getLoginItemSettings'
  | 'setLoginItemSettings'
  | 'quit'
  | 'exit'
> & { readonly commandLine: Pick<Electron.CommandLine, 'hasSwitch'> } = {
  requestSingleInstanceLock: () => true,
  disableHardwareAcceleration: () => {},
  enableSandbox: () => {},
  commandLine: { hasSwitch: () => false },
  whenReady: async () => {},
  getAppPath: () => appPath,
  getPath: () => join(dirname(appPath), '..', 'vram-landlord'),
  isPackaged: true,
  getLoginItemSettings: () => ({
    openAtLogin: false,
    openAsHidden: false,
    wasOpenedAtLogin: false,
    wasOpenedAsHidden: false,
    restoreState: false,
    status: 'not-registered',
    executableWillLaunchAtLogin: false,
    launchItems: [],
  }),
  setLoginItemSettings: () => {},
  quit() {
    let prevented = false;
    events.emit('will-quit', {
      preventDefault: () => {
        prevented = true;
      },
    });
    if (!prevented) process.exit(0);
  },
  exit: (code) => process.exit(code),
};
export const app = Object.assign(events, parts);

export class BrowserWindow
  extends EventEmitter
  implements
    Pick<
      Electron.BrowserWindow,
      'loadURL' | 'show' | 'focus' | 'isFocused' | 'isMinimized' | 'minimize' | 'restore'
    >
{
  readonly #preload: string;
  readonly webContents: Pick<Electron.WebContents, 'id' | 'send' | 'isDestroyed'> = {
    id: 1,
    send: (channel, text) => void pushed.push({ channel, value: JSON.parse(String(text)) }),
    isDestroyed: () => false,
  };
  constructor(options: Electron.BrowserWindowConstructorOptions) {
    super();
    this.#preload = options.webPreferences?.preload ?? '';
  }
  async loadURL(url: string): Promise<void> {
    const request = Object.create(Request.prototype, { url: { value: url }, method: { value: 'GET' } });
    const page = await servePage?.(request);
    await this.#ask(url, 'watch', {});
    for (let tries = 0; tries < 200 && !showsDevice(); tries += 1) await delay(50);
    const agent = await firstTurn();
    for (let tries = 0; tries < 200 && ownServer() === null; tries += 1) await delay(50);
    const found = await this.#ask(url, 'events', { afterId: null, limit: 50 });
    const saw = {
      url,
      pageStatus: page?.status,
      pageIsOurs: (await page?.text())?.includes('VRAM Landlord'),
      preloadThere: existsSync(this.#preload),
      agent,
      programs: ownPrograms(),
      server: ownServer(),
      devices: showsDevice(),
      link: pushed.find(({ channel }) => channel === 'landlord:push:link')?.value.kind,
      events: found,
    };
    process.stdout.write(`${JSON.stringify(saw)}\n`);
    setImmediate(() => app.quit());
  }
  /** As the page would, in the top frame. */
  #ask(url: string, name: string, args: object): Promise<unknown> {
    const handler = handlers.get(`landlord:call:${name}`);
    const event = { sender: this.webContents, senderFrame: { parent: null, url } };
    return handler === undefined ? Promise.resolve(null) : Reflect.apply(handler, null, [event, args]);
  }
  show(): void {}
  focus(): void {}
  isFocused(): boolean {
    return false;
  }
  isMinimized(): boolean {
    return false;
  }
  minimize(): void {}
  restore(): void {}
}

/** An agent of the embedded engine, as any program has one: over the ledger socket. */
function firstTurn(): Promise<readonly string[]> {
  const stateDir = process.argv[process.argv.indexOf('--state-dir') + 1] ?? '';
  const socket = connect(join(stateDir, 'landlord.sock'));
  let text = '';
  return new Promise((resolve) => {
    const done = (): void => {
      socket.destroy();
      resolve(text.split('\n').filter((line) => line.startsWith('OK invoke') || line.startsWith('ERR')));
    };
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (/^ERR|^END_RESPONSE/m.test(text)) done();
    });
    socket.on('error', (error) => {
      text += `ERR ${error.message}\n`;
    });
    socket.on('close', done);
    socket.write(`REGISTER smol\t${process.env.LANDLORD_TEST_MODEL}\nDECODE smol 4 hello\n`);
  });
}

/** Scripts that run below this process, and the program that runs each. */
function ownPrograms(): Readonly<Record<string, string>> {
  const parents = new Map<number, number>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const stat = of(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
    const parent = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
    if (parent !== undefined) parents.set(Number(pid), Number(parent));
  }
  const isOurs = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && (parent === process.pid || isOurs(parent));
  };
  return Object.fromEntries(
    [...parents.keys()].filter(isOurs).flatMap((pid) => {
      const args = of(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))?.split('\0') ?? [];
      const script = args.find((arg) => arg.endsWith('.js'));
      const program = of(() => readlinkSync(`/proc/${pid}/exe`));
      return script === undefined || program === null ? [] : [[basename(script), program]];
    }),
  );
}

/** null: it is gone. */
function of<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** The pid of the server that the config gives a command for. */
function ownServer(): unknown {
  const states = pushed.filter(({ channel }) => channel === 'landlord:push:state');
  const backends = states.at(-1)?.value.backends;
  const [first] = Array.isArray(backends) ? backends : [];
  return first?.own?.pid ?? null;
}

function showsDevice(): boolean {
  return pushed.some(
    ({ channel, value }) =>
      channel === 'landlord:push:state' && Array.isArray(value.devices) && value.devices.length > 0,
  );
}

export class Tray implements Pick<Electron.Tray, 'setImage' | 'setToolTip' | 'setContextMenu'> {
  setImage(): void {}
  setToolTip(): void {}
  setContextMenu(): void {}
}
export class Notification extends EventEmitter implements Pick<Electron.Notification, 'show' | 'close'> {
  show(): void {}
  close(): void {}
}
export const dialog: Pick<Electron.Dialog, 'showErrorBox' | 'showMessageBox'> = {
  showMessageBox: async () => ({ response: 0, checkboxChecked: false }),
  showErrorBox: (title, text) => void process.stderr.write(`${title}: ${text}\n`),
};
export const ipcMain: Pick<Electron.IpcMain, 'handle'> = {
  handle: (channel, handler) => void handlers.set(channel, handler),
};
export const protocol: Pick<Electron.Protocol, 'registerSchemesAsPrivileged'> = {
  registerSchemesAsPrivileged: () => {},
};
export const shell: Pick<Electron.Shell, 'openExternal'> = { openExternal: async () => {} };
export const clipboard = { writeText: () => {} };
export const powerMonitor = new EventEmitter();
export const powerSaveBlocker: Pick<Electron.PowerSaveBlocker, 'start' | 'stop'> = {
  start: () => 1,
  stop: () => true,
};
export const Menu = { setApplicationMenu: () => {}, buildFromTemplate: () => ({}) };
const pageProtocol: Pick<Electron.Protocol, 'handle'> = {
  handle: (_scheme, handler) => {
    servePage = handler;
  },
};
export const session = {
  fromPartition: () => ({
    setPermissionRequestHandler: () => {},
    setPermissionCheckHandler: () => {},
    setDevicePermissionHandler: () => {},
    protocol: pageProtocol,
  }),
};
