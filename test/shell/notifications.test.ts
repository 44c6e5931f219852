import { expect, it } from 'vitest';
import { Notifications } from '../../electron/shell/notifications.ts';
import { DEFAULT_APP_SETTINGS } from '../../shared/app-settings.ts';
import { createFakeDesk } from '../fakes/desk.ts';

it('a name in a notification is neither markup nor turns the text round', async () => {
  const fake = createFakeDesk();
  const notifications = new Notifications({
    electron: fake,
    canShow: async () => true,
    settings: () => DEFAULT_APP_SETTINGS,
    windowInFront: () => false,
    openWindow: () => undefined,
    epochMs: () => 0,
    icon: '',
  });
  const name = '<a href="http://x.example">\u202egnp\n\u0007</a>';
  expect(
    await notifications.say({ title: name, body: `Unloaded ${name}`, urgency: 'normal', eventId: null }),
  ).toBe(true);
  notifications.stop();
  const [shown] = fake.notifications;
  for (const text of [shown?.options.title, shown?.options.body]) {
    expect(text).not.toMatch(/[<\p{Cc}\u202a-\u202e]/u);
    expect(text).toContain('a href="http://x.example">');
  }
});
