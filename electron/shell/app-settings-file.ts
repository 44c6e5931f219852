/** Where the app keeps what a person set in its tray: a small JSON file, replaced as a whole. */
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type AppSettings, DEFAULT_APP_SETTINGS, parseAppSettings } from '../../shared/app-settings.ts';
import { fail, messageOf, ok, type Result } from '../../shared/errors.ts';
import { makeFolders } from '../core/make-folders.ts';
import { replaceFile } from '../core/state-dir/atomic-file.ts';

export interface AppSettingsFile {
  get(): AppSettings;
  /** In force at once; resolves when it is on disk. Errors: `storage_failed`. */
  change(change: Partial<AppSettings>): Promise<Result<null>>;
}

/** A file that is missing or can't be read is the defaults; it is not written before something changes. */
export async function openAppSettings(path: string): Promise<AppSettingsFile> {
  let settings = await read(path);
  let last: Promise<unknown> = Promise.resolve();
  return {
    get: () => settings,
    change(change) {
      settings = { ...settings, ...change };
      const text = `${JSON.stringify(settings, null, 2)}\n`;
      const written = last.then(() => write(path, text));
      last = written;
      return written;
    },
  };
}

async function read(path: string): Promise<AppSettings> {
  try {
    return parseAppSettings(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    return DEFAULT_APP_SETTINGS;
  }
}

async function write(path: string, text: string): Promise<Result<null>> {
  try {
    makeFolders(dirname(path), 0o700);
    await replaceFile(path, text, 0o600);
    return ok(null);
  } catch (error) {
    return fail(
      'storage_failed',
      `${path} could not be written: ${messageOf(error)}. It holds until the app ends.`,
    );
  }
}
