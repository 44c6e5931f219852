import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_APP_SETTINGS, isQuiet, NIGHT, parseAppSettings } from '../../shared/app-settings.ts';

describe('app settings: what is kept is read to something safe', () => {
  it('takes what is right', () => {
    const kept = {
      notifications: 'needed',
      quietHours: { fromMinute: 1320, toMinute: 420 },
      closeWithoutTray: 'minimize',
      unloadBeforeSuspend: true,
      bringBack: false,
      closeNoticeShown: true,
    };
    expect(parseAppSettings(kept)).toEqual(kept);
  });

  it('falls back value by value', () => {
    for (const nothing of [null, undefined, 7, 'x', [], {}]) {
      expect(parseAppSettings(nothing)).toEqual(DEFAULT_APP_SETTINGS);
    }
    expect(
      parseAppSettings({
        notifications: 'loud',
        closeWithoutTray: 1,
        bringBack: 'no',
        unloadBeforeSuspend: true,
      }),
    ).toEqual({ ...DEFAULT_APP_SETTINGS, unloadBeforeSuspend: true });
    for (const quietHours of [
      {},
      { fromMinute: 10 },
      { fromMinute: 10, toMinute: 10 },
      { fromMinute: -1, toMinute: 5 },
      { fromMinute: 0, toMinute: 1440 },
    ]) {
      expect(parseAppSettings({ quietHours }).quietHours).toBeNull();
    }
  });
});

describe('app settings: quiet hours', () => {
  const zone = process.env.TZ;
  beforeAll(() => {
    process.env.TZ = 'UTC';
  });
  afterAll(() => {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  });
  const at = (hour: number, minute = 0): number => Date.UTC(2026, 2, 4, hour, minute);

  it('may reach over midnight', () => {
    expect([21, 22, 23, 0, 6].map((hour) => isQuiet(NIGHT, at(hour, 30)))).toEqual([
      false,
      true,
      true,
      true,
      true,
    ]);
    expect(isQuiet(NIGHT, at(7))).toBe(false);
    expect(isQuiet(NIGHT, at(22))).toBe(true);
  });

  it('may lie within a day', () => {
    const siesta = { fromMinute: 13 * 60, toMinute: 15 * 60 };
    expect([12, 13, 14, 15].map((hour) => isQuiet(siesta, at(hour)))).toEqual([false, true, true, false]);
  });

  it('is never without them', () => {
    expect(isQuiet(null, at(3))).toBe(false);
  });
});
