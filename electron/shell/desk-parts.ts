/**
 * The parts of Electron that the tray, the notifications and the power watch use, as it exports them.
 * They come in as an argument: see electron-parts.ts.
 */
import type {
  App,
  Clipboard,
  Dialog,
  Menu,
  Notification,
  NotificationConstructorOptions,
  PowerMonitor,
  PowerSaveBlocker,
  Shell,
  Tray,
} from 'electron';

export type ShellTray = Pick<Tray, 'setImage' | 'setToolTip' | 'setContextMenu'>;
export type ShellNotification = Pick<Notification, 'show' | 'close' | 'on'>;

export interface DeskElectron {
  /** `image`: the path of a picture. */
  createTray(image: string): ShellTray;
  createNotification(options: NotificationConstructorOptions): ShellNotification;
  readonly menu: Pick<typeof Menu, 'buildFromTemplate'>;
  readonly clipboard: Pick<Clipboard, 'writeText'>;
  readonly openExternal: Shell['openExternal'];
  readonly dialog: Pick<Dialog, 'showMessageBox'>;
  readonly powerMonitor: Pick<PowerMonitor, 'on'>;
  readonly powerSaveBlocker: Pick<PowerSaveBlocker, 'start' | 'stop'>;
  readonly loginItems: Pick<App, 'getLoginItemSettings' | 'setLoginItemSettings'>;
}
