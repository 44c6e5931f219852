/**
 * The parts of Electron that the shell uses, as it exports them. They come in as an argument, so that
 * the shell is tested where Electron's program is not there.
 */
import type { App, BrowserWindow, BrowserWindowConstructorOptions, Dialog, Menu, Session } from 'electron';

export type ShellApp = Pick<
  App,
  | 'requestSingleInstanceLock'
  | 'disableHardwareAcceleration'
  | 'enableSandbox'
  | 'whenReady'
  | 'quit'
  | 'exit'
  | 'on'
>;

export type ShellWindow = Pick<
  BrowserWindow,
  'loadURL' | 'show' | 'focus' | 'isMinimized' | 'restore' | 'once' | 'on' | 'destroy'
>;

export interface ElectronParts {
  readonly app: ShellApp;
  createWindow(options: BrowserWindowConstructorOptions): ShellWindow;
  readonly session: { fromPartition(partition: string): PermissionSession };
  readonly dialog: Pick<Dialog, 'showErrorBox'>;
  readonly menu: Pick<typeof Menu, 'setApplicationMenu'>;
}

export type PermissionSession = Pick<
  Session,
  'setPermissionRequestHandler' | 'setPermissionCheckHandler' | 'setDevicePermissionHandler'
>;
