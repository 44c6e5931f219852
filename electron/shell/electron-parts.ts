/**
 * The parts of Electron that the shell uses, as it exports them. They come in as an argument, so that
 * the shell is tested where Electron's program is not there.
 */
import type {
  App,
  BrowserWindow,
  BrowserWindowConstructorOptions,
  Dialog,
  IpcMain,
  Menu,
  Protocol,
  Session,
  Shell,
} from 'electron';
import type { IpcContents } from './ipc.ts';

export type ShellApp = Pick<
  App,
  | 'requestSingleInstanceLock'
  | 'disableHardwareAcceleration'
  | 'enableSandbox'
  | 'whenReady'
  | 'quit'
  | 'exit'
  | 'on'
> & { readonly commandLine: Pick<App['commandLine'], 'hasSwitch'> };

export type ShellWindow = Pick<
  BrowserWindow,
  | 'loadURL'
  | 'show'
  | 'focus'
  | 'isFocused'
  | 'isMinimized'
  | 'minimize'
  | 'restore'
  | 'once'
  | 'on'
  | 'destroy'
> & { readonly webContents: IpcContents };

export interface ElectronParts {
  readonly app: ShellApp;
  createWindow(options: BrowserWindowConstructorOptions): ShellWindow;
  readonly session: { fromPartition(partition: string): PageSession };
  readonly protocol: Pick<Protocol, 'registerSchemesAsPrivileged'>;
  readonly ipcMain: Pick<IpcMain, 'handle'>;
  readonly shell: Pick<Shell, 'openExternal'>;
  readonly dialog: Pick<Dialog, 'showErrorBox'>;
  readonly menu: Pick<typeof Menu, 'setApplicationMenu'>;
}

export type PermissionSession = Pick<
  Session,
  'setPermissionRequestHandler' | 'setPermissionCheckHandler' | 'setDevicePermissionHandler'
>;

export type PageSession = PermissionSession & { readonly protocol: Pick<Protocol, 'handle'> };
