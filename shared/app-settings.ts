/**
 * What a person sets of the desktop app itself, from its tray. The runtime knows nothing of it: it is
 * kept by the app, apart from the config that several programs share.
 */

export interface QuietHours {
  /** Minutes after midnight, 0–1439, in the time zone of the machine. */
  readonly fromMinute: number;
  /** The first minute that is loud again. Before `fromMinute`: on the next day. */
  readonly toMinute: number;
}

export interface AppSettings {
  /** `needed`: only what cut a turn, or what a person has to see to. */
  readonly notifications: 'all' | 'needed' | 'none';
  readonly quietHours: QuietHours | null;
  /** What closing the window does where there is no tray to hide in. */
  readonly closeWithoutTray: 'quit' | 'minimize';
  readonly unloadBeforeSuspend: boolean;
  /** Load again what left for a game or a render, once that has ended. */
  readonly bringBack: boolean;
  /** Whether it was said once that closing the window only hides it. */
  readonly closeNoticeShown: boolean;
}

export const DEFAULT_APP_SETTINGS: AppSettings = {
  notifications: 'all',
  quietHours: null,
  closeWithoutTray: 'quit',
  unloadBeforeSuspend: false,
  bringBack: true,
  closeNoticeShown: false,
};

/** What "quiet at night" means in the menu; other hours are a matter of the file. */
export const NIGHT: QuietHours = { fromMinute: 22 * 60, toMinute: 7 * 60 };

/** Each value that is not of the right kind is its default, and the others stand. */
export function parseAppSettings(value: unknown): AppSettings {
  const fields: Readonly<Record<string, unknown>> =
    typeof value === 'object' && value !== null ? { ...value } : {};
  const flag = (key: 'unloadBeforeSuspend' | 'bringBack' | 'closeNoticeShown'): boolean => {
    const found = fields[key];
    return typeof found === 'boolean' ? found : DEFAULT_APP_SETTINGS[key];
  };
  const { notifications, closeWithoutTray } = fields;
  return {
    notifications:
      notifications === 'all' || notifications === 'needed' || notifications === 'none'
        ? notifications
        : DEFAULT_APP_SETTINGS.notifications,
    quietHours: parseQuietHours(fields.quietHours),
    closeWithoutTray:
      closeWithoutTray === 'quit' || closeWithoutTray === 'minimize'
        ? closeWithoutTray
        : DEFAULT_APP_SETTINGS.closeWithoutTray,
    unloadBeforeSuspend: flag('unloadBeforeSuspend'),
    bringBack: flag('bringBack'),
    closeNoticeShown: flag('closeNoticeShown'),
  };
}

function parseQuietHours(value: unknown): QuietHours | null {
  if (typeof value !== 'object' || value === null) return null;
  const { fromMinute, toMinute }: Readonly<Record<string, unknown>> = { ...value };
  return isMinute(fromMinute) && isMinute(toMinute) && fromMinute !== toMinute
    ? { fromMinute, toMinute }
    : null;
}

function isMinute(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 24 * 60;
}

/** Whether a moment (epoch ms, seen in the machine's time zone) lies in the quiet hours. */
export function isQuiet(hours: QuietHours | null, epochMs: number): boolean {
  if (hours === null) return false;
  const at = new Date(epochMs);
  const minute = at.getHours() * 60 + at.getMinutes();
  return hours.fromMinute < hours.toMinute
    ? minute >= hours.fromMinute && minute < hours.toMinute
    : minute >= hours.fromMinute || minute < hours.toMinute;
}
