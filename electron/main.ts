/** Electron's entry: the shell around a runtime in this process. */
import { join } from 'node:path';
import {
  app,
  BrowserWindow,
  clipboard,
  dialog,
  ipcMain,
  Menu,
  Notification,
  powerMonitor,
  powerSaveBlocker,
  protocol,
  session,
  shell,
  Tray,
} from 'electron';
import { APP_ID } from '../shared/app-id.ts';
import { messageOf } from '../shared/errors.ts';
import { startShell } from './shell/app.ts';
import { HIDDEN_SWITCH } from './shell/autostart.ts';
import { findNode } from './shell/own-node.ts';
import { makeRealDesk } from './shell/real-desk.ts';
import { choiceFrom, realParts } from './shell/real-source.ts';
import { connectRuntime } from './shell/runtime-source.ts';

// Everything the runtime starts (the sampler, the reaper, the config reader) it starts with
// `process.execPath`, and in here that is Electron, which runs no scripts. They are for Node.
const node = findNode({ appPath: app.getAppPath(), resourcesPath: process.resourcesPath });
if (node.ok) process.execPath = node.value;

// As the installer writes it into the shortcut: Windows shows no notification of another id.
if (process.platform === 'win32') app.setAppUserModelId(APP_ID);

// Not awaited: Electron becomes ready only once this module has run to its end.
startShell({
  electron: {
    app,
    createWindow: (options) => new BrowserWindow(options),
    session,
    dialog,
    menu: Menu,
    protocol,
    ipcMain,
    shell,
  },
  connect: async () => {
    if (!node.ok) return node;
    const choice = choiceFrom(process.argv.slice(1));
    return choice.ok ? connectRuntime(realParts, choice.value) : choice;
  },
  makeDesk: (host) =>
    makeRealDesk(
      {
        electron: {
          createTray: (image) => new Tray(image),
          createNotification: (options) => new Notification(options),
          menu: Menu,
          clipboard,
          openExternal: (address) => shell.openExternal(address),
          dialog,
          powerMonitor,
          powerSaveBlocker,
          loginItems: app,
        },
        iconDir: join(import.meta.dirname, '..', 'icons'),
        electronPath: app.getPath('exe'),
        appPath: app.isPackaged ? null : app.getAppPath(),
      },
      host,
    ),
  hidden: process.argv.includes(HIDDEN_SWITCH),
  // Beside the bundle this file is part of.
  pageDir: join(import.meta.dirname, '..', 'renderer'),
  preloadPath: join(import.meta.dirname, '..', 'preload.cjs'),
}).catch((error: unknown) => {
  dialog.showErrorBox('VRAM Landlord', `It could not start: ${messageOf(error)}`);
  app.exit(1);
});
