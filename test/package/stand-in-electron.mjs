/**
 * The module 'electron' for the packed main process where Electron's program is not there: plain Node
 * runs `main.js`, and this plays the system. Once the window is open it asks as the page would and
 * prints, as one line of JSON, what came of it; then it quits.
 */
import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const appPath = join(dirname(process.argv[1] ?? ''), '..', '..');
Object.assign(process, { resourcesPath: dirname(appPath) });

const handlers = new Map();
const pushed = [];
const events = new EventEmitter();
const page = { scheme: null, handler: null };

export const app = Object.assign(events, {
  requestSingleInstanceLock: () => true,
  disableHardwareAcceleration: () => {},
  enableSandbox: () => {},
  commandLine: { hasSwitch: () => false },
  whenReady: async () => {},
  getAppPath: () => appPath,
  getPath: () => join(dirname(appPath), '..', 'vram-landlord'),
  isPackaged: true,
  getLoginItemSettings: () => ({ openAtLogin: false }),
  setLoginItemSettings: () => {},
  quit: () => {
    const event = {
      defaultPrevented: false,
      preventDefault: () => Object.assign(event, { defaultPrevented: true }),
    };
    events.emit('will-quit', event);
    if (!event.defaultPrevented) process.exit(0);
  },
  exit: (code) => process.exit(code),
});

export class BrowserWindow extends EventEmitter {
  constructor(options) {
    super();
    this.options = options;
    this.webContents = {
      id: 1,
      send: (channel, text) => pushed.push([channel, JSON.parse(text)]),
      isDestroyed: () => false,
    };
  }
  async loadURL(url) {
    const answer = await page.handler({ url, method: 'GET' });
    const ask = (name, args) =>
      handlers.get(`landlord:call:${name}`)(
        { sender: this.webContents, senderFrame: { parent: null, url } },
        args,
      );
    await ask('watch', {});
    const deviceShown = () =>
      pushed.some(([channel, value]) => channel === 'landlord:push:state' && value.devices.length > 0);
    for (let tries = 0; tries < 200 && !deviceShown(); tries += 1) await delay(50);
    const found = await ask('events', { afterId: null, limit: 50 });
    process.stdout.write(
      `${JSON.stringify({
        url,
        pageStatus: answer.status,
        pageIsOurs: (await answer.text()).includes('VRAM Landlord'),
        preloadThere: existsSync(this.options.webPreferences.preload),
        node: process.execPath,
        devices: deviceShown(),
        link: pushed.find(([channel]) => channel === 'landlord:push:link')?.[1].kind,
        events: found.ok ? found.value.map((event) => event.kind) : found.error.message,
      })}\n`,
    );
    setImmediate(() => app.quit());
  }
  show() {}
  focus() {}
  isFocused() {
    return false;
  }
  isMinimized() {
    return false;
  }
  minimize() {}
  restore() {}
  destroy() {}
}

export const dialog = {
  showMessageBox: async () => ({ response: 0, checkboxChecked: false }),
  showErrorBox: (title, text) => void process.stderr.write(`${title}: ${text}\n`),
};
export const ipcMain = { handle: (channel, handler) => void handlers.set(channel, handler) };
export const Menu = { setApplicationMenu: () => {}, buildFromTemplate: (template) => template };
export class Tray {
  setImage() {}
  setToolTip() {}
  setContextMenu() {}
}
export class Notification extends EventEmitter {
  show() {}
  close() {}
}
export const clipboard = { writeText: () => {} };
export const powerMonitor = new EventEmitter();
export const powerSaveBlocker = { start: () => 1, stop: () => true };
export const protocol = { registerSchemesAsPrivileged: () => {} };
export const session = {
  fromPartition: () => ({
    setPermissionRequestHandler: () => {},
    setPermissionCheckHandler: () => {},
    setDevicePermissionHandler: () => {},
    protocol: { handle: (scheme, handler) => Object.assign(page, { scheme, handler }) },
  }),
};
export const shell = { openExternal: async () => {} };
