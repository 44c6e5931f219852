/** What a person sets of the app from its tray. Pure. */
import { type AppSettings, NIGHT, type QuietHours } from './app-settings.ts';
import { item, line, type MenuEntry, submenu } from './tray-entry.ts';

export function settingsMenu(settings: AppSettings): MenuEntry {
  const radio = (id: string, label: string, checked: boolean, change: Partial<AppSettings>): MenuEntry => ({
    kind: 'radio',
    id,
    label,
    checked,
    action: { type: 'set', change },
  });
  const check = (id: string, label: string, checked: boolean, change: Partial<AppSettings>): MenuEntry => ({
    kind: 'check',
    id,
    label,
    checked,
    action: { type: 'set', change },
  });
  const { notifications, quietHours, closeWithoutTray, unloadBeforeSuspend, bringBack } = settings;
  return submenu('settings', 'Settings', [
    submenu('notifications', 'Notifications', [
      radio('notify all', 'Everything the guards do', notifications === 'all', { notifications: 'all' }),
      radio('notify needed', 'Only what cut a turn or needs me', notifications === 'needed', {
        notifications: 'needed',
      }),
      radio('notify none', 'None', notifications === 'none', { notifications: 'none' }),
      line('before-quiet'),
      check('quiet', `Quiet from ${hoursText(quietHours ?? NIGHT)}`, quietHours !== null, {
        quietHours: quietHours === null ? NIGHT : null,
      }),
    ]),
    submenu('close', 'Closing the window where there is no tray', [
      radio('close quit', 'Quits', closeWithoutTray === 'quit', { closeWithoutTray: 'quit' }),
      radio('close minimize', 'Minimizes', closeWithoutTray === 'minimize', { closeWithoutTray: 'minimize' }),
    ]),
    check('bring-back', 'Bring models back when a game or render ends', bringBack, { bringBack: !bringBack }),
    check('suspend', 'Unload big models before the machine sleeps', unloadBeforeSuspend, {
      unloadBeforeSuspend: !unloadBeforeSuspend,
    }),
    item('open-settings', 'All settings …', { type: 'open', place: { kind: 'settings' } }),
  ]);
}

function hoursText({ fromMinute, toMinute }: QuietHours): string {
  const text = (minute: number): string =>
    `${Math.floor(minute / 60)}:${String(minute % 60).padStart(2, '0')}`;
  return `${text(fromMinute)} to ${text(toMinute)}`;
}
