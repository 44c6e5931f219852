/**
 * Starting with the desktop session. On Linux an entry in the user's autostart folder (freedesktop's
 * Desktop Application Autostart specification); elsewhere Electron's login item, which Linux has not.
 */
import { readFile, unlink } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { APP_ID } from '../../shared/app-id.ts';
import { fail, messageOf, ok, type Result } from '../../shared/errors.ts';
import { makeFolders } from '../core/make-folders.ts';
import { isErrno, replaceFile } from '../core/state-dir/atomic-file.ts';
import type { DeskElectron } from './desk-parts.ts';

export interface Autostart {
  isOn(): Promise<boolean>;
  /** Errors: `storage_failed`, with what to do. */
  set(on: boolean): Promise<Result<null>>;
}

export const AUTOSTART_FILE = `${APP_ID}.desktop`;
/** Started at login it shows no window where the tray does. */
export const HIDDEN_SWITCH = '--hidden';

/** The command that starts the app: an AppImage is itself, an unpacked Electron needs the app's folder. */
export function startCommand(places: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly electronPath: string;
  /** null when packaged. */
  readonly appPath: string | null;
}): readonly string[] {
  const appImage = places.env.APPIMAGE;
  if (appImage !== undefined && isAbsolute(appImage)) return [appImage, HIDDEN_SWITCH];
  return [places.electronPath, ...(places.appPath === null ? [] : [places.appPath]), HIDDEN_SWITCH];
}

export function autostartPath(env: Readonly<Record<string, string | undefined>>, home: string): string {
  const set = env.XDG_CONFIG_HOME;
  const base = set !== undefined && isAbsolute(set) ? set : join(home, '.config');
  return join(base, 'autostart', AUTOSTART_FILE);
}

export function desktopEntry(command: readonly string[]): string {
  return [
    '[Desktop Entry]',
    'Type=Application',
    'Name=VRAM Landlord',
    'Comment=Guards the memory that local models, agents and the desktop share',
    `Exec=${command.map(quoteExec).join(' ')}`,
    'Terminal=false',
    'X-GNOME-Autostart-enabled=true',
    '',
  ].join('\n');
}

/**
 * One argument of an Exec line: quoted, with the four characters that keep a meaning inside quotes
 * escaped, once more for the string the line is in, `%` doubled, and line breaks written out (Desktop Entry
 * specification, §4 and §7).
 */
export function quoteExec(argument: string): string {
  const escaped = argument
    .replaceAll(/(["`$\\])/g, '\\$1')
    .replaceAll('\\', '\\\\')
    .replaceAll('%', '%%')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r');
  return `"${escaped}"`;
}

/** Off where the entry is gone, hidden, or turned off by the desktop's own settings. */
export function isEntryOn(text: string): boolean {
  const value = (key: string): string | null =>
    new RegExp(`^${key}\\s*=\\s*(.*?)\\s*$`, 'm').exec(text)?.[1] ?? null;
  return value('Hidden') !== 'true' && value('X-GNOME-Autostart-enabled') !== 'false';
}

export function linuxAutostart(path: string, command: readonly string[]): Autostart {
  return {
    async isOn() {
      try {
        return isEntryOn(await readFile(path, 'utf8'));
      } catch {
        return false;
      }
    },
    async set(on) {
      try {
        if (on) {
          makeFolders(dirname(path), 0o700);
          await replaceFile(path, desktopEntry(command), 0o644);
        } else await unlink(path);
        return ok(null);
      } catch (error) {
        if (!on && isErrno(error, 'ENOENT')) return ok(null);
        return fail(
          'storage_failed',
          `${path} could not be ${on ? 'written' : 'removed'}: ${messageOf(error)}. Check who owns that folder.`,
        );
      }
    },
  };
}

export function loginItem(items: DeskElectron['loginItems']): Autostart {
  return {
    isOn: async () => items.getLoginItemSettings().openAtLogin,
    async set(on) {
      items.setLoginItemSettings({ openAtLogin: on, args: [HIDDEN_SWITCH] });
      return ok(null);
    },
  };
}
