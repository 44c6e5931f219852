import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openAppSettings } from '../../electron/shell/app-settings-file.ts';
import { DEFAULT_APP_SETTINGS } from '../../shared/app-settings.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-app-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

describe('app settings file: what a person sets outlives the app', () => {
  it('starts with the defaults and writes nothing by itself', async () => {
    const file = await openAppSettings(join(folder, 'new', 'app.json'));
    expect(file.get()).toEqual(DEFAULT_APP_SETTINGS);
    await expect(readFile(join(folder, 'new', 'app.json'))).rejects.toThrow();
  });

  it('keeps the last of many changes', async () => {
    const path = join(folder, 'new', 'app.json');
    const file = await openAppSettings(path);
    await Promise.all([
      file.change({ notifications: 'none' }),
      file.change({ unloadBeforeSuspend: true }),
      file.change({ notifications: 'needed' }),
    ]);
    expect((await openAppSettings(path)).get()).toEqual({
      ...DEFAULT_APP_SETTINGS,
      notifications: 'needed',
      unloadBeforeSuspend: true,
    });
  });

  it('survives a file that is none', async () => {
    const path = join(folder, 'app.json');
    await writeFile(path, '{"notifications": "no');
    expect((await openAppSettings(path)).get()).toEqual(DEFAULT_APP_SETTINGS);
  });

  it('says what could not be written, and holds all the same', async () => {
    await writeFile(join(folder, 'file'), '');
    const file = await openAppSettings(join(folder, 'file', 'app.json'));
    expect(await file.change({ bringBack: false })).toMatchObject({
      ok: false,
      error: { code: 'storage_failed' },
    });
    expect(file.get().bringBack).toBe(false);
    // Where no folder can be made though its parent is there.
    const nowhere = await openAppSettings('/proc/no-such-place/deeper/app.json');
    expect(await nowhere.change({ bringBack: false })).toMatchObject({ error: { code: 'storage_failed' } });
  });
});
