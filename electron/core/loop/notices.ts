import { formatBytes } from '../../../shared/format.ts';
import { isFloorTooHigh } from '../../../shared/settings.ts';
import type { LandlordState } from '../../../shared/state.ts';
import type { ControlLoop } from '../control-loop.ts';
import type { SqliteStore } from '../events/sqlite-store.ts';
import { type Environment, missingKeys } from '../security/key-from.ts';
import { IN_FORCE, type SettingsFile } from '../settings/settings-file.ts';
import type { Fleet } from './fleet.ts';

/** What a person should know first, worst first. */
export function noticesOf(
  settingsFile: SettingsFile,
  store: SqliteStore,
  fleet: Fleet,
  loop: ControlLoop,
  systemLogNote: string | null,
  /** The config that was asked for by name; null: the usual place, where none need be. */
  namedConfig: string | null,
  env: Environment,
): LandlordState['notices'] {
  const notices: LandlordState['notices'][number][] = [];
  const { rejection, source } = settingsFile.status();
  if (rejection !== null)
    notices.push({
      severity: 'error',
      text: `The config is not used, ${IN_FORCE[source]}. To be mended in it:`,
    });
  // A line each: what shows them takes a line break for one of those that tear sentences apart.
  for (const text of rejection?.message.split('\n') ?? []) notices.push({ severity: 'error', text });
  if (source === 'defaults' && namedConfig !== null)
    notices.push({
      severity: 'warning',
      text: `There is no config at ${namedConfig}, so the defaults are in force; it is read as soon as it is there.`,
    });
  for (const text of missingKeys(env, loop.settings)) notices.push({ severity: 'warning', text });
  for (const device of loop.sight.devices())
    if (isFloorTooHigh(loop.settings.floor, device.totalBytes))
      notices.push({
        severity: 'warning',
        text: `The floor in the config is all of ${device.name} (${formatBytes(device.totalBytes)}) or more, which can't be kept; the built-in floor is in force there. Write a smaller one.`,
      });
  const trouble = store.trouble();
  if (trouble !== null)
    notices.push({
      severity: 'error',
      text: `Events are not stored because ${trouble}. The newest are kept in memory and written once that is over.`,
    });
  for (const one of loop.sight.troubles()) notices.push({ severity: 'warning', text: one.message });
  for (const setting of fleet.unsupported())
    notices.push({
      severity: 'warning',
      text: `The backend ${setting.name} is of kind ${setting.kind}, which can't be watched; its memory counts as foreign.`,
    });
  if (systemLogNote !== null) notices.push({ severity: 'info', text: systemLogNote });
  return notices;
}
