/** The desk on this machine: its files, its session bus, its way to keep awake. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { TrayIcon } from '../../shared/tray-icon.ts';
import { systemClock } from '../core/clock.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import type { DeskHost } from './app.ts';
import { openAppSettings } from './app-settings-file.ts';
import { type Autostart, autostartPath, linuxAutostart, loginItem, startCommand } from './autostart.ts';
import { Desk } from './desk.ts';
import type { DeskElectron } from './desk-parts.ts';
import { electronInhibitor, logindInhibitor } from './inhibitor.ts';
import { sessionBus } from './session-bus.ts';

export interface RealDeskOptions {
  readonly electron: DeskElectron;
  /** Where the build put the icons. */
  readonly iconDir: string;
  /** Electron's own program: `process.execPath` is Node's by then. */
  readonly electronPath: string;
  /** null when packaged. */
  readonly appPath: string | null;
}

export async function makeRealDesk(options: RealDeskOptions, host: DeskHost): Promise<Desk> {
  const { electron } = options;
  const isLinux = process.platform === 'linux';
  const paths = resolvePaths({ env: process.env, home: homedir(), cwd: process.cwd() });
  return new Desk({
    electron,
    source: host.source,
    baseUrl: () => {
      const url = host.source.url();
      return url === null ? null : `${url}/v1`;
    },
    settings: await openAppSettings(join(paths.configDir, 'app.json')),
    autostart: autostart(options),
    bus: isLinux ? sessionBus() : null,
    pid: process.pid,
    picture: (icon) => join(options.iconDir, 'tray', pictureName(icon, isLinux)),
    appIcon: join(options.iconDir, 'app', '256x256.png'),
    window: host.window,
    // A delay is logind's alone; the others let a program finish by themselves.
    makeInhibitor: (mode, onChange) =>
      isLinux
        ? logindInhibitor(mode, onChange)
        : electronInhibitor(mode === 'block' ? electron.powerSaveBlocker : NO_BLOCKER, onChange),
    quit: () => host.quit(),
    clock: systemClock,
  });
}

const NO_BLOCKER = { start: () => 0, stop: () => true };

/** A Linux panel scales one picture; elsewhere Electron picks among those beside the first. */
function pictureName(icon: TrayIcon, isLinux: boolean): string {
  return isLinux ? `${icon}-panel.png` : `${icon}.png`;
}

function autostart({ electron, electronPath, appPath }: RealDeskOptions): Autostart {
  return process.platform === 'linux'
    ? linuxAutostart(
        autostartPath(process.env, homedir()),
        startCommand({ env: process.env, electronPath, appPath }),
      )
    : loginItem(electron.loginItems);
}
