import { createHash } from 'node:crypto';
import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { ArgsOf } from '../../../shared/ipc-schema.ts';
import type { SettingCheck, SettingsView } from '../../../shared/questions.ts';
import type { SettingsFile } from '../settings/settings-file.ts';
import { settingEntries } from './setting-entries.ts';

/** Every key of the config and what stands for it. Errors: `storage_failed`. */
export async function settingsView(file: SettingsFile): Promise<Result<SettingsView>> {
  const read = await file.text();
  if (!read.ok) return read;
  const text = read.value;
  // Loaded on demand, as everywhere: the settings page is opened once a week.
  const { yamlAt } = await import('../settings/yaml-patch.ts');
  const { rejection } = file.status();
  return ok({
    file: file.file,
    fingerprint: fingerprintOf(text),
    rejection: rejection?.message ?? null,
    entries: settingEntries(await file.schemaText(), (key) => (text === null ? null : yamlAt(text, key))),
    firstRun: text === null,
  });
}

/** Whether a value may stand for a key, with the sentence that the file itself would get. Writes nothing. */
export async function checkSetting(
  file: SettingsFile,
  { key, yaml }: ArgsOf<'checkSetting'>,
): Promise<Result<SettingCheck>> {
  const { withYamlAt } = await import('../settings/yaml-patch.ts');
  // Alone, so that only what is said of this key is told.
  const alone = withYamlAt('', key, yaml);
  if (!alone.ok) return ok({ problem: alone.error.message });
  const checked = await file.check(alone.value);
  if (checked.ok) return ok({ problem: null });
  const { problems, message } = checked.error;
  return ok({ problem: problems[0]?.message ?? message });
}

/**
 * Writes one key and keeps everything else of the file, comments too. Errors: `state_mismatch` where the
 * file is not the one that `fingerprint` names; `bad_input`, `config_rejected`, `storage_failed`.
 */
export async function changeSetting(
  file: SettingsFile,
  { key, yaml, fingerprint }: ArgsOf<'changeSetting'>,
): Promise<Result<SettingsView>> {
  const { withYamlAt } = await import('../settings/yaml-patch.ts');
  const changed = await file.edit((text) => {
    if (fingerprintOf(text) !== fingerprint)
      return fail(
        'state_mismatch',
        `${file.file} was changed meanwhile by someone else, so nothing was written. What stands there now is shown: look at it and try again.`,
      );
    return withYamlAt(text ?? '', key, yaml);
  });
  return changed.ok ? settingsView(file) : changed;
}

function fingerprintOf(text: string | null): string | null {
  return text === null ? null : createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
